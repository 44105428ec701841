"""Finds every secret in a text.

Most text holds no secret and must pass quickly: a few searches for literals and one for a long run of letters and
digits decide whether any pattern is tried, and then only where the literal or the run stands.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from notewell.text.redaction.contexts import assigned_secrets, secrets_in_context, stretches
from notewell.text.redaction.kinds import (
    BASE64,
    BEGINNINGS,
    BY_BEGINNING,
    LONGEST_BEGINNING,
    LONGEST_EDGE,
    MARKED,
    MAY_BEGIN,
    RUN,
    RUN_WITH_SIGNS,
    Kind,
    Marked,
)
from notewell.text.redaction.marks import MARK
from notewell.text.redaction.values import is_placeholder, looks_random

_Place = tuple[int, int, str, int]  # first character, the one after the last, kind, certainty: 0 is the highest

_SIGNS = b"+/=%.~@:$|,;?&\"'"


def _table(signs: bytes) -> bytes:
    """Return a table that makes an x of every character of a run and a blank of all others."""
    return bytes(
        ord("x") if chr(byte).isascii() and (chr(byte).isalnum() or byte in signs) else 32 for byte in range(256)
    )


# A plain search for so many x is ten times as fast as a pattern for so many letters and digits.
_TABLE, _NEEDLE = _table(b"_-"), b"x" * RUN
_TABLE_WITH_SIGNS, _NEEDLE_WITH_SIGNS = _table(b"_-" + _SIGNS), b"x" * RUN_WITH_SIGNS

_IN_NAMES = b"abcdefghijklmnopqrstuvwxyz_-" + _SIGNS

_URL_PASSWORD = re.compile(
    r"://[^\s:/?#@\"'`<>\[\]]{0,128}:(?!\d{1,5}[/?#])(?P<value>[^\s/@\"'`<>\[\]]{3,512})@(?!example\.)"
)
_KEY_BEGINS = re.compile(r"-----? ?BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}")
_KEY_ENDS = re.compile(r"-{4,5} ?END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}|-{4,5} ?BEGIN ")
# What follows the first line of a key that was cut off: lines of base64, headers, ends of line, also escaped ones.
_KEY_BODY = re.compile(
    r"(?:\s+|\\+[nr]|[>|*\"'+,]|(?:Proc-Type|DEK-Info|Version|Comment|Hash)[:][^\n\\]*|[A-Za-z0-9+/=]{16,})*"
)
_KEY_LINE = re.compile(r"[A-Za-z0-9+/=]{16}")
_PUTTY_LINES = re.compile(r"Private-Lines: \d{1,4}((?:\r?\n[A-Za-z0-9+/=]{4,80}){1,400})")
_BROKEN = re.compile(r"\\?[ \t]*\r?\n[ \t]*(?:[>|#*][ \t]*)?")
_LINE_END = re.compile(r"[A-Za-z0-9_.+/=$%-]{0,4}[ \t]*\\?\r?\n")  # a few characters may belong to what follows
_AWS_SECRET = re.compile(r"(?<![A-Za-z0-9/+=_])[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=_])")
_AWS_REACH = 160  # characters between the two keys of a pair: a few words, or the columns of a CSV file
_FEWEST_CHARACTERS = 8  # different ones in a token; 16 random hex digits have 10 on average
_LONGEST_KEY = 20_000  # characters; a 16,384-bit RSA key has about 13,000


@dataclass(frozen=True, slots=True)
class Secret:
    """Where a secret stands. `value` is the secret without the line breaks that were put into it."""

    start: int
    end: int
    kind: str
    value: str
    certainty: int  # 0 is the highest


class _Pieces:
    """Pieces of a text put side by side, and where each was."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._origins: list[int] = []  # where each began in the original

    def add(self, part: str, origin: int) -> None:
        self._parts.append(part)
        self._origins.append(origin)

    @property
    def text(self) -> str:
        return "".join(self._parts)

    @cached_property
    def _starts(self) -> list[int]:
        """Where each piece begins in the joined text."""
        return [0, *accumulate(map(len, self._parts[:-1]))]

    @property
    def borders(self) -> Sequence[int]:
        """Where the pieces begin in the joined text, but for the first."""
        return self._starts[1:]

    def original(self, position: int) -> int:
        """Return where a character of the joined text was."""
        piece = bisect_right(self._starts, position) - 1
        return self._origins[piece] + position - self._starts[piece]


