"""Cuts lines out of a note, puts them back and marks entries as replaced, without changing any other byte."""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from notewell.errors import EntryNotFoundError, NoteUnreadableError, RememberError
from notewell.sources.notes import encoding_of
from notewell.text.entries import Entry, changed_comments, find_entries
from notewell.types import Citation

CONTEXT_LINES = 3  # remembered above and below a cut, to find its place again

ONE_STATEMENT = "cite all lines of one list item or paragraph, no heading, table or code"

_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+")
_NO_STATEMENT = re.compile(r"[ \t]*(?:#{1,6}(?:[ \t]|$)|\||>|```|~~~|<|-{3,}|={3,})|    |\t(?![ \t]*[-*+\d])")
_BESIDE = re.compile(r"[ \t]*(?:$|#{1,6}[ \t]|<!--|-->)")  # may be directly above or below a paragraph
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|$)")


@dataclass(frozen=True, slots=True)
class CutLines:
    """Consecutive lines that were cut from a note, with what is needed to put them back."""

    first_line: int  # of the first of them, 1-based
    lines: tuple[str, ...]  # with their line ends
    instead: tuple[str, ...] = ()  # what replaced them: the comment of an entry that kept some of its lines
    above: tuple[str, ...] = ()  # marks of the lines around them, the nearest last
    below: tuple[str, ...] = ()  # the nearest first


def cut_lines(raw: bytes, stored: str, lines: Collection[int]) -> tuple[bytes, tuple[CutLines, ...]]:
    """Return a note's content without these 1-based lines, and what was cut.

    An entry that loses all its text loses its comment, too.
    """
    text, encoding, errors = _decoded(raw, stored)
    listed = _lines_of(text)
    comments = changed_comments(re.sub(r"\r\n|\r", "\n", text), set(lines))
    kept: list[str] = []
    cuts: list[CutLines] = []
    gone: list[str] = []

    def end_cut(number: int, instead: tuple[str, ...] = ()) -> None:
        if gone:
            above = tuple(map(_mark_of, kept[-CONTEXT_LINES:]))
            cuts.append(CutLines(number - len(gone), tuple(gone), instead, above))
            kept.extend(instead)
            gone.clear()

    for number, line in enumerate(listed, start=1):
        if number in comments and (comment := comments[number]) is not None:
            end_cut(number)
            gone.append(line)
            end_cut(number + 1, (comment + line[len(line.rstrip("\r\n")) :],))
        elif number in comments or number in lines:
            gone.append(line)
        else:
            end_cut(number)
            kept.append(line)
    end_cut(len(listed) + 1)
    below = [
        tuple(_mark_of(line) for line in kept[at : at + CONTEXT_LINES]) for at in _places_after(cuts, first_line=1)
    ]
    cuts = [replace(cut, below=marks) for cut, marks in zip(cuts, below, strict=True)]
    return "".join(kept).encode(encoding, errors), tuple(cuts)


def put_lines_back(raw: bytes, stored: str, cuts: Sequence[CutLines], *, unchanged: bool) -> tuple[bytes, int]:
    """Return a note's content with the cut lines put back, and how many of the cuts had to go to its end.

    A note that is `unchanged` since becomes what it was, byte for byte. Otherwise lines are put between those that
    surrounded them, or at the end if these are gone.
    """
    text, encoding, errors = _decoded(raw, stored)
    listed = _lines_of(text)
    at_end: list[CutLines] = []
    if unchanged:
        listed = _merged(listed, list(zip(_places_after(cuts, first_line=0), cuts, strict=True)), newline=None)
    else:
        newline = written_in(raw, stored)[1]
        listed, at_end = _put_near(listed, cuts, newline)
        for cut in at_end:
            separator = [newline] if listed and listed[-1].strip() else []
            _add(listed, [*separator, *cut.lines], newline)
    return "".join(listed).encode(encoding, errors), len(at_end)


