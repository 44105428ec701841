"""Replaces every secret in a text with a mark, before anything else sees the text.

The patterns are our own. detect-secrets, the maintained library for this, works on lines of files, is configured
by process-wide state, knows 27 kinds (no Anthropic, Groq, Hugging Face, Vault or Supabase keys) and judges every
quoted string by its entropy alone; `python -m evals.redaction --compare` compares the two.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from itertools import groupby

__all__ = ["REDACTION_VERSION", "Finding", "Redacted", "Redactor", "redact"]

REDACTION_VERSION = 4  # grows when more is hidden than before: an index built earlier may hold secrets
MOST_PASSES = 4  # hiding one secret may reveal another; the second pass hardly ever finds one
NEAR = 2  # lines before and behind a mark in which it can reveal one: tokens are wrapped, keys come in pairs
_LINES = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_LINE_ENDS = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class Finding:
    """A secret that was hidden: what kind it is, where it stood and the mark that stands there now."""

    kind: str
    line: int  # 1-based
    mark: str


@dataclass(frozen=True, slots=True)
class Redacted:
    """Text without secrets, with the lines of the original, and what was hidden."""

    text: str
    found: tuple[Finding, ...] = ()


class Redactor:
    """Hides secrets behind marks made with `key`, by default the user's."""

    def __init__(self, key: bytes | None = None) -> None:
        self._key = key

    def redact(self, text: str) -> Redacted:
        """Return the text with its secrets hidden; doing it twice changes nothing more."""
        once = self._once(text)
        found, fresh = once.found, once.found
        lines = _lines_of(once.text) if found else []
        for _ in range(MOST_PASSES - 1):
            if not fresh:
                break
            fresh = tuple(self._again(lines, {each.line for each in fresh}))
            found += fresh
        if not found:
            return once
        return Redacted("".join(lines), tuple(sorted(found, key=lambda finding: finding.line)))

    def _again(self, lines: list[str], changed: Collection[int]) -> Iterator[Finding]:
        """Hide what a mark has revealed in the lines next to it; yield what it was."""
        near = sorted({line + by for line in changed for by in range(-NEAR, NEAR + 1) if 0 < line + by <= len(lines)})
        for _, group in groupby(enumerate(near), key=lambda each: each[1] - each[0]):
            numbers = [number for _, number in group]
            first, last = numbers[0] - 1, numbers[-1]
            again = self._once("".join(lines[first:last]))
            if again.found:
                lines[first:last] = _lines_of(again.text)
                yield from (replace(each, line=each.line + first) for each in again.found)

    def _once(self, text: str) -> Redacted:
        from notewell.text.redaction.marks import mark_of, user_key
        from notewell.text.redaction.scanning import find_secrets  # compiling its patterns takes 80 ms

        secrets = find_secrets(text)
        if not secrets:
            return Redacted(text)
        key = user_key() if self._key is None else self._key
        parts: list[str] = []
        found: list[Finding] = []
        done, line = 0, 1
        for secret in secrets:
            before = text[done : secret.start]
            line += before.count("\n") + before.count("\r") - before.count("\r\n")
            mark = mark_of(secret.kind, secret.value, key)
            breaks = _LINE_ENDS.findall(text, secret.start, secret.end)
            parts += [before, mark, *breaks]
            found.append(Finding(secret.kind, line, mark))
            line += len(breaks)
            done = secret.end
        return Redacted("".join([*parts, text[done:]]), tuple(found))


def _lines_of(text: str) -> list[str]:
    """Return the lines with their ends; most texts have only one kind of them, which is split four times as fast."""
    if "\r" in text:
        return _LINES.findall(text)
    *lines, last = text.split("\n")
    return [f"{line}\n" for line in lines] + ([last] if last else [])


_USERS_REDACTOR = Redactor()


def redact(text: str) -> Redacted:
    """Return the text with its secrets hidden behind marks that are the same for the same secret and user."""
    return _USERS_REDACTOR.redact(text)
