"""Every keyword that the two parts pass is one that the libraries name: both swallow misspelt ones without a word.

Read from the sources of the installed packages, which are not imported: no torch and no GPU is needed. docs/gpu.md has
the command that fetches them; without them these tests are skipped.
"""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine import backends

OURS = Path(backends.__file__).parent

V2_CALLABLES = {
    "ExLlamaV2DynamicGenerator": ("generator/dynamic.py", "ExLlamaV2DynamicGenerator", "__init__"),
    "ExLlamaV2DynamicJob": ("generator/dynamic.py", "ExLlamaV2DynamicJob", "__init__"),
    "_CACHES[mode]": ("cache.py", "ExLlamaV2Cache_Q4", "__init__"),
    "self.config.arch_compat_overrides": ("config.py", "ExLlamaV2Config", "arch_compat_overrides"),
    "self.tokenizer.encode": ("tokenizer/tokenizer.py", "ExLlamaV2Tokenizer", "encode"),
    "self.tokenizer.decode": ("tokenizer/tokenizer.py", "ExLlamaV2Tokenizer", "decode"),
}
V3_CALLABLES = {
    "exllamav3.Generator": ("generator/generator.py", "Generator", "__init__"),
    "exllamav3.Job": ("generator/job.py", "Job", "__init__"),
    "exllamav3.Cache": ("cache/cache.py", "Cache", "__init__"),
    "exllamav3.LLGuidanceFilter": ("generator/filter/llguidance.py", "LLGuidanceFilter", "__init__"),
    "self.model.load": ("model/model.py", "Model", "load_gen"),
    "self.tokenizer.encode": ("tokenizer/tokenizer.py", "Tokenizer", "encode"),
    "self.tokenizer.decode": ("tokenizer/tokenizer.py", "Tokenizer", "decode"),
}
# What a cache does not know it hands on to its layers.
HANDED_ON = {"exllamav3.Cache": ("cache/quant.py", "CacheLayer_quant", "__init__")}
V2_METHODS = [
    ("model.py", "ExLlamaV2", ("load_autosplit", "unload")),
    ("tokenizer/tokenizer.py", "ExLlamaV2Tokenizer", ("single_id",)),
    ("generator/dynamic.py", "ExLlamaV2DynamicGenerator", ("enqueue", "iterate", "clear_queue", "reset_page_table")),
    (
        "generator/filters/base.py",
        "ExLlamaV2Filter",
        ("begin", "feed", "next", "use_background_worker", "can_mask_logits", "prepare_logit_mask", "mask_logits"),
    ),
]
V3_METHODS = [
    ("model/config.py", "Config", ("from_directory",)),
    ("model/model.py", "Model", ("from_config", "unload")),
    ("tokenizer/tokenizer.py", "Tokenizer", ("from_config", "single_id")),
    ("cache/cache.py", "Cache", ("reset_states",)),
    ("generator/generator.py", "Generator", ("enqueue", "iterate", "clear_queue", "close")),
    ("generator/pagetable.py", "PageTable", ("reset_page_table",)),
]
RESULT_KEYS = (
    "job", "stage", "eos", "eos_reason", "eos_triggering_token_str", "full_completion", "held", "text", "token_ids",
    "logits", "cached_tokens", "new_tokens",
)  # fmt: skip
REASONS = ("stop_token", "stop_string", "max_new_tokens", "end_filter")
# The sampler's own memory, and what does nothing while its multiplier, probability or switch is 0.
V2_LEFT_OUT = {
    "mirostat_mu", "post_sampling_hooks", "ngram_trie", "ngram_index", "ngram_history", "dry_allowed_length", "dry_base",
    "dry_sequence_breakers", "dry_range", "dry_max_ngram", "xtc_threshold", "xtc_ignore_tokens",
}  # fmt: skip


def package(name: str) -> Path:
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        pytest.skip(f"the package {name} is not installed; docs/gpu.md says how to run this without torch")
    return Path(spec.submodule_search_locations[0])


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def klass(module: ast.Module | ast.ClassDef, name: str) -> ast.ClassDef:
    (found,) = (node for node in module.body if isinstance(node, ast.ClassDef) and node.name == name)
    return found


