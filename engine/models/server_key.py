"""The key of a server: from the environment, else from the keyring; never written anywhere."""

from __future__ import annotations

import importlib.util
import os

from engine.errors import EvaldeskError

SERVICE = "evaldesk"
"""Under this service the keyring holds keys, each under the name of its variable: keyring set evaldesk OPENAI_API_KEY."""


def find_key(variable: str) -> str:
    """The key that ``variable`` names, "" for no variable; raises EvaldeskError when there is none or it is no key."""
    if not variable:
        return ""
    key = (os.environ.get(variable) or _from_keyring(variable)).strip()
    if not key:
        raise EvaldeskError(
            f"the key is missing: the environment variable {variable} is not set, and the keyring holds none",
            remedy=f"Set {variable}, or store it once with: keyring set {SERVICE} {variable} (package keyring).",
        )
    if not (key.isascii() and key.isprintable() and " " not in key):
        raise EvaldeskError(
            f"the key in {variable} holds characters that no request can carry",
            remedy="Look for blanks, line ends or quotation marks in it.",
        )
    return key


def _from_keyring(variable: str) -> str:
    if importlib.util.find_spec("keyring") is None:
        return ""
    try:
        import keyring

        return keyring.get_password(SERVICE, variable) or ""
    except Exception:  # noqa: BLE001
        # Keyrings fail in as many ways as there are desktops, mostly for lack of one: then there is no key.
        return ""
