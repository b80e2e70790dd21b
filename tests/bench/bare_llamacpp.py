"""``python -m tests.bench.bare_llamacpp RUN_DIR MODE``: the requests of a run's plan, put to the library with nothing around it.

MODE is ``exact``, without flash attention as evaldesk runs it, or ``defaults``, as the library comes.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import xllamacpp

from engine.backends.llamacpp import CONTEXT_LENGTH, compute_threads
from engine.runs.plan_file import read_plan
from engine.runs.protocol import RunDir
from engine.runs.states import read_description


def main() -> None:
    """Print {requests_per_s}; the model is loaded, and one request is done, before the clock starts."""
    run_dir = RunDir(Path(sys.argv[1]))
    params = xllamacpp.CommonParams()
    params.model.path = read_description(run_dir).model.path
    params.n_parallel = 1
    params.n_ctx = CONTEXT_LENGTH
    for cpu in (params.cpuparams, params.cpuparams_batch):
        cpu.n_threads = compute_threads()
    if sys.argv[2] == "exact":
        params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    params.port = 0
    params.verbosity = 1
    server = xllamacpp.Server(params)
    requests = read_plan(run_dir)
    server.handle_chat_completions({"messages": [{"role": "user", "content": "hello"}], "max_tokens": 8})
    started = time.monotonic()
    for request in requests:
        server.handle_chat_completions({"messages": list(request.messages), **request.sampling})
    print(json.dumps({"requests_per_s": len(requests) / (time.monotonic() - started)}))


if __name__ == "__main__":
    main()
