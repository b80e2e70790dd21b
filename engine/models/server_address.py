"""Which server answers, for which model: base URLs in one form, and the identity that request keys use."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from engine.errors import EvaldeskError
from engine.hashing import content_hash
from engine.models.fingerprint import SCHEME, Fingerprint

_ENDPOINTS = ("/chat/completions", "/completions", "/models", "/embeddings")
_KEPT = "Nothing was changed."
# Upper case alone: what people paste by mistake is the key itself, and keys hold small letters.
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]{0,99}")
_UNSEEN = re.compile(r"[\x00-\x20\x7f-\xa0\u2000-\u200f\u2028-\u202e]")


@dataclass(frozen=True)
class ServerAddress:
    """A model behind an OpenAI-compatible server; build it with ``server_address``.

    ``key_env`` names the environment variable (or the keyring's entry) that holds the key, "" for none. ``snapshot`` is the
    exact name that replies have to carry, "" where any dated snapshot of ``model`` will do.
    """

    url: str
    model: str
    key_env: str = ""
    snapshot: str = ""

    @property
    def fingerprint(self) -> Fingerprint:
        """From base URL, model name and pinned snapshot alone: nobody is asked."""
        parts = [self.url, self.model, self.snapshot]
        sampled = content_hash([SCHEME, "server", parts])
        return Fingerprint(sampled[:16], sampled, None, dict(zip(("url", "model", "snapshot"), parts, strict=True)))


def server_address(url: str, model: str, key_env: str = "", snapshot: str = "") -> ServerAddress:
    """The address with its URL in normal form; raises EvaldeskError for what cannot be one."""
    if not model.strip():
        raise EvaldeskError("the name of the server's model is empty", kept=_KEPT, remedy="Say it with --model.")
    if key_env and not _VARIABLE.fullmatch(key_env):
        # What stands there may be the key: it is not repeated.
        raise EvaldeskError(
            "the key's environment variable has a name of capital letters, digits and underscores; this is not one",
            kept=_KEPT,
            remedy="Give the variable's name, not the key itself, for example OPENAI_API_KEY.",
        )
    return ServerAddress(normal_url(url), model.strip(), key_env, snapshot.strip())


def normal_url(url: str) -> str:
    """The base URL without a final slash, with /v1 where no path is given; raises EvaldeskError unless http or https."""
    text = url.strip()
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise _refused(f"the server's URL cannot be read ({error})") from error
    if parts.scheme.lower() not in ("http", "https") or not host or _UNSEEN.search(text):
        raise _refused("a server's URL starts with http:// or https:// and a host, and holds no blanks")
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise _refused("a server's URL holds no user, password, query or fragment, for it is written down")
    scheme, host = parts.scheme.lower(), host.lower()
    host = f"[{host}]" if ":" in host else host
    shown_port = "" if port in (None, {"http": 80, "https": 443}[scheme]) else f":{port}"
    path = parts.path.rstrip("/")
    for endpoint in _ENDPOINTS:
        path = path.removesuffix(endpoint).rstrip("/")
    return f"{scheme}://{host}{shown_port}{path or '/v1'}"


def sends_key_in_clear(address: ServerAddress) -> bool:
    """Whether the key would go unencrypted to another machine."""
    parts = urlsplit(address.url)
    return bool(address.key_env) and parts.scheme == "http" and not is_loopback(parts.hostname or "")


def is_loopback(host: str) -> bool:
    """Whether this host is this machine; names other than localhost are not looked up."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False


def _refused(what: str) -> EvaldeskError:
    return EvaldeskError(what, kept=_KEPT, remedy="Give the base URL, for example http://127.0.0.1:8000/v1.")
