"""Fences recalled text, and strips fenced text from messages.

Recalled text appears in the transcript of the conversation. The fence marks it, so that it never becomes new memory.
"""

from __future__ import annotations

import re

FENCE_TAG = "recalled-memory"
MIN_PIECE = 80  # characters; shorter pieces are useless
CUT_MARK = " […]"

# Possessive quantifiers: long runs of blanks are scanned once.
_OPENING = re.compile(rf"<(?=\s*+/?\s*+{FENCE_TAG}\b)", re.IGNORECASE)
_BEGINS = re.compile(rf"<\s*{FENCE_TAG}\b", re.IGNORECASE)
_ENDS = re.compile(rf"<\s*/\s*{FENCE_TAG}\s*>", re.IGNORECASE)
_IN_ATTRIBUTE = str.maketrans({"&": "&amp;", '"': "&quot;", "<": "&lt;", ">": "&gt;", "\n": " ", "\r": " "})


def fence(text: str, origin: str) -> str:
    """Return the text marked as recalled data with its origin; nothing in it can end the fence early."""
    inner = _OPENING.sub("&lt;", text)
    return f'<{FENCE_TAG} origin="{origin.translate(_IN_ATTRIBUTE)}">\n{inner}\n</{FENCE_TAG}>'


def fence_within(text: str, origin: str, budget: int) -> str:
    """Return the fenced text, cut to fit into `budget` characters; empty if too little would be left."""
    fenced = fence(text, origin)
    while len(fenced) > budget:
        text = text.removesuffix(CUT_MARK)
        text = text[: len(text) - max(len(fenced) - budget, 0) - len(CUT_MARK)]
        if len(text) < MIN_PIECE:
            return ""
        text += CUT_MARK
        fenced = fence(text, origin)
    return fenced


def strip_fenced(text: str) -> str:
    """Return the text without what was fenced, and without the fences themselves."""
    if FENCE_TAG not in text.lower():
        return text
    kept: list[str] = []
    done = 0
    # Each search starts where the last one ended, so that openings that never close cost no more than others.
    while begins := _BEGINS.search(text, done):
        opened = text.find(">", begins.end())
        if opened < 0:  # no tag ends from here on
            break
        kept.append(text[done : begins.start()])
        ends = _ENDS.search(text, opened + 1)
        # An opening without its end fences the rest: a cut-off piece of recalled text is still recalled text.
        done = ends.end() if ends else len(text)
    return "".join([*kept, text[done:]])
