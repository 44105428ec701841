"""Bytes that editors, shells and broken tools leave behind all become clean text."""

from __future__ import annotations

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notewell.sources.notes import decode_note


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        pytest.param(b"", "", id="empty"),
        pytest.param("grün 漢字 🎉\n".encode(), "grün 漢字 🎉\n", id="utf-8"),
        pytest.param(codecs.BOM_UTF8 + b"# A", "# A", id="utf-8 with a mark"),
        pytest.param("# é\r\n".encode("utf-16"), "# é\n", id="utf-16 with a mark"),
        pytest.param(codecs.BOM_UTF16_BE + "# 漢".encode("utf-16-be"), "# 漢", id="utf-16 big endian"),
        pytest.param(codecs.BOM_UTF32_LE + "# 漢".encode("utf-32-le"), "# 漢", id="utf-32 is not taken for utf-16"),
        pytest.param("plain".encode("utf-16-le"), "plain", id="utf-16 without a mark stays readable"),
        pytest.param(codecs.BOM_UTF16_LE + b"a\x00\x00\xd8b\x00", "a\ufffdb", id="half a surrogate pair in utf-16"),
        pytest.param(codecs.BOM_UTF16_LE + b"a\x00b", "a\ufffd", id="utf-16 cut in the middle of a unit"),
        pytest.param(b"caf\xe9 au lait", "caf\ufffd au lait", id="latin-1 byte"),
        pytest.param(b"\xed\xa0\x80", "\ufffd\ufffd\ufffd", id="a surrogate written as utf-8"),
        pytest.param(b"a\x00b", "ab", id="NUL is removed"),
        pytest.param(b"a\r\nb\rc\nd", "a\nb\nc\nd", id="all three line ends"),
        pytest.param("a\u2028b\x0bc\x0cd\x85e".encode(), "a\u2028b\x0bc\x0cd\x85e", id="other breaks end no line"),
        pytest.param("a\ufeffb".encode(), "a\ufeffb", id="a mark inside the text is text"),
    ],
)
def test_decode_note(raw, expected):
    assert decode_note(raw) == expected


@given(st.binary(max_size=200))
def test_any_bytes_become_clean_text(raw):
    text = decode_note(raw)
    text.encode()  # raises for a lone surrogate
    assert "\0" not in text
    assert "\r" not in text
