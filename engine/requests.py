"""What a command asks of the workspace, carried out by whichever process owns it.

A command that finds the workspace free becomes its owner for a moment. Where another process owns
it, the command leaves its request in the inbox and the owner answers. Both ways lead through
``carry_out``, so both give the same result.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from engine import coverage, intake, kept_figures, orphans
from engine.errors import EvaldeskError, Refused, WorkspaceBusy
from engine.importing.mapping import parse_map_options
from engine.intake import IntakeOrder
from engine.judging.criterion import Criterion
from engine.judging.dimension import Dimension, parse_rule
from engine.measuring import audit, building, rounds
from engine.runs import steering
from engine.runs.estimate import estimate_json
from engine.runs.ingest import ingest
from engine.runs.planning import Plan
from engine.store import criteria, dimensions, inbox, models, piles, runs, settings, snapshot, sweeps, traces, waiting
from engine.store.models import Model
from engine.store.runs import Run
from engine.store.store import Store
from engine.store.transaction import Transaction
from engine.store.workspace import Workspace
from engine.sweeping import ranked, results, starting
from engine.sweeping.files import read_dataset, read_prompts
from engine.sweeping.starting import SweepOrder

log = logging.getLogger(__name__)

OWNER_PATIENCE_S = 60.0
_POLL_S = 0.1
_kept_answers: dict[Path, Mapping[str, Any]] = {}
"""Answers to requests that were carried out, which a full disk did not take: nothing is carried out twice for that."""


def ask(
    workspace: Workspace, body: Mapping[str, Any], *, create: bool = False, patience_s: float = OWNER_PATIENCE_S
) -> dict[str, Any]:
    """Have a request carried out, here or by the owner; raises EvaldeskError as if it had happened here.

    An owner that does not answer is waited for ``patience_s``. A request that fails leaves no workspace behind where
    there was none.
    """
    unused = create and not workspace.path.exists()
    try:
        with Store(workspace, program=f"evaldesk {body['kind']}", create=create) as store:
            try:
                result = carry_out(store, body)
                _serve_others(store)
                return result
            finally:
                store.is_unused = unused and store.call(_is_empty)
    except WorkspaceBusy as busy:
        if busy.program == "another program":
            raise
        try:
            request_id = inbox.leave(workspace, body)
        except EvaldeskError:
            if workspace.inbox.is_dir():
                raise
            # Its owner found nothing to keep in a new workspace and has taken it away.
            return ask(workspace, body, create=create, patience_s=patience_s)
        return _ask_owner(workspace, body, request_id, busy, patience_s)


def _is_empty(tx: Transaction) -> bool:
    return not (traces.count(tx) or criteria.everyone(tx) or runs.everyone(tx))


def carry_out(store: Store, body: Mapping[str, Any]) -> dict[str, Any]:
    """Do what the request says; raises EvaldeskError."""
    handler = _HANDLERS.get(str(body.get("kind")))
    if handler is None:
        raise EvaldeskError(
            f"unknown request {body.get('kind')!r}", remedy="Use the same version of evaldesk on both sides."
        )
    return handler(store, body)


def serve_inbox(store: Store) -> int:
    """Carry out what others have left in the inbox; returns how many requests were answered."""
    answered = 0
    for request in inbox.pending(store.workspace):
        kept = _kept_answers.get(store.workspace.inbox / request.request_id)
        try:
            result = carry_out(store, request.body) if kept is None else kept
        except EvaldeskError as error:
            result = {"error": {"what": error.what, "where": error.where, "kept": error.kept, "remedy": error.remedy}}
        except Exception as error:
            # A request comes from another process, maybe of another version: it may hold anything.
            log.exception("a request could not be carried out")
            result = {"error": {"what": f"the request could not be carried out ({type(error).__name__}: {error})"}}
        answered += _answer(store.workspace, request.request_id, result)
    return answered


def _answer(workspace: Workspace, request_id: str, result: Mapping[str, Any]) -> bool:
    """Answer a request that was carried out; where the disk refuses, the answer is kept for the next look."""
    try:
        inbox.answer(workspace, request_id, result)
    except EvaldeskError as error:
        log.warning("%s", error)
        _kept_answers[workspace.inbox / request_id] = result
        return False
    _kept_answers.pop(workspace.inbox / request_id, None)
    return True


def _serve_others(store: Store) -> None:
    """Answer what waits, once one's own work is done: nothing of it may fail that."""
    try:
        serve_inbox(store)
    except EvaldeskError as error:
        log.warning("%s", error)


