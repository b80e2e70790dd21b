"""Sweep and Ranking by keys: plan, start, the matrix, the outputs behind a cell, agreement, selection; equal to the tables."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from engine import requests
from engine.store.models import Model
from engine.store.outcomes import CUT_OFF
from engine.store.store import Store
from engine.store.workspace import Workspace
from engine.sweeping import results
from engine.sweeping.dataset import Dataset
from engine.sweeping.prompt import Prompt
from engine.sweeping.results import SweepResults
from engine.sweeping.starting import SweepOrder
from tests.engine.measuring.conftest import BACKEND, private_state
from tests.engine.sweeping.conftest import Sweeper, skilled, sums
from tests.tui.conftest import Desk, open_desk

__all__ = ["private_state"]

WIDE = (200, 50)


@pytest.fixture(scope="session")
def swept_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("swept")


@pytest.fixture
def swept(private_state: Path, swept_template: Path) -> Path:
    """A workspace with one finished sweep: three prompts, thirty items, six conditions."""
    made = swept_template / "ws"
    if not made.exists():
        with Store(Workspace(private_state / "ws")) as store:
            Sweeper(store, private_state).swept()
        shutil.copytree(private_state / "ws", made)
        return private_state / "ws"
    shutil.copytree(made, private_state / "ws")
    return private_state / "ws"


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Prompts and items on disk, as a user has them."""
    prompts, dataset = tmp_path / "prompts.jsonl", tmp_path / "items.jsonl"
    prompts.write_text(
        "\n".join(json.dumps({"name": p.name, "template": p.template}) for p in skilled(2, 5, 8)), "utf-8"
    )
    dataset.write_text(
        "\n".join(json.dumps({"id": i.item_id, **i.fields, "answer": i.answer}) for i in sums(40).items), "utf-8"
    )
    return prompts, dataset


def found(desk: Desk) -> SweepResults:
    run_id = desk.rows("SELECT run_id FROM run WHERE kind = 'sweep' ORDER BY created_at DESC")[0][0]
    return desk.app.desk.store.call(results.measure, run_id)[0]


