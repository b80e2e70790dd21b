"""Chat templates: one BOS, a system message that is never lost, and other people's programs that can do no harm.

The three templates are written for this test. They behave as those of Mistral-7B-Instruct-v0.3 (writes the BOS, takes
no system role, refuses roles that do not alternate), Phi-3-mini-4k-instruct (writes the BOS, leaves a system message
out without a word) and Qwen2.5-7B-Instruct (no BOS at all, a system message of its own where there is none); they are
not the text of those models' templates.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.backends.chat_template import PINNED_NOW, merge_system, one_bos, read_chat_template, wants_bos
from engine.errors import EvaldeskError

MISTRAL = (
    "{{ bos_token }}{% for m in messages %}"
    "{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('roles must alternate') }}{% endif %}"
    "{% if m.role == 'user' %}[INST] {{ m.content }}[/INST]{% else %} {{ m.content }}{{ eos_token }}{% endif %}"
    "{% endfor %}"
)
PHI = (
    "{{ bos_token }}{% for m in messages %}{% if m['role'] == 'user' %}<|user|>\n{{ m['content'] }}<|end|>\n"
    "<|assistant|>\n{% elif m['role'] == 'assistant' %}{{ m['content'] }}<|end|>\n{% endif %}{% endfor %}"
)
QWEN = """{%- if messages[0].role == 'system' %}
    {{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}
{%- else %}
    {{- '<|im_start|>system\\nYou help.<|im_end|>\\n' }}
{%- endif %}
{%- for m in messages %}
    {%- if loop.first and m.role == 'system' %}{% continue %}{% endif %}
    {{- '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}"""
S_TOKENS = {"bos_token": "<s>", "eos_token": {"content": "</s>"}, "add_bos_token": True}
QWEN_TOKENS = {"bos_token": None, "eos_token": "<|im_end|>", "add_bos_token": False}
SYSTEM = {"role": "system", "content": "Be short."}
ASK = {"role": "user", "content": "How long?"}


def model(folder: Path, template: Any, **settings: Any) -> Path:
    (folder / "tokenizer_config.json").write_text(json.dumps({**settings, "chat_template": template}))
    return folder


def test_a_template_that_refuses_the_system_role_gets_it_in_the_first_user_message(tmp_path: Path) -> None:
    template = read_chat_template(model(tmp_path, MISTRAL, **S_TOKENS))
    assert not template.takes_system
    assert template.render([SYSTEM, ASK]) == "<s>[INST] Be short.\n\nHow long?[/INST]"
    assert template.render([ASK]) == "<s>[INST] How long?[/INST]"


def test_a_template_that_drops_the_system_message_silently_gets_it_there_too(tmp_path: Path) -> None:
    template = read_chat_template(model(tmp_path, PHI, **S_TOKENS))
    assert not template.takes_system
    assert template.render([SYSTEM, ASK]) == "<s><|user|>\nBe short.\n\nHow long?<|end|>\n<|assistant|>\n"


def test_a_template_with_a_system_role_is_left_to_it(tmp_path: Path) -> None:
    template = read_chat_template(model(tmp_path, QWEN, **QWEN_TOKENS))
    assert template.takes_system
    assert template.render([SYSTEM, ASK]) == (
        "<|im_start|>system\nBe short.<|im_end|>\n<|im_start|>user\nHow long?<|im_end|>\n<|im_start|>assistant\n"
    )
    assert template.render([ASK]).startswith("<|im_start|>system\nYou help.<|im_end|>\n<|im_start|>user\n")


def test_what_a_template_refuses_is_said_in_its_own_words(tmp_path: Path) -> None:
    template = read_chat_template(model(tmp_path, MISTRAL, **S_TOKENS))
    with pytest.raises(EvaldeskError, match="roles must alternate"):
        template.render([ASK, ASK])


@given(st.lists(st.sampled_from(["system", "user", "assistant"]), max_size=5))
def test_merging_loses_no_text_and_leaves_no_leading_system_message(roles: list[str]) -> None:
    messages = [{"role": role, "content": f"text {number}"} for number, role in enumerate(roles)]
    merged = merge_system(messages)
    assert not merged or merged[0]["role"] != "system" or roles[:2] == ["system", "system"]
    texts = [text for m in merged for text in m["content"].split("\n\n")]
    assert sorted(texts) == sorted(m["content"] for m in messages)


def test_the_sources_of_a_template_in_their_order(tmp_path: Path) -> None:
    listed = [{"name": "tool_use", "template": "no"}, {"name": "default", "template": "from a list"}]
    model(tmp_path, listed)
    assert read_chat_template(tmp_path).render([ASK]) == "from a list"
    (tmp_path / "chat_template.json").write_text(json.dumps({"chat_template": "from json"}))
    assert read_chat_template(tmp_path).render([ASK]) == "from json"
    (tmp_path / "chat_template.jinja").write_text("from jinja")
    assert read_chat_template(tmp_path).render([ASK]) == "from jinja"


@pytest.mark.parametrize("template", [None, [], [{"name": "rag", "template": "x"}], 7])
def test_a_model_without_a_template_is_refused_with_what_to_do(tmp_path: Path, template: Any) -> None:
    with pytest.raises(EvaldeskError, match=r"no chat template.*chat_template\.jinja"):
        read_chat_template(model(tmp_path, template))


def test_a_damaged_template_or_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(EvaldeskError, match=r"tokenizer_config\.json"):
        read_chat_template(model(tmp_path, "{% for %}"))
    (tmp_path / "tokenizer_config.json").write_text("{")
    with pytest.raises(EvaldeskError, match=r"tokenizer_config\.json"):
        read_chat_template(tmp_path)


def test_templates_have_the_tools_that_they_were_written_with(tmp_path: Path) -> None:
    source = (
        "{% for m in messages %}\n  {% if loop.index > 1 %}{% break %}{% endif %}\n{{ m | tojson }}{% endfor %}"
        " {{ strftime_now('%d %b %Y') }}"
    )
    text = read_chat_template(model(tmp_path, source)).render([{"role": "user", "content": "<é> & 'x'"}, ASK])
    assert text == f'{{"role": "user", "content": "<é> & \'x\'"}}{PINNED_NOW.strftime(" %d %b %Y")}'


@pytest.mark.parametrize(
    "attack",
    [
        "{{ messages.__class__.__mro__ }}",
        "{{ raise_exception.__globals__ }}",
        "{{ messages.append(1) }}",
        "{{ cycler.__init__.__globals__.os.system('true') }}",
    ],
)
def test_a_template_is_kept_inside_its_sandbox(tmp_path: Path, attack: str) -> None:
    template = read_chat_template(model(tmp_path, attack))
    try:
        said = template.render([ASK])
    except EvaldeskError:
        return
    assert said == ""


def test_text_is_only_text(tmp_path: Path) -> None:
    template = read_chat_template(model(tmp_path, QWEN, **QWEN_TOKENS))
    odd = "{{ 7 * 7 }} {% raw %} \ud800 <b>"
    assert odd.replace("\ud800", "?") in template.render([{"role": "user", "content": odd}])


@given(st.lists(st.integers(0, 3), max_size=6), st.booleans())
def test_there_is_one_bos_or_none(ids: list[int], wanted: bool) -> None:
    bos = 0
    out = one_bos(ids, bos, wanted=wanted)
    assert (out[:1] == [bos]) is (wanted or ids[:1] == [bos])
    assert out[:2] != [bos, bos]
    text = [number for number in out if number != bos]
    assert text == [number for number in ids if number != bos]
    assert one_bos(out, bos, wanted=wanted) == out
    assert one_bos(ids, None, wanted=wanted) == ids


def test_whether_a_model_wants_a_bos(tmp_path: Path) -> None:
    assert wants_bos(model(tmp_path, "", **S_TOKENS))
    assert not wants_bos(model(tmp_path, "", **QWEN_TOKENS))
    model(tmp_path, "", bos_token="<s>")
    assert not wants_bos(tmp_path)
    adds = {"post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>"}}]}}
    (tmp_path / "tokenizer.json").write_text(json.dumps(adds))
    assert wants_bos(tmp_path)
