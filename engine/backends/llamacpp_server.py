"""xllamacpp's server object, set up for judging: slots that share one prompt, a closed door, the reply as generated."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import xllamacpp

_SAVED = "shared.bin"
_SLOT_LIMIT_S = 120.0
_LOG_ERRORS = 1


class SlotServer:
    """One loaded model with ``slots`` independent contexts of ``context_length`` tokens each.

    The library always opens a listener on a free loopback port; a random key of this process closes it to others.
    It is used here only to save and restore slots, which the in-process interface does not offer. ``kept_mib`` is the
    memory for prompts that another one displaced: a later one with the same beginning takes it from there.
    """

    def __init__(
        self,
        path: Path,
        *,
        context_length: int,
        slots: int,
        threads: int,
        kept_mib: int,
        slot_directory: Path,
        api_key: str,
    ) -> None:
        params = xllamacpp.CommonParams()
        params.model.path = str(path)
        params.n_parallel = slots
        params.n_ctx = context_length * slots
        # Separate slots: a unified cache computes attention over all slots' tokens and loses prefixes when it is full.
        params.kv_unified = False
        params.cache_ram_mib = kept_mib
        params.cache_idle_slots = False
        params.cache_prompt = True
        # Flash attention sums in another order when the prompt's beginning is cached, and was slower here on long prompts.
        params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
        params.cont_batching = True
        params.ctx_shift = False
        for cpu in (params.cpuparams, params.cpuparams_batch):
            cpu.n_threads = threads
        params.warmup = False
        params.reasoning_format = xllamacpp.common_reasoning_format.COMMON_REASONING_FORMAT_NONE
        params.force_pure_content_parser = True
        params.hostnames = ["127.0.0.1"]
        params.port = 0
        params.api_keys = [api_key]
        params.ui = False
        params.endpoint_props = False
        params.endpoint_metrics = False
        params.slot_save_path = f"{slot_directory}/"
        params.verbosity = _LOG_ERRORS
        self._slots = slots
        self._key = api_key
        self._directory = slot_directory
        self._restoring = threading.Lock()
        self._server = xllamacpp.Server(params)

    def chat(self, body: dict[str, Any]) -> dict[str, Any]:
        """One request of the OpenAI chat form; blocks, and lets other threads run. Errors come as {"error": ...}."""
        reply: dict[str, Any] = self._server.handle_chat_completions(body)
        return reply

    def fill_slots(self, messages: Sequence[dict[str, str]]) -> int:
        """Compute the prompt of ``messages`` in slot 0 and copy it to all slots; returns its tokens found cached.

        Call it only while no request runs. Raises OSError or RuntimeError when that does not work.
        """
        body = {"messages": list(messages), "max_tokens": 1, "temperature": 0, "top_k": 1, "id_slot": 0}
        reply = self.chat({**body, "cache_prompt": True})
        if "error" in reply:
            raise RuntimeError(str(reply["error"]))
        with self._restoring:
            try:
                self._slot(0, "save")
                for slot in range(1, self._slots):
                    self._slot(slot, "restore")
            finally:
                (self._directory / _SAVED).unlink(missing_ok=True)
        return int(reply["timings"]["cache_n"])

    def _slot(self, slot: int, action: str) -> None:
        host, _, port = str(self._server.listening_address).removeprefix("http://").rpartition(":")
        connection = http.client.HTTPConnection(host, int(port), timeout=_SLOT_LIMIT_S)
        try:
            headers = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"}
            connection.request("POST", f"/slots/{slot}?action={action}", json.dumps({"filename": _SAVED}), headers)
            response = connection.getresponse()
            said = response.read()
            if response.status != 200:
                raise RuntimeError(f"slot {slot} {action}: {response.status} {said[:200]!r}")
        except http.client.HTTPException as error:
            raise RuntimeError(f"slot {slot} {action}: {error!r}") from error
        finally:
            connection.close()
