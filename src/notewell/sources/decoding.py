"""Bytes of a note in, clean text out: no byte order mark, no NUL, no lone surrogate, every line ended by a newline."""

from __future__ import annotations

import codecs

# Longest first: the UTF-32 mark begins with the UTF-16 one.
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


def decode_note(raw: bytes) -> str:
    r"""Return the text of a note; never fails.

    What is not valid in its encoding becomes U+FFFD. NUL is removed, which also makes Latin text in UTF-16 without a
    mark readable. Only "\n", "\r\n" and "\r" end a line, as in an editor; U+2028, "\v" and "\f" do not.
    """
    text = _decoded(raw)
    if "\0" in text:
        text = text.replace("\0", "")
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text


def _decoded(raw: bytes) -> str:
    for mark, encoding in _BYTE_ORDER_MARKS:
        if raw.startswith(mark):
            return raw[len(mark) :].decode(encoding, "replace")
    return raw.decode("utf-8", "replace")