def _put_near(listed: Sequence[str], cuts: Sequence[CutLines], newline: str) -> tuple[list[str], list[CutLines]]:
    """Return the lines with each cut put back between those that surrounded it, and the cuts whose place is gone."""
    runs = _Runs([_mark_of(line) for line in listed])
    placed: list[tuple[int, CutLines]] = []
    homeless: list[CutLines] = []
    for cut in cuts:
        if cut.instead:  # a comment that somebody changed since stays as it is
            placed += [(at, cut) for at in runs.places(tuple(map(_mark_of, cut.instead)))[:1]]
        elif (place := _place_for(cut, runs)) is not None:
            placed.append((place, cut))
        else:
            homeless.append(cut)
    return _merged(listed, placed, newline), homeless


def _merged(listed: Sequence[str], placed: Sequence[tuple[int, CutLines]], newline: str | None) -> list[str]:
    """Return the lines with each cut inserted at its place; `newline` replaces the line endings of the cuts."""
    merged: list[str] = []
    done = 0
    for at, cut in sorted(placed, key=lambda each: each[0]):
        merged += listed[done:at]
        if newline is None:
            merged += cut.lines
        else:
            _add(merged, cut.lines, newline)
        done = max(done, at + len(cut.instead))
    return merged + list(listed[done:])


def _add(listed: list[str], lines: Iterable[str], newline: str) -> None:
    if listed and not listed[-1].endswith(("\r", "\n")):
        listed[-1] += newline
    listed += [line.rstrip("\r\n") + newline for line in lines]


def _lines_of(text: str) -> list[str]:
    """Return the lines of a text with their ends."""
    listed: list[str] = _LINE.findall(text)
    return listed if not listed or listed[-1] else listed[:-1]


def _places_after(cuts: Sequence[CutLines], *, first_line: int) -> list[int]:
    """Return the 0-based line in what is left at which each cut was made, or that after its replacement."""
    places, shift = [], 0
    for cut in cuts:
        at = cut.first_line - 1 - shift
        places.append(at + len(cut.instead) * first_line)
        shift += len(cut.lines) - len(cut.instead)
    return places


def _place_for(cut: CutLines, runs: _Runs) -> int | None:
    """Return the 0-based line before which the cut belongs: where most of the lines around it are."""
    wanted = cut.first_line - 1
    above, below = cut.above[-CONTEXT_LINES:], cut.below[:CONTEXT_LINES]
    for length in range(len(above) + len(below), 0, -1):
        found = []
        for count in range(max(0, length - len(below)), min(length, len(above)) + 1):
            run = (*above[len(above) - count :], *below[: length - count])
            if any(mark != _BLANK for mark in run):
                places = runs.places(run)
                nearest = bisect_left(places, wanted - count)
                found += [at + count for at in places[max(0, nearest - 1) : nearest + 1]]
        if found:
            return min(found, key=lambda at: (abs(at - wanted), at))
    return None


class _Runs:
    """Finds runs of lines in a note by their marks."""

    def __init__(self, marks: Sequence[str]) -> None:
        self._marks = marks
        self._by_length: dict[int, dict[tuple[str, ...], list[int]]] = {}

    def places(self, run: tuple[str, ...]) -> Sequence[int]:
        """Return where a run begins, counted from 0."""
        known = self._by_length.get(len(run))
        if known is None:
            known = self._by_length[len(run)] = {}
            for at in range(len(self._marks) - len(run) + 1):
                known.setdefault(tuple(self._marks[at : at + len(run)]), []).append(at)
        return known.get(run, ())


def _mark_of(line: str) -> str:
    """Return a hash of a line, so that the trash keeps no copy of lines that were not forgotten."""
    return hashlib.sha256(line.strip().encode("utf-8", "surrogatepass")).hexdigest()[:16]


_BLANK = _mark_of("")