def embedded_model(name: str = "") -> Model:
    """The model of this name, local or behind a server (the embedded default for ""), with its fingerprint.

    Raises EvaldeskError with what to do.
    """
    from engine.models.registry import default_model, model_by_name

    found = model_by_name(name) if name else default_model()
    return Model(found.fingerprint.short, found.name, found.backend, str(found.path))


def _ask_owner(
    workspace: Workspace, body: Mapping[str, Any], request_id: str, busy: WorkspaceBusy, patience_s: float
) -> dict[str, Any]:
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        result = inbox.take_answer(workspace, request_id)
        if result is not None:
            if "error" in result:
                raise _told(result["error"])
            return result
        time.sleep(_POLL_S)
        try:
            with Store(workspace, program=f"evaldesk {body['kind']}") as store:
                _serve_others(store)
        except WorkspaceBusy:
            continue
    inbox.withdraw(workspace, request_id)
    raise busy


def _told(error: Any) -> EvaldeskError:
    parts = {name: str(text) for name, text in error.items()} if isinstance(error, Mapping) else {}
    return EvaldeskError(
        parts.get("what") or "the owner could not do this",
        where=parts.get("where", ""), kept=parts.get("kept", ""), remedy=parts.get("remedy", ""),
    )  # fmt: skip


def _import(store: Store, body: Mapping[str, Any]) -> dict[str, Any]:
    order = IntakeOrder(
        path=Path(body["path"]),
        mapping=parse_map_options(body["map"]) if body.get("map") else None,
        kind=body.get("as") or None,
        values=body.get("values") or None,
        criterion_id=body.get("criterion", ""),
        expert=body.get("expert", ""),
        how_drawn=body.get("drawn", ""),
        origin=body.get("origin", ""),
    )
    content = intake.read_file(order)
    return store.call(intake.keep, content).as_json()


def _judge(store: Store, body: Mapping[str, Any]) -> dict[str, Any]:
    _bring_in(store)
    model = embedded_model(body.get("model", ""))

    def work(tx: Transaction) -> dict[str, Any]:
        criterion_id = body.get("criterion") or _only_criterion(tx)
        number = body.get("version")
        if body.get("new") or (number is None and not building.has_versions(tx, criterion_id)):
            judge = building.build(tx, criterion_id, model, change="first version from the command line")
        else:
            judge = building.by_number(tx, criterion_id, number)
        planned: Plan | Run
        if body.get("dry_run"):
            run_id, planned = "", rounds.plan(tx, judge.judge_id)
        else:
            planned = rounds.start(tx, store.workspace, judge.judge_id)
            run_id = planned.run_id
        return {
            "run": run_id, "judge": judge.number, "criterion": criterion_id, "needed": planned.needed,
            "cached": planned.cached, "awaited": planned.awaited, "to_run": planned.to_run,
            **estimate_json(tx, store.workspace, models.get(tx, judge.model_id), "judge", planned.to_run),
        }  # fmt: skip

    started = store.call(work)
    store.call(kept_figures.refresh)  # of a run that had nothing to generate
    return started


def _audit(store: Store, body: Mapping[str, Any]) -> dict[str, Any]:
    _bring_in(store)
    return audit.audit_json(store.call(audit.audit, str(body["run"])))


