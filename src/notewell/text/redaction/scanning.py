"""Finds every secret in a text.

Most text holds no secret and must pass quickly: a few searches for literals and one for a long run of letters and
digits decide whether any pattern is tried, and then only where the literal or the run stands.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from notewell.text.redaction.assignments import assigned_secrets, is_placeholder, looks_random
from notewell.text.redaction.kinds import (
    BASE64,
    BEGINNINGS,
    BY_BEGINNING,
    LONGEST_BEGINNING,
    MARKED,
    RUN,
    RUN_WITH_SIGNS,
    Kind,
)

_Place = tuple[int, int, str, int]  # first character, the one after the last, kind, certainty: 0 is the highest

_SIGNS = b"+/=%.~@:$"


def _table(signs: bytes) -> bytes:
    """Return a table that makes an x of every character of a run and a blank of all others."""
    return bytes(
        ord("x") if chr(byte).isascii() and (chr(byte).isalnum() or byte in signs) else 32 for byte in range(256)
    )


# A plain search for so many x is ten times as fast as a pattern for so many letters and digits.
_TABLE, _NEEDLE = _table(b"_-"), b"x" * RUN
_TABLE_WITH_SIGNS, _NEEDLE_WITH_SIGNS = _table(b"_-" + _SIGNS), b"x" * RUN_WITH_SIGNS

_URL_PASSWORD = re.compile(r"://[^\s:/?#@\"'`<>\[\]]{0,128}:(?!\d{1,5}[/?#])(?P<value>[^\s/@\"'`<>\[\]]{1,512})@")
_KEY_BEGINS = re.compile(r"-{4,5} ?BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}")
_KEY_ENDS = re.compile(r"-{4,5} ?END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}|-{4,5} ?BEGIN ")
# What follows the first line of a key that was cut off: lines of base64, headers, ends of line, also escaped ones.
_KEY_BODY = re.compile(
    r"(?:\s+|\\+[nr]|[>|*\"'+,]|(?:Proc-Type|DEK-Info|Version|Comment|Hash)[:][^\n\\]*|[A-Za-z0-9+/=]{16,})*"
)
_BROKEN = re.compile(r"\\?[ \t]*\r?\n[ \t]*(?:[>|#*][ \t]*)?")
_LINE_END = re.compile(r"[A-Za-z0-9_.+/=$%-]{0,4}[ \t]*\\?\r?\n")  # a few characters may belong to what follows
_LONGEST_KEY = 20_000  # characters; a 16,384-bit RSA key has about 13,000


@dataclass(frozen=True, slots=True)
class Secret:
    """Where a secret stands. `value` is the secret without the line breaks that were put into it."""

    start: int
    end: int
    kind: str
    value: str


def find_secrets(text: str) -> list[Secret]:
    """Return the secrets of a text, first to last; none overlaps another."""
    places = list(_places(text))
    if not places:
        return []
    return [Secret(start, end, kind, _value(text, start, end)) for start, end, kind, _ in _apart(places)]


def _places(text: str) -> Iterator[_Place]:
    plain = text.encode("ascii", "replace")  # one byte a character: positions stay
    if _NEEDLE_WITH_SIGNS in plain.translate(_TABLE_WITH_SIGNS):
        for kind in BASE64:
            if kind.beginnings[0] in text:
                yield from _with_base64(text, kind)
        for literal, kind in MARKED.items():
            if literal in text:
                yield from _marked(text, kind)
    yield from _prefixed(text, plain.translate(_TABLE))
    if "PRIVATE KEY" in text:
        yield from _private_keys(text)
    if "://" in text:
        yield from _url_passwords(text)
    for start, end, name in assigned_secrets(text):
        yield start, end, name, 3


def _prefixed(text: str, runs: bytes) -> Iterator[_Place]:
    end = done = 0
    begin = runs.find(_NEEDLE)
    while begin >= 0:
        first = max(end, begin - LONGEST_BEGINNING)
        end = runs.find(b" ", begin + RUN)
        end = len(text) if end < 0 else end
        for beginning in BEGINNINGS.finditer(text, first, end):
            if beginning.start() < done:  # inside of the token before
                continue
            for place in _token_at(text, beginning.start(), BY_BEGINNING[beginning.group()]):
                done = place[1]
                yield place
        begin = runs.find(_NEEDLE, end)


def _with_base64(text: str, kind: Kind) -> Iterator[_Place]:
    (beginning,) = kind.beginnings
    at = text.find(beginning)
    while at >= 0:
        yield from _token_at(text, at, (kind,))
        at = text.find(beginning, at + 1)


def _token_at(text: str, at: int, kinds: Sequence[Kind]) -> Iterator[_Place]:
    """Yield the token that begins here, even if it was wrapped."""
    unwrapped: _Unwrapped | None = None
    may_be_broken = text.find("\n", at, at + _REACH) >= 0
    for kind in kinds:
        found = kind.pattern.match(text, at)
        end = found.end() if found else None
        if may_be_broken and (end is None or _LINE_END.match(text, end)):
            unwrapped = unwrapped or _unwrapped_after(text, at)
            end = unwrapped.end_of(kind.pattern, end)
        if end is not None:
            yield at, end, kind.name, 0
            return


def _marked(text: str, kind: Kind) -> Iterator[_Place]:
    for found in kind.pattern.finditer(text):
        start, end = found.span(found.re.groups and 1)
        yield start, end, kind.name, 1


def _url_passwords(text: str) -> Iterator[_Place]:
    at = text.find("://")
    while at >= 0:
        found = _URL_PASSWORD.match(text, at)
        if found and not is_placeholder(found["value"]):
            yield *found.span("value"), "url-password", 2
        at = text.find("://", at + 3)


def _private_keys(text: str) -> Iterator[_Place]:
    at = 0
    while begins := _KEY_BEGINS.search(text, at):
        ends = _KEY_ENDS.search(text, begins.end(), begins.end() + _LONGEST_KEY)
        if ends and "END" in ends.group():
            at = ends.end()
        else:
            body = _KEY_BODY.match(text, begins.end(), ends.start() if ends else len(text))
            at = begins.end() + len(body.group().rstrip()) if body else begins.end()
        yield begins.start(), at, "private-key", 0


def _apart(places: list[_Place]) -> list[_Place]:
    """Return the places without overlaps, in order; the surer one wins, then the longer one."""
    kept: list[_Place] = []
    for place in sorted(places, key=lambda place: (place[3], place[0] - place[1], place[0])):
        at = bisect_left(kept, place)
        before, after = kept[at - 1 : at] if at else [], kept[at : at + 1]
        if all(other[1] <= place[0] for other in before) and all(place[1] <= other[0] for other in after):
            kept.insert(at, place)
    return kept


def _value(text: str, start: int, end: int) -> str:
    value = text[start:end]
    return _BROKEN.sub("", value) if "\n" in value else value


# --- tokens that a terminal or mail program has wrapped ------------------------------------------

_REACH = 1200  # characters looked at behind a beginning; the longest tokens that are wrapped are JWTs

# A break in a token: a run goes up to the end of the line (perhaps with the shell's backslash) and on in the next one,
# for 6 characters at least: less is not worth hiding and could be a word.
_LINE_BREAK = re.compile(r"(?<=[A-Za-z0-9_.+/=$%-])[ \t]*\\?\r?\n[ \t]*(?:[>|#*][ \t]*)?(?=[A-Za-z0-9_.+/=$%-]{6})")
_WRAPPED_PIECE = re.compile(r"[A-Za-z0-9_.+/=$%-]+")
_MIXED = re.compile(r"[0-9]|[a-z].*[A-Z]|.[A-Z].*[a-z]")


@dataclass(frozen=True, slots=True)
class _Unwrapped:
    """Text without its breaks, and where in the original each piece begins."""

    text: str
    offset: int  # where the token begins in `text`
    pieces: tuple[tuple[int, int], ...]  # (position in `text`, position in the original), ascending

    def end_of(self, pattern: re.Pattern[str], straight: int | None) -> int | None:
        """Return where a token ends in the original if it goes on after line breaks; `straight` is its end if not."""
        found = pattern.match(self.text, self.offset) if len(self.pieces) > 1 else None
        if found is None:
            return straight
        end = self._original(found.end())
        if straight is not None and end <= straight:
            return straight
        if straight is None:  # only with the next line is the form complete
            return end if looks_random(found.group()) else None
        inside = [at for at, _ in self.pieces[1:] if at < found.end()]
        return end if all(self._continues(at, found) for at in inside) else straight

    def _continues(self, at: int, found: re.Match[str]) -> bool:
        """Say whether a piece goes on with a token that could have ended before: it holds digits or mixed case."""
        piece = _WRAPPED_PIECE.match(self.text, at, found.end())
        return piece is not None and _MIXED.search(piece.group()) is not None

    def _original(self, position: int) -> int:
        begins, original = next((piece for piece in reversed(self.pieces) if piece[0] < position), self.pieces[0])
        return original + position - begins


def _unwrapped_after(text: str, at: int) -> _Unwrapped:
    """Return the text from shortly before `at` on, without its breaks."""
    first = max(0, at - 8)  # patterns look at what stands before a token
    last = min(len(text), at + _REACH)
    parts: list[str] = []
    pieces: list[tuple[int, int]] = []
    length, begins = 0, first
    for found in (*_LINE_BREAK.finditer(text, at, last), None):
        ends = found.start() if found else last
        pieces.append((length, begins))
        parts.append(text[begins:ends])
        length += ends - begins
        begins = found.end() if found else last
    return _Unwrapped("".join(parts), at - first, tuple(pieces))