def _decoded(raw: bytes, stored: str) -> tuple[str, str, str]:
    """Return the text of a note with its line endings, its encoding and the error handler to encode it without loss."""
    encoding, _, _ = written_in(raw, stored)
    errors = "surrogateescape" if encoding == "utf-8" else "strict"
    try:
        return raw.decode(encoding, errors), encoding, errors
    except UnicodeDecodeError as error:
        raise NoteUnreadableError(stored, f"it is not valid {encoding}, so no line can be taken out of it") from error


def marked_as_replaced(raw: bytes, stored: str, old: str, new: str, moment: datetime) -> bytes:
    """Return a note's content with the comment of the entry `old` saying that `new` replaced it."""
    text, encoding, errors = _decoded(raw, stored)
    lines = _lines_of(text)
    plain = "\n".join(line.rstrip("\r\n") for line in lines)
    entry = next((each for each in find_entries(plain).entries if each.id == old), None)
    if entry is None:
        raise EntryNotFoundError(old)
    line = lines[entry.comment_line - 1]
    ending = line[len(line.rstrip("\r\n")) :]
    lines[entry.comment_line - 1] = replace(entry, replaced_by=new, replaced_at=moment).comment + ending
    return "".join(lines).encode(encoding, errors)


def lines_marked_as_replaced(raw: bytes, stored: str, lines: range, entry: Entry) -> bytes:
    """Return a note's content with plain lines turned into an entry that says what replaced it.

    Raises RememberError where they are no list item or paragraph, or have changed.
    """
    text, encoding, errors = _decoded(raw, stored)
    listed = _lines_of(text)
    plain = [line.rstrip("\r\n") for line in listed]
    first, last = lines[0] - 1, lines[-1]
    indent = " " * len(found[0]) if (found := _ITEM.match(plain[first])) else ""
    if not listed[last - 1].endswith(("\r", "\n")):
        listed[last - 1] += written_in(raw, stored)[1]
    ending = listed[last - 1][len(plain[last - 1]) :]
    listed.insert(last, indent + entry.comment + ending)
    made = "".join(listed)
    found_again = find_entries(re.sub(r"\r\n|\r", "\n", made)).entries
    if "\n".join(plain[first:last]) != entry.text or not any(
        (each.id, each.text, each.first_line) == (entry.id, entry.text, lines[0]) for each in found_again
    ):
        raise RememberError(f"{Citation(stored, lines[0], lines[-1])} cannot be marked as replaced", hint=ONE_STATEMENT)
    return made.encode(encoding, errors)


def check_statement(path: str, text: str, lines: range) -> None:
    """Raise RememberError unless the lines are exactly one list item or paragraph."""
    listed = text.split("\n")
    around = [listed[number] if 0 <= number < len(listed) else "" for number in (lines[0] - 2, lines[-1])]
    inside = [listed[number - 1] for number in lines]
    is_item = bool(_ITEM.match(inside[0]))
    if (
        not all(line.strip() for line in inside)
        or _NO_STATEMENT.match(inside[0])
        or any(map(_ITEM.match, inside[1:]))
        or not (is_item or _BESIDE.match(around[0]))
        or not (_BESIDE.match(around[1]) or _ITEM.match(around[1]))
    ):
        raise RememberError(f"{Citation(path, lines[0], lines[-1])} is not a single statement", hint=ONE_STATEMENT)


def written_in(raw: bytes, stored: str) -> tuple[str, str, str]:
    """Return the encoding and line ending of a note, and its text with plain line ends."""
    mark, encoding = encoding_of(raw)
    if not mark and b"\0" in raw:
        raise NoteUnreadableError(stored, "it is not written in UTF-8, so nothing can be added to it")
    text = raw[len(mark) :].decode(encoding, "replace")
    windows, old_mac = text.count("\r\n"), text.count("\r")
    unix = text.count("\n") - windows
    newline = "\r\n" if windows > unix else "\r" if old_mac - windows > unix else "\n"
    return encoding, newline, text.replace("\r\n", "\n").replace("\r", "\n")
