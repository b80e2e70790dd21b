"""What a server's entry in models.json may set beside its address, checked."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine.errors import EvaldeskError

_ADDRESS = ("model", "key_env", "snapshot")


@dataclass(frozen=True)
class ServerOptions:
    """0 means no limit and no price. Prices are per million tokens, in whatever currency they were given."""

    requests_per_minute: float = 0.0
    tokens_per_minute: float = 0.0
    price_in: float = 0.0
    price_out: float = 0.0
    timeout: float = 300.0
    """Seconds for one request as a whole, from sending it to the last byte of its reply."""


def server_options(options: Mapping[str, Any], where: str) -> ServerOptions:
    """The options of a ModelSpec, those of the address aside; raises EvaldeskError naming the one that is wrong."""
    said = {name: value for name, value in options.items() if name not in _ADDRESS}
    known = ServerOptions.__dataclass_fields__
    for name, value in said.items():
        if name not in known:
            raise _wrong(f"a server has no option {name!r}; there are {', '.join(known)}", where)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
            raise _wrong(f"the option {name} is a number, 0 or more", where)
    return ServerOptions(**{name: float(value) for name, value in said.items() if value or name != "timeout"})


def _wrong(what: str, where: str) -> EvaldeskError:
    return EvaldeskError(what, where=where, remedy="Correct the entry in models.json, or add the server again.")