async def test_a_sweep_is_planned_started_and_fills_by_keys(
    private_state: Path, files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    script = json.dumps({"sums": True, "seconds": 0.002})
    monkeypatch.setattr(requests, "embedded_model", lambda name="": Model("scripted", "scripted", BACKEND, script))
    async with open_desk(private_state / "ws", "sweep", (100, 30)) as desk:
        await desk.wait_for("Nothing is swept yet")
        await desk.press("n")
        await desk.wait_for("A new sweep")
        for value in (str(files[0]), str(files[1]), "", "number", "", "30", "3", "10,20"):
            desk.app.screen.focused.value = value  # type: ignore[union-attr]
            await desk.press("tab")
        await desk.press("enter")
        await desk.wait_for("3 prompts × 30 items, 3 seeds × k 10/20: 90 needed, 0 cached, 90 to run")
        assert desk.rows("SELECT count(*) FROM run") == [(0,)]
        await desk.press("enter")
        await desk.wait_for("done  90/90")
        await desk.wait_for("coverage 10 of 10")
        matrix = found(desk)
        for row, condition in enumerate(matrix.matrix.conditions):
            cells = [f"{round(100 * mean):>3}" for mean in matrix.matrix.means[row]]
            assert f"s{condition.seed} k{condition.k}".ljust(10) + " ".join(cells) in desk.text
        assert "skill-8" in desk.text


async def test_a_form_that_cannot_be_carried_out_says_why_and_stays(
    private_state: Path, files: tuple[Path, Path]
) -> None:
    files[0].write_text(json.dumps({"name": "typo", "template": "{qestion}"}), "utf-8")
    async with open_desk(private_state / "ws", "sweep") as desk:
        await desk.wait_for("Nothing is swept yet")
        await desk.press("n")
        await desk.wait_for("A new sweep")
        for value in (str(files[0]), str(files[1]), "", "number"):
            desk.app.screen.focused.value = value  # type: ignore[union-attr]
            await desk.press("tab")
        await desk.press("enter")
        await desk.wait_for("'typo' asks for {qestion}")
        await desk.press("escape")
        await desk.wait_for("n chooses prompts and a dataset, shows what it would take, and starts.")


async def test_the_cursor_reads_a_cell_out_and_enter_opens_its_outputs(swept: Path) -> None:
    async with open_desk(swept, "sweep") as desk:
        await desk.wait_for("done  90/90")
        await desk.press("down", "right", "j", "l")
        sweep = found(desk)
        total = sweep.matrix.sums[2, 2]
        await desk.wait_for(f"seed 3, k 10 × 3 skill-8: {total:g} of 10 right")
        await desk.press("enter")
        await desk.wait_for(f"skill-8 · seed 3, k 10: {total:g} right")
        await desk.wait_for("REPLY")
        await desk.press("j", "space", "escape")
        await desk.wait_for("coverage 10 of 10")


async def test_the_ranking_says_what_the_tables_hold(swept: Path) -> None:
    async with open_desk(swept, "ranking", WIDE) as desk:
        await desk.wait_for("skill-8 leads")
        rows = desk.rows(
            "SELECT p.name, r.score_sum, r.n, r.mean FROM ranking r JOIN prompt p USING (prompt_id) ORDER BY rank"
        )
        for name, total, n, mean in rows:
            assert any(
                name in line and f"{total:g} of {n}" in line and f"{mean:.3f}".lstrip("0") in line
                for line in desk.text.split("\n")
            )
        await desk.wait_for("LCB z=1")
        await desk.press("o")
        await desk.wait_for("top-1 in hundredths")
        await desk.press("right")
        sa, ka, sb, kb, tau, rho, top1, topm = desk.rows(
            "SELECT seed_a, k_a, seed_b, k_b, tau_b, rho, top1, topm FROM agreement ORDER BY rowid LIMIT 1"
        )[0]
        shown = [f"{value:.2f}".replace("0.", ".", 1) for value in (tau, rho, top1, topm)]
        expected = (
            f"seed {sa} k {ka} – seed {sb} k {kb}: tau-b {shown[0]}  rho {shown[1]}  top-1 {shown[2]}  top-3 {shown[3]}"
        )
        await desk.wait_for(expected)


async def test_views_figures_subsets_and_z_by_keys_in_a_small_terminal(swept: Path) -> None:
    async with open_desk(swept, "ranking") as desk:
        await desk.wait_for("95 % over items")
        assert "tau-b in hundredths" not in desk.text
        await desk.press("tab")
        await desk.wait_for("tau-b in hundredths, all k")
        await desk.press("s")
        await desk.wait_for("k = 10")
        assert "s1 k20" not in desk.text
        for key, name in (("r", "rho"), ("o", "top-1"), ("m", "top-3"), ("t", "tau-b")):
            await desk.press(key)
            await desk.wait_for(f"{name} in hundredths")
        await desk.press("tab")
        await desk.wait_for("held-out 3 seeds")
        await desk.press("z")
        await desk.wait_for("0 is the mean rule")
        await desk.press("backspace", "2", "enter")
        await desk.wait_for("LCB z=2")
        await desk.press("z")
        await desk.wait_for("0 is the mean rule")
        await desk.press("1", "underscore", "0", "enter")
        await desk.wait_for("1_0 is no z")
        await desk.press("z")
        await desk.wait_for("0 is the mean rule")
        await desk.press("backspace", "full_stop", "5", "enter")
        await desk.wait_for("LCB z=0.5")


async def test_the_whole_sentence_stands_in_a_small_terminal(private_state: Path) -> None:
    prompts = tuple(
        Prompt(f"a name that is long enough to be cut {number}", f"skill {number}: {{question}}")
        for number in (4, 5, 6, 5)
    )
    with Store(Workspace(private_state / "ws")) as store:
        sweeper = Sweeper(store, private_state)
        run = sweeper.start(SweepOrder(prompts[:3], sums(40), "number", seeds=(1, 2), ks=(5, 10)))
        sweeper.finish(run)
    async with open_desk(private_state / "ws", "ranking") as desk:
        await desk.wait_for("of pairs of prompts tie.")
        assert "95 % over items" in desk.text


async def test_another_sweep_starts_with_all_its_subset_sizes(private_state: Path) -> None:
    with Store(Workspace(private_state / "ws")) as store:
        sweeper = Sweeper(store, private_state)
        for ks in ((10, 20), (5, 15)):
            sweeper.finish(sweeper.start(replace(sweeper.order, ks=ks)))
    async with open_desk(private_state / "ws", "sweep", WIDE) as desk:
        await desk.wait_for("k5")
        await desk.press("6", "s")
        await desk.wait_for("k = 5")
        await desk.press("5", "o")
        await desk.wait_for("k20")
        await desk.press("6")
        await desk.wait_for("all k")
        assert "s1 k10" in desk.text


async def test_home_says_who_leads_and_how_often(swept: Path) -> None:
    async with open_desk(swept, "home", (100, 30)) as desk:
        await desk.wait_for("sums × scripted  skill-8 leads, on top in")


async def test_runs_leads_to_the_sweep(swept: Path) -> None:
    async with open_desk(swept, "runs") as desk:
        await desk.wait_for("3 prompts")
        await desk.press("a")
        await desk.wait_for("evaldesk  Sweep")


@pytest.mark.parametrize("theme", ["ansi-dark", "textual-dark"])
async def test_cells_are_digits_with_and_without_colours(
    swept: Path, theme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    if theme == "ansi-dark":
        monkeypatch.setenv("SSH_CONNECTION", "1 2 3 4")
    else:
        monkeypatch.delenv("SSH_CONNECTION", raising=False)
        monkeypatch.delenv("SSH_TTY", raising=False)
    async with open_desk(swept, "sweep") as desk:
        await desk.wait_for("done  90/90")
        assert desk.app.theme == theme
        heatmap = desk.app.screen.query_one("Heatmap")
        colours = {segment.style.bgcolor for segment in heatmap.render_line(0) if segment.style}  # type: ignore[attr-defined]
        assert (len(colours) > 1) == (theme == "textual-dark")
        assert f"{round(100 * found(desk).matrix.means[0, 0])}" in desk.text


async def test_names_items_and_outputs_from_outside_are_shown_as_text(private_state: Path) -> None:
    nasty = "[/x]\x1b]0;TAKEN\x07 %s {0}"
    with Store(Workspace(private_state / "ws")) as store:
        sweeper = Sweeper(store, private_state)
        prompts = (Prompt(nasty, "skill 5: {question}"), Prompt("b" + nasty, "skill 6: {question}\x1b[2J"))
        data = Dataset(nasty, sums(20).items)
        run = sweeper.start(SweepOrder(prompts, data, "number", seeds=(1, 2), ks=(5, 10)), sums=False)
        sweeper.finish(run)
    async with open_desk(private_state / "ws", "sweep") as desk:
        await desk.wait_for("[/x]␛]0;TAKEN␇ %s {0}")
        await desk.press("enter")
        await desk.wait_for("REPLY")
        assert "reply to" in desk.text
        await desk.press("escape", "6")
        await desk.wait_for("95 % over items")
        assert "[/x]␛]0;TAKEN␇" in desk.text
        await desk.press("tab", "right", "tab")
        await desk.wait_for("held-out")
        assert "\x1b" not in desk.text


async def fill_in(desk: Desk, *values: str) -> None:
    """Open the form and put values into its fields from the first one on."""
    await desk.wait_for("Nothing is swept yet")
    await desk.press("n")
    await desk.wait_for("A new sweep")
    assert "exact; or number, choice, likelihood" in desk.text
    for value in values:
        desk.app.screen.focused.value = value  # type: ignore[union-attr]
        await desk.press("tab")
    await desk.press("enter")


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> None:
    script = json.dumps({"sums": True, "seconds": 0.002})
    monkeypatch.setattr(requests, "embedded_model", lambda name="": Model("scripted", "scripted", BACKEND, script))


@pytest.mark.usefixtures("scripted")
async def test_the_answer_column_can_be_named_and_an_old_plan_goes_when_a_field_is_edited(
    private_state: Path, files: tuple[Path, Path]
) -> None:
    files[1].write_text(files[1].read_text("utf-8").replace('"answer"', '"solution"'), "utf-8")
    async with open_desk(private_state / "ws", "sweep", WIDE) as desk:
        await desk.wait_for("n chooses prompts and a dataset, shows what it would take, and starts.")
        await fill_in(desk, str(files[0]), str(files[1]), "", "number")
        await desk.wait_for("Name the answer column")
        for _ in range(2):
            await desk.press("shift+tab")
        desk.app.screen.focused.value = "solution"  # type: ignore[union-attr]
        await desk.settle()
        assert "Name the answer column" not in desk.text
        await desk.press("enter")
        await desk.wait_for("Enter starts it.")
        await desk.press("tab", "tab", "2")
        await desk.wait_for(lambda: "Enter starts it." not in desk.text)
        assert "needed" not in desk.text
        await desk.press("enter")
        await desk.wait_for("2 prompts × 40 items")
        assert desk.rows("SELECT count(*) FROM run") == [(0,)]


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        (4, "0", "prompts at most: '0' is not a whole number from 1 on"),
        pytest.param(5, "x", "items to draw from: 'x' is not", marks=pytest.mark.slow),
        pytest.param(6, "0", "seeds: '0' is not", marks=pytest.mark.slow),
        (6, "20000", "seeds: 20000 does not lie between 1 and 1000"),
        pytest.param(7, "10,-1", "k: '-1' is not", marks=pytest.mark.slow),
        pytest.param(8, "-1", "tokens a reply: '-1' is not", marks=pytest.mark.slow),
        pytest.param(8, "1000000", "tokens a reply: 1000000 does not lie between 1 and 32768", marks=pytest.mark.slow),
    ],
)
async def test_a_number_that_makes_no_sense_is_refused_by_the_name_on_the_screen(
    private_state: Path, files: tuple[Path, Path], place: int, value: str, said: str
) -> None:
    async with open_desk(private_state / "ws", "sweep", (120, 30)) as desk:
        values = [str(files[0]), str(files[1]), "", "number", *[""] * 6]
        values[place] = value
        await fill_in(desk, *values[: place + 1])
        await desk.wait_for(said)


async def test_long_names_fit_into_80_columns_on_sweep_and_in_its_items(private_state: Path) -> None:
    with Store(Workspace(private_state / "ws")) as store:
        sweeper = Sweeper(store, private_state)
        prompts = tuple(Prompt(f"{letter}" * 4000, f"skill {letter}: {{question}}") for letter in "ab")
        order = SweepOrder(prompts, sums(20), "number", seeds=(1, 2), ks=(5, 10))
        sweeper.finish(sweeper.start(order, sums=False))
        store.call(lambda tx: tx.execute("UPDATE outcome SET problem = ? WHERE item = 3", CUT_OFF))
    async with open_desk(private_state / "ws", "sweep") as desk:
        await desk.wait_for("coverage 5 of 5")
        assert "no answer  failed  cut off" in desk.text
        await desk.press("down", "down", "enter")
        await desk.wait_for("REPLY")
        title = desk.text.split("\n")[2]
        assert "…" in title and "seed 1, k 10: " in title
        await desk.press("?")
        await desk.wait_for("THIS SCREEN")
        assert "EVERYWHERE" not in desk.text
        await desk.press("escape")
        await desk.wait_for("REPLY")