def find_secrets(text: str) -> list[Secret]:
    """Return the secrets of a text, first to last; none overlaps another, or a mark."""
    plain = text.encode("ascii", "replace")  # one byte a character: positions stay
    secrets = [
        Secret(start, end, kind, _value(text, start, end), certainty)
        for start, end, kind, certainty in _places(text, plain)
    ]
    secrets += _disguised(text, plain)
    return _apart(text, secrets) if secrets else []


def _places(text: str, plain: bytes) -> Iterator[_Place]:
    runs = list(_runs(plain, _TABLE_WITH_SIGNS, _NEEDLE_WITH_SIGNS, [(0, len(plain))]))
    if runs:
        yield from _with_literals(text, plain.decode(), runs)
        yield from _prefixed(text, _runs(plain, _TABLE, _NEEDLE, runs))
    if b"PRIVATE KEY" in plain or b"Private-Lines:" in plain:
        yield from _private_keys(text)
    if b"://" in plain:
        yield from _url_passwords(text, plain)
    lowered = plain.lower()
    for start, end, name in secrets_in_context(text, lowered):
        yield start, end, name, 2
    for start, end, name in assigned_secrets(text, lowered):
        yield start, end, name, 3


def _runs(plain: bytes, table: bytes, needle: bytes, within: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield where the long runs are that could be random, not of small letters alone as names of programs are."""
    runs, shortest = plain.translate(table), len(needle)
    for first, last in within:
        begin = runs.find(needle, first, last)
        while begin >= 0:
            end = runs.find(b" ", begin + shortest, last)
            end = last if end < 0 else end
            if plain[begin:end].translate(None, _IN_NAMES):
                yield begin, end
            begin = runs.find(needle, end, last)


def _prefixed(text: str, runs: Iterator[tuple[int, int]]) -> Iterator[_Place]:
    end = done = 0
    for begin, run_end in runs:
        first, end = max(end, begin - LONGEST_BEGINNING), run_end
        if first > 0 and not MAY_BEGIN.search(text, max(0, first - LONGEST_EDGE), end):
            continue
        for beginning in BEGINNINGS.finditer(text, first, end):
            if beginning.start() < done:  # inside of the token before
                continue
            for place in _token_at(text, beginning.start(), BY_BEGINNING[beginning.group()]):
                done = place[1]
                yield place
                if place[2] == "aws-access-key":
                    yield from _aws_secret(text, done)


def _aws_secret(text: str, at: int) -> Iterator[_Place]:
    """Yield the secret key that stands close behind an access key, in a CSV file or a sentence."""
    found = _AWS_SECRET.search(text, at, at + _AWS_REACH)
    if found and looks_random(found.group()):
        yield *found.span(), "aws-secret-key", 1


def _with_literals(text: str, plain: str, runs: Sequence[tuple[int, int]]) -> Iterator[_Place]:
    """Yield the tokens that have a literal in a long run: it is looked for in these runs alone, put side by side."""
    pieces, done = _Pieces(), 0
    for begin, end in runs:
        first = max(done, begin - LONGEST_BEGINNING)
        done = end
        pieces.add(f"{plain[first:end]} ", first)
    joined = pieces.text
    for kind in (*BASE64, *MARKED):
        (literal,) = kind.beginnings
        at = joined.find(literal)
        while at >= 0:
            origin = pieces.original(at)
            yield from _marked_at(text, origin, kind) if isinstance(kind, Marked) else _token_at(text, origin, (kind,))
            at = joined.find(literal, at + 1)


def _token_at(text: str, at: int, kinds: Sequence[Kind]) -> Iterator[_Place]:
    """Yield the token that begins here, even if it was wrapped."""
    unwrapped: _Unwrapped | None = None
    may_be_broken = text.find("\n", at, at + _REACH) >= 0
    for kind in kinds:
        found = kind.pattern.match(text, at)
        end = found.end() if found else None
        if may_be_broken and (end is None or _LINE_END.match(text, end)):
            unwrapped = unwrapped or _Unwrapped(text, at)
            end = unwrapped.end_of(kind.pattern, end)
        if end is not None:
            start = found.start(found.re.groups and 1) if found else at
            token = text[start:end]
            # A row of x is no token, nor is AKIAIOSFODNN7EXAMPLE of the manuals.
            is_sample = len(set(token)) < _FEWEST_CHARACTERS or "EXAMPLE" in token
            if not is_sample and (not kind.random or looks_random(token)):
                yield start, end, kind.name, 0
            return


def _marked_at(text: str, at: int, kind: Marked) -> Iterator[_Place]:
    found = kind.pattern.match(text, at - kind.back) if at >= kind.back else None
    if found:
        yield *found.span(found.re.groups and 1), kind.name, 1


def _url_passwords(text: str, plain: bytes) -> Iterator[_Place]:
    at = plain.find(b"://")
    while at >= 0:
        found = _URL_PASSWORD.match(text, at)
        if found and not is_placeholder(found["value"]):
            yield *found.span("value"), "url-password", 2
        at = plain.find(b"://", at + 3)


def _private_keys(text: str) -> Iterator[_Place]:
    at = 0
    while begins := _KEY_BEGINS.search(text, at):
        ends = _KEY_ENDS.search(text, begins.end(), begins.end() + _LONGEST_KEY)
        if ends and "END" in ends.group():
            at = ends.end()
        else:
            last = ends.start() if ends else min(len(text), begins.end() + _LONGEST_KEY)
            body = _KEY_BODY.match(text, begins.end(), last)
            at = begins.end() + len(body.group().rstrip()) if body else begins.end()
        if _KEY_LINE.search(text, begins.end(), at):  # else a program only names the line
            yield begins.start(), at, "private-key", 0
    for lines in _PUTTY_LINES.finditer(text) if "Private-Lines:" in text else ():
        yield *lines.span(1), "putty-key", 0


def _apart(text: str, secrets: list[Secret]) -> list[Secret]:
    """Return the secrets without overlaps, in order; the surer one wins, then the longer one."""
    taken = bytearray(len(text))
    if "[secret:" in text:
        for mark in MARK.finditer(text):
            taken[mark.start() : mark.end()] = b"x" * (mark.end() - mark.start())
    kept: list[Secret] = []
    for secret in sorted(secrets, key=lambda each: (each.certainty, each.start - each.end, each.start)):
        if taken.find(b"x", secret.start, secret.end) < 0:
            taken[secret.start : secret.end] = b"x" * (secret.end - secret.start)
            kept.append(secret)
    kept.sort(key=lambda each: each.start)
    return kept


def _value(text: str, start: int, end: int) -> str:
    value = text[start:end]
    return _BROKEN.sub("", value) if "\n" in value else value


# --- tokens that a terminal or mail program has wrapped ------------------------------------------

_REACH = 1200  # characters looked at behind a beginning; the longest tokens that are wrapped are JWTs

# A break in a token: a run goes up to the end of the line (perhaps with the shell's backslash) and on in the next one,
# for 6 characters at least: less is not worth hiding and could be a word. It begins with a set of characters, which is
# searched fast, and what may follow depends on which of them it is.
_LINE_BREAK = re.compile(
    r"[ \t\\\r\n](?<=[A-Za-z0-9_.+/=$%-][ \t\\\r\n])(?:(?<=[ \t])[ \t]*\\?\r?\n|(?<=\\)\r?\n|(?<=\r)\n|(?<=\n))"
    r"[ \t]*(?:[>|#*][ \t]*)?(?=[A-Za-z0-9_.+/=$%-]{6})"
)
_WRAPPED_PIECE = re.compile(r"[A-Za-z0-9_.+/=$%-]+")
_MIXED = re.compile(r"[0-9]|[a-z].*[A-Z]|.[A-Z].*[a-z]")


class _Unwrapped:
    """Text from shortly before a token on, without its breaks."""

    def __init__(self, text: str, at: int) -> None:
        begins = max(0, at - 8)  # patterns look at what stands before a token
        last = min(len(text), at + _REACH)
        self._offset = at - begins
        self._pieces = _Pieces()
        for found in (*_LINE_BREAK.finditer(text, at, last), None):
            self._pieces.add(text[begins : found.start() if found else last], begins)
            begins = found.end() if found else last
        self._text = self._pieces.text

    def end_of(self, pattern: re.Pattern[str], straight: int | None) -> int | None:
        """Return where a token ends in the original if it goes on after line breaks; `straight` is its end if not."""
        found = pattern.match(self._text, self._offset) if self._pieces.borders else None
        if found is None:
            return straight
        end = self._pieces.original(found.end() - 1) + 1
        if straight is not None and end <= straight:
            return straight
        if straight is None:  # only with the next line is the form complete
            return end if looks_random(found.group()) else None
        inside = [at for at in self._pieces.borders if at < found.end()]
        return end if all(self._continues(at, found) for at in inside) else straight

    def _continues(self, at: int, found: re.Match[str]) -> bool:
        """Say whether a piece goes on with a token that could have ended before: it holds digits or mixed case."""
        piece = _WRAPPED_PIECE.match(self._text, at, found.end())
        return piece is not None and _MIXED.search(piece.group()) is not None


# --- tokens with escapes or invisible characters in them ------------------------------------------

_INVISIBLE_SIGNS = r"\u00ad\u200b-\u200f\u2060-\u2064\ufeff"
# Markdown editors write \_ for _ where nothing is to be emphasized. A pattern that begins with a set is searched fast.
_MORE_INVISIBLE = rf"(?:(?<!\\)|(?=_))(?:[{_INVISIBLE_SIGNS}]|\\(?=_))*"
_INVISIBLE = re.compile(rf"[{_INVISIBLE_SIGNS}\\]{_MORE_INVISIBLE}(?P<code>)")
# %5F for _, also encoded twice; a blank or a control character would end a token anyway.
_CODE = "(?:25){0,3}(?P<code>2[1-9A-Fa-f]|[3-6][0-9A-Fa-f]|7[0-9A-Ea-e])"
_ESCAPE = re.compile(f"%{_CODE}")
_DISGUISE = re.compile(rf"[{_INVISIBLE_SIGNS}\\%](?:(?<=%){_CODE}|(?<!%){_MORE_INVISIBLE})")
_REST_OF_WORD = re.compile(rf"(?:(?!{_ESCAPE.pattern.replace('?P<code>', '?:')}|\\_)[^\s{_INVISIBLE_SIGNS}])+")
_NAME_REACH = 80  # characters before a word in disguise: the name it is given to


def _disguised(text: str, plain: bytes) -> Iterator[Secret]:
    """Yield the secrets that show only when percent escapes are decoded and invisible characters left out."""
    escaped = _ESCAPE.search(text) is not None
    invisible = b"\\_" in plain or (
        not text.isascii() and any(_INVISIBLE.search(text, *each) for each in stretches(plain, b"?"))
    )
    if not escaped and not invisible:
        return
    disguise = _ESCAPE if not invisible else _DISGUISE if escaped else _INVISIBLE
    pieces, done = _Pieces(), 0
    for found in disguise.finditer(text):
        if found.start() > done:  # the next word with a disguise; what is between does not matter
            first = _word_start(text, found.start(), done)
            pieces.add("\n", first)
            done = first
        pieces.add(text[done : found.start()], done)
        pieces.add(chr(int(found["code"], 16)) if found["code"] else "", found.start())
        done = found.end()
        word = _REST_OF_WORD.match(text, done)
        if word:
            pieces.add(word.group(), done)
            done = word.end()
    joined = pieces.text
    for start, end, kind, certainty in _places(joined, joined.encode("ascii", "replace")):
        begin, last = pieces.original(start), pieces.original(end - 1)
        escape = _DISGUISE.match(text, last)
        ends = escape.end() if escape else last + 1
        if "\n" not in joined[start:end]:  # which stands between words
            yield Secret(begin, ends, kind, joined[start:end], certainty)


def _word_start(text: str, at: int, done: int) -> int:
    """Return where the words begin that belong to a disguise: its own, and a name before it."""
    word = max(text.rfind(blank, done, at) for blank in " \t\n\r")
    first = max(done, word - _NAME_REACH)
    return text.find(" ", first, word) + 1 or first