def parameters(file: Path, class_name: str, function: str) -> set[str]:
    functions = {node.name: node for node in klass(tree(file), class_name).body if isinstance(node, ast.FunctionDef)}
    arguments = functions[function].args
    return {argument.arg for argument in [*arguments.args, *arguments.kwonlyargs]}


def calls(file: Path) -> Iterator[tuple[str, set[str]]]:
    for node in ast.walk(tree(file)):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), {keyword.arg for keyword in node.keywords if keyword.arg}


def dict_keys(file: Path, name: str) -> set[str]:
    """Keys of the dict that is assigned to ``name``, or returned by the function of that name."""
    for node in ast.walk(tree(file)):
        target = getattr(getattr(node, "target", None), "id", None)
        if target == name or (isinstance(node, ast.FunctionDef) and node.name == name):
            (literal,) = (inner for inner in ast.walk(node) if isinstance(inner, ast.Dict))
            return {ast.literal_eval(key) for key in literal.keys if key is not None}
    raise AssertionError(f"{file} has no {name}")


@pytest.mark.parametrize(
    ("library", "ours", "callables"),
    [
        ("exllamav2", "exllamav2_parts.py", V2_CALLABLES),
        ("exllamav3", "exllamav3_parts.py", V3_CALLABLES),
    ],
)
def test_every_keyword_is_a_parameter(library: str, ours: str, callables: dict[str, tuple[str, str, str]]) -> None:
    root = package(library)
    seen = set()
    for name, keywords in [*calls(OURS / ours), *calls(OURS / "exllama_parts.py")]:
        if name in callables and keywords:
            file, class_name, function = callables[name]
            known = parameters(root / file, class_name, function)
            if name in HANDED_ON:
                file, class_name, function = HANDED_ON[name]
                known |= parameters(root / file, class_name, function)
            assert keywords <= known, name
            seen.add(name)
    assert seen == set(callables)


@pytest.mark.parametrize(("library", "methods"), [("exllamav2", V2_METHODS), ("exllamav3", V3_METHODS)])
def test_every_method_is_there(library: str, methods: list[tuple[str, str, tuple[str, ...]]]) -> None:
    root = package(library)
    for file, class_name, names in methods:
        body = klass(tree(root / file), class_name).body
        assert set(names) <= {node.name for node in body if isinstance(node, ast.FunctionDef)}, class_name


def test_every_setting_of_exllamav2_is_set() -> None:
    sampler = klass(tree(package("exllamav2") / "generator/sampler.py"), "ExLlamaV2Sampler")
    fields = {ast.unparse(node.target) for node in klass(sampler, "Settings").body if isinstance(node, ast.AnnAssign)}
    ours = dict_keys(OURS / "exllamav2_parts.py", "NEUTRAL_SETTINGS")
    assert ours <= fields and fields - ours == V2_LEFT_OUT


def test_every_setting_of_the_sampler_of_exllamav3_is_one() -> None:
    known = parameters(package("exllamav3") / "generator/sampler/presets.py", "ComboSampler", "__init__")
    assert dict_keys(OURS / "exllamav3_parts.py", "sampler_settings") <= known


@pytest.mark.parametrize(
    ("library", "files"),
    [
        ("exllamav2", ["generator/dynamic.py"]),
        ("exllamav3", ["generator/job.py", "generator/generator.py"]),
    ],
)
def test_every_key_of_a_result_and_every_reason_is_written_there(library: str, files: list[str]) -> None:
    root = package(library)
    words = {
        node.value
        for file in files
        for node in ast.walk(tree(root / file))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    assert {*RESULT_KEYS, *REASONS} <= words
    if library == "exllamav3":
        assert "error" in words


@pytest.mark.parametrize(
    ("library", "file", "words"),
    [
        ("exllamav2", "model.py", "Insufficient VRAM for model and cache"),
        ("exllamav3", "model/model_ls.py", "Insufficient VRAM in split for model and cache"),
    ],
)
def test_a_lack_of_memory_is_said_in_the_words_that_are_looked_for(library: str, file: str, words: str) -> None:
    assert words in (package(library) / file).read_text(encoding="utf-8")
