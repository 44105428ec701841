"""Replaces every secret in a text with a mark, before anything else sees the text.

The patterns are our own. detect-secrets, the maintained library for this, works on lines of files, is configured
by process-wide state, knows 27 kinds (no Anthropic, Groq, Hugging Face, Vault or Supabase keys) and judges every
quoted string by its entropy alone; `python -m evals.redaction --compare` compares the two.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["REDACTION_VERSION", "Finding", "Redacted", "Redactor", "redact"]

REDACTION_VERSION = 1  # grows when more is hidden than before: an index built earlier may hold secrets
MOST_PASSES = 4  # hiding one secret may reveal another; the second pass hardly ever finds one
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
        found: tuple[Finding, ...] = ()
        for _ in range(MOST_PASSES):
            once = self._once(text)
            if not once.found:
                break
            text, found = once.text, found + once.found
        return Redacted(text, tuple(sorted(found, key=lambda finding: finding.line)))

    def _once(self, text: str) -> Redacted:
        from notewell.text.redaction.marks import MARK, mark_of, user_key
        from notewell.text.redaction.scanning import find_secrets  # compiling its patterns takes 80 ms

        hidden = [(mark.start(), mark.end()) for mark in MARK.finditer(text)] if "[secret:" in text else []
        parts: list[str] = []
        found: list[Finding] = []
        done, line = 0, 1
        for secret in find_secrets(text):
            if any(secret.start < end and start < secret.end for start, end in hidden):
                continue
            before = text[done : secret.start]
            line += len(_LINE_ENDS.findall(before))
            mark = mark_of(secret.kind, secret.value, user_key() if self._key is None else self._key)
            breaks = _LINE_ENDS.findall(text, secret.start, secret.end)
            parts += [before, mark, *breaks]
            found.append(Finding(secret.kind, line, mark))
            line += len(breaks)
            done = secret.end
        if not found:
            return Redacted(text)
        return Redacted("".join([*parts, text[done:]]), tuple(found))


_USERS_REDACTOR = Redactor()


def redact(text: str) -> Redacted:
    """Return the text with its secrets hidden behind marks that are the same for the same secret and user."""
    return _USERS_REDACTOR.redact(text)
