"""Base URLs in one form, and servers told apart by what decides their replies."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import EvaldeskError
from engine.models.server_address import is_loopback, normal_url, sends_key_in_clear, server_address


@pytest.mark.parametrize(
    ("given_url", "normal"),
    [
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000/v1"),
        ("http://127.0.0.1:8000/", "http://127.0.0.1:8000/v1"),
        ("http://127.0.0.1:8000/v1/", "http://127.0.0.1:8000/v1"),
        (" HTTPS://API.Example.COM:443/v1/chat/completions ", "https://api.example.com/v1"),
        ("http://host:80/v1/models", "http://host/v1"),
        ("http://host:443", "http://host:443/v1"),
        ("https://host/api/v3//", "https://host/api/v3"),
        ("http://[::1]:8080", "http://[::1]:8080/v1"),
    ],
)
def test_a_url_has_one_form(given_url: str, normal: str) -> None:
    assert normal_url(given_url) == normal == normal_url(normal)


@pytest.mark.parametrize(
    "url",
    ["", "host:8000", "ftp://host", "file:///etc/passwd", "http://", "http://user:secret@host/v1", "http://host/v1?key=secret",
     "http://host/v1#x", "http://ho st/v1", "http://host/\x1b[31m", "http://host:99999/", "http://[::1/v1", "javascript:alert(1)"],
)  # fmt: skip
def test_what_is_no_base_url_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(EvaldeskError) as refused:
        normal_url(url)
    assert "secret" not in str(refused.value) and "\x1b" not in str(refused.value)


@given(st.text(max_size=60))
def test_any_text_is_refused_or_normal(text: str) -> None:
    for url in (text, f"http://{text}"):
        try:
            normal = normal_url(url)
        except EvaldeskError:
            continue
        assert normal_url(normal) == normal and normal.startswith(("http://", "https://"))


def test_the_fingerprint_is_of_url_model_and_pinned_snapshot_alone() -> None:
    plain = server_address("http://host:8000", "m")
    assert len(plain.fingerprint.short) == 16
    assert server_address("http://HOST:8000/v1/", "m", "A_KEY").fingerprint.short == plain.fingerprint.short
    others = [
        server_address("http://host:8001", "m"),
        server_address("http://host:8000", "n"),
        server_address("http://host:8000", "m", snapshot="m-2025-01-01"),
    ]
    assert len({address.fingerprint.short for address in (plain, *others)}) == 4


@pytest.mark.parametrize("pasted", ["sk-abc123", "gsk_a1B2c3", "a key", "Bearer X", "9KEY", "K" * 101])
def test_a_key_that_is_pasted_for_its_variable_is_refused_and_not_repeated(pasted: str) -> None:
    with pytest.raises(EvaldeskError) as refused:
        server_address("http://host", "m", pasted)
    assert pasted not in str(refused.value)


@pytest.mark.parametrize(
    ("host", "loopback"),
    [("localhost", True), ("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("a.localhost", True),
     ("0.0.0.0", False), ("192.168.0.1", False), ("localhost.example.com", False), ("example.com", False)],
)  # fmt: skip
def test_which_hosts_are_this_machine(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback


def test_a_key_in_clear_is_noticed() -> None:
    assert sends_key_in_clear(server_address("http://example.com", "m", "KEY"))
    assert not sends_key_in_clear(server_address("https://example.com", "m", "KEY"))
    assert not sends_key_in_clear(server_address("http://example.com", "m"))
    assert not sends_key_in_clear(server_address("http://localhost:1", "m", "KEY"))