def _sweep(store: Store, body: Mapping[str, Any]) -> dict[str, Any]:
    _bring_in(store)
    model = embedded_model(body.get("model", ""))
    paths = [Path(path) for path in body["prompts"]]
    limit = int(body.get("limit") or 0)
    if limit < 0:
        raise Refused(f"the first {limit} prompts are none", kept="Nothing was run.", remedy="Give --limit 1 or more.")
    order = SweepOrder(
        prompts=tuple(read_prompts(paths))[: limit or None],
        dataset=read_dataset(Path(body["dataset"]), body.get("answer", "")),
        scorer=body.get("scorer") or "exact",
        items=int(body.get("items") or 0),
        seeds=tuple(int(seed) for seed in body.get("seeds") or ()),
        ks=tuple(int(k) for k in body.get("ks") or ()),
        max_tokens=int(body.get("max_tokens") or 0),
        temperature=float(body.get("temperature") or 0.0),
        repeats=int(body.get("repeats") or 0),
    )

    def work(tx: Transaction) -> dict[str, Any]:
        planned: Plan | Run
        if body.get("dry_run"):
            run_id = ""
            sweep, planned = starting.plan(tx, order, model)
        else:
            planned = starting.start(tx, store.workspace, order, model, source=", ".join(path.name for path in paths))
            run_id, sweep = planned.run_id, sweeps.get(tx, planned.sweep_id)
        return {
            "run": run_id, "sweep": sweep.sweep_id, "name": sweep.name, "prompts": len(sweep.prompts),
            "items": sweep.pool, "seeds": list(sweep.seeds), "ks": list(sweep.ks), "repeats": sweep.repeats, "needed": planned.needed,
            "cached": planned.cached, "awaited": planned.awaited, "to_run": planned.to_run,
            **estimate_json(tx, store.workspace, model, "sweep", planned.to_run),
        }  # fmt: skip

    started = store.call(work)
    store.call(kept_figures.refresh)  # of a run that had nothing to generate
    return started


def _ranking(store: Store, body: Mapping[str, Any]) -> dict[str, Any]:
    _bring_in(store)
    found, _ = store.call(results.measure, str(body["run"]), None, int(body.get("top", results.DEFAULT_TOP)))
    return ranked.ranked_json(found, float(body.get("z", results.DEFAULT_Z)))


def _runs(store: Store, body: Mapping[str, Any]) -> dict[str, Any]:
    """All runs, newest first; with an action one of them is steered before."""
    _bring_in(store)
    if body.get("action"):
        steering.steer(store, str(body["run"]), str(body["action"]))
        _settle(store, body)

    def work(tx: Transaction) -> dict[str, Any]:
        settled = waiting.settled(tx)
        return {
            "runs": [
                {"run": run.run_id, "kind": run.kind, "title": run.title, "status": run.status, "needed": run.needed,
                 "cached": run.cached, "awaited": run.awaited, "settled": settled.get(run.run_id, 0),
                 "waits_for": waiting.brought_by(tx, run.run_id) if run.status == runs.WAITING else []}
                for run in runs.everyone(tx)
            ]
        }  # fmt: skip

    return store.call(work)


def _settle(store: Store, body: Mapping[str, Any]) -> dict[str, Any]:
    _bring_in(store)
    adopted = store.call(orphans.adopt, store.workspace)
    return {"adopted": adopted}


def _snapshot(store: Store, body: Mapping[str, Any]) -> dict[str, Any]:
    _bring_in(store)
    return {"path": str(store.call(snapshot.write, Path(body["path"])))}


def _seal(store: Store, body: Mapping[str, Any]) -> dict[str, Any]:
    def work(tx: Transaction) -> dict[str, Any]:
        criterion_id = body.get("criterion") or _only_criterion(tx)
        criteria.get(tx, criterion_id)
        drawn = piles.draw_sealed(tx, criterion_id, int(body["count"]), int(body.get("seed", 1)))
        return {"criterion": criterion_id, "drawn": len(drawn.drawn), "wanted": drawn.wanted, "labelled": drawn.labelled,
                "twins": drawn.twins, "sentence": drawn.sentence}  # fmt: skip

    return store.call(work)


def _coverage(store: Store, body: Mapping[str, Any]) -> dict[str, Any]:
    """The coverage grid, after dimensions and rules that the request brings were taken in."""
    rules = [
        (name.strip(), parse_rule(rule)) for name, _, rule in (str(r).partition(":") for r in body.get("rules") or ())
    ]

    def prepare(tx: Transaction) -> list[Dimension]:
        known = dimensions.everyone(tx)
        for name, _, field in (str(said).partition("=") for said in body.get("dimensions") or ()):
            if dimensions.named(known, name) is None:
                dimensions.add(tx, name, field.strip(), body.get("author", ""))
        for name, rule in rules:
            found = dimensions.get(tx, name)
            if rule not in found.rules:
                dimensions.set_rules(tx, found.dimension_id, (*found.rules, rule), body.get("author", ""))
        known = dimensions.everyone(tx)
        if not known:
            fields = ", ".join(f"{one.field} ({len(one.values)} values)" for one in dimensions.candidates(tx)[:12])
            raise Refused(
                "there is no dimension in this workspace",
                remedy=f"Say one with --dimension FIELD; fields of the traces: {fields}."
                if fields
                else "Import traces with metadata.",
            )
        return known

    known = store.call(prepare)
    by = coverage.chosen(known, *(str(body.get(part) or "") for part in ("rows", "columns", "tabs")))
    criterion_id = body.get("criterion") or store.call(_shown_criterion)
    if body.get("criterion"):
        store.call(criteria.get, criterion_id)
    return coverage.count(store, criterion_id, by).as_json()


def _shown_criterion(tx: Transaction) -> str:
    """The criterion whose labels a grid shows: the one that was worked on last, or the first; "" where there is none."""
    known = [criterion.criterion_id for criterion in criteria.everyone(tx)]
    last = settings.read(tx, "criterion")
    return last if last in known else (known[0] if known else "")


def _bring_in(store: Store) -> None:
    """Results and states of all runs as they are now: what is cached and what is pending depends on them."""
    while store.call(ingest, store.workspace).more:
        pass
    store.call(kept_figures.refresh)


def _criterion(store: Store, body: Mapping[str, Any]) -> dict[str, Any]:
    said = {name: str(body.get(name, "")).strip() for name in ("criterion", "question", "pass_when", "fail_when")}
    missing = [name.replace("_", " ") for name, text in said.items() if not text]
    if missing:
        raise EvaldeskError(
            "a criterion needs its name, its question and both definitions; empty: " + ", ".join(missing),
            kept="Nothing was changed.", remedy="Say what is missing.",
        )  # fmt: skip

    def work(tx: Transaction) -> dict[str, Any]:
        before = criteria.find(tx, said["criterion"])
        kept = before is not None and before.question == said["question"]
        stored = criteria.add(
            tx,
            Criterion(
                criterion_id=said["criterion"], question=said["question"],
                task=before.task if before and kept else f"You check one thing about a response: {said['question']}",
                pass_when=said["pass_when"], fail_when=said["fail_when"],
                edge_cases=tuple(case.strip() for case in body.get("edge_cases") or () if case.strip()),
                quote_required=bool(body.get("quote_required")), facts=before.facts if before else (),
                help_critiques=before.help_critiques if before else (), author=body.get("author", ""),
            ),
        )  # fmt: skip
        return {"criterion": stored.criterion_id, "version": stored.version, "changed": stored != before}

    return store.call(work)


def _only_criterion(tx: Transaction) -> str:
    found = criteria.everyone(tx)
    if not found:
        raise Refused("there is no criterion in this workspace", remedy=criteria.HOW_TO_MAKE_ONE)
    if len(found) == 1:
        return found[0].criterion_id
    with_judge = [
        c for c in found if building.has_versions(tx, c.criterion_id) or piles.build_cases(tx, c.criterion_id)
    ]
    if len(with_judge) == 1:
        return with_judge[0].criterion_id
    names = ", ".join(c.criterion_id for c in found)
    raise Refused("it is not said which criterion is meant", remedy=f"Say it with --criterion; there are: {names}.")


def _again(store: Store, body: Mapping[str, Any]) -> dict[str, Any]:
    """Start once more what a run was about; only what has no reply is asked: what failed, or came to nothing."""
    _bring_in(store)

    def work(tx: Transaction) -> dict[str, Any]:
        before = runs.get(tx, str(body["run"]))
        if before.is_active:
            raise Refused(
                "this run goes on yet", where=before.run_id, kept="Nothing was started.",
                remedy="What failed can be asked again once it has ended.",
            )  # fmt: skip
        if before.kind == "sweep":
            run = starting.again(tx, store.workspace, before)
        else:
            run = rounds.start(tx, store.workspace, before.judge_id)
        return {
            "run": run.run_id,
            "needed": run.needed,
            "cached": run.cached,
            "awaited": run.awaited,
            "to_run": run.to_run,
        }

    started = store.call(work)
    store.call(kept_figures.refresh)  # of a run that had nothing to generate
    return started


_HANDLERS: dict[str, Callable[[Store, Mapping[str, Any]], dict[str, Any]]] = {
    "import": _import,
    "criterion": _criterion,
    "judge": _judge,
    "audit": _audit,
    "coverage": _coverage,
    "sweep": _sweep,
    "ranking": _ranking,
    "runs": _runs,
    "again": _again,
    "settle": _settle,
    "snapshot": _snapshot,
    "seal": _seal,
}
