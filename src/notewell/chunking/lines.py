"""Cuts text line by line: runs of plain lines, messages of a conversation, and lines too long for one chunk."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from notewell.types import Chunk, Document, SpokenLine

if TYPE_CHECKING:
    from notewell.text.entries import Entry
    from notewell.types import EntryLabel

QUARTERS = 4  # of a token in a character: English prose averages about four characters a token

# Scripts without spaces, where a character is about a token, and full-width forms:
# jamo, radicals to unified ideographs (kana, bopomofo and hangul letters between them), jamo extended A, syllables and
# extended B, compatibility ideographs, vertical forms, half- and full-width forms, kana supplements, planes 2 and 3.
_WIDE_RUN = re.compile(
    "[\u1100-\u11ff\u2e80-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef"
    "\U0001aff0-\U0001b16f\U0001f200-\U0001f2ff\U00020000-\U0003ffff]+"
)


def weigh(text: str) -> int:
    """Return the weight of `text` in quarter tokens: 1 a character, 4 a CJK character."""
    if text.isascii():
        return len(text)
    return len(text) + (QUARTERS - 1) * sum(map(len, _WIDE_RUN.findall(text)))


def fitting_end(text: str, start: int, limit: int) -> int:
    """Return the largest `end` for which `text[start:end]` weighs at most `limit`."""
    window = text[start : start + limit]
    if weigh(window) <= limit:
        return start + len(window)
    low, high = limit // QUARTERS, len(window)
    while low < high:
        middle = (low + high + 1) // 2
        if weigh(window[:middle]) <= limit:
            low = middle
        else:
            high = middle - 1
    return start + low


def fitting_start(text: str, end: int, limit: int) -> int:
    """Return the smallest `start` for which `text[start:end]` weighs at most `limit`."""
    window = text[max(0, end - limit) : end][::-1]
    return end - fitting_end(window, 0, limit)


# --- messages ------------------------------------------------------------------------------------


def chunk_message(message: SpokenLine, *, tokens: int = 400) -> list[Chunk]:
    """Return a message of a conversation as one chunk, or as several of at most `tokens`, each with the speaker."""
    limit = max(1, tokens) * QUARTERS
    if len(message.text) * QUARTERS <= limit or weigh(message.text) <= limit:
        pieces = [message.text]
    else:
        speaker, _, said = message.text.partition(": ")
        lead = f"{speaker}: "
        room = limit - weigh(lead)
        if room < QUARTERS:  # the limit is too small for the speaker
            said, lead, room = message.text, "", limit
        cut = (said[start:end].strip() for start, end in cut_line(said, limit=room, overlap=0))
        pieces = [lead + piece for piece in cut if piece]
    return [Chunk(message.line, message.line, piece, turn=message.turn) for piece in pieces]


def chunk_dialogue(document: Document, *, tokens: int = 400) -> list[Chunk]:
    """Return the chunks of a whole conversation with one message a line; blank lines are messages left out."""
    spoken = ((number, line) for number, line in enumerate(document.text.split("\n"), start=1) if line)
    messages = (SpokenLine(number, line, turn) for turn, (number, line) in enumerate(spoken, start=1))
    return [chunk for message in messages for chunk in chunk_message(message, tokens=tokens)]


# --- cutting a line ------------------------------------------------------------------------------

# Where to cut, best first: what the piece may end with, and how full (in percent of the room) it must be by then.
# Sentence ends may cost a quarter of the room, the looser ones half of it at most, so that pieces stay few.
_CUTS = (
    ((". ", "! ", "? ", "。", "！", "？", "…"), 75),
    (("; ", ": ", ", ", "；", "：", "，", "、"), 85),
    ((" ", "\t", "\u3000"), 50),
)
_TAIL = 25  # percent of the limit; a last piece lighter than this is evened out with the one before it


def cut_line(line: str, *, limit: int, overlap: int, first_limit: int | None = None) -> Iterator[tuple[int, int]]:
    """Yield `(start, end)` of pieces that weigh at most `limit` each and together hold the whole line, in order.

    Each piece begins up to `overlap` before the end of the last one. The first may be held to `first_limit`.
    """
    start, done = 0, 0
    room = limit if first_limit is None else first_limit
    while done < len(line):
        end = fitting_end(line, start, room)
        if end < len(line):
            end = _cut_before(line, start, done, _evened(line, start, done, end, room=room, scrap=limit * _TAIL // 100))
        yield start, end
        done = end
        start = _overlap_start(line, start, end, overlap) if end < len(line) else end
        room = limit


def _evened(line: str, start: int, done: int, end: int, *, room: int, scrap: int) -> int:
    """Return an earlier end when what remains after `end` would make a mere scrap."""
    rest = weigh(line[end : end + scrap])
    if end + scrap < len(line) or rest >= scrap:
        return end
    middle = fitting_end(line, start, (room + rest + 1) // 2)
    return middle if middle > done else end


def _cut_before(line: str, start: int, done: int, end: int) -> int:
    """Return the best place to cut at or before `end`, later than `done`, up to which the line is already out."""
    for endings, percent in _CUTS:
        floor = max(done, start + (end - start) * percent // 100)
        found = ((line.rfind(ending, floor, end), ending) for ending in endings)
        for place in sorted((place + len(ending) for place, ending in found if place >= 0), reverse=True):
            if may_cut(line, place, start):
                return place
    return cut_at_or_before(line, end, max(done, start))


def _overlap_start(line: str, start: int, end: int, overlap: int) -> int:
    """Return where the next piece begins: after a blank in the last `overlap` of this one, or at its end."""
    earliest = max(start + 1, fitting_start(line, end, overlap)) if overlap else end
    blank = line.find(" ", earliest - 1, end)
    if blank >= 0:
        earliest = blank + 1
    return cut_at_or_after(line, earliest, end, start)


# --- characters as a reader sees them ------------------------------------------------------------
#
# One of them may be many code points: marks on a letter, a family of joined emoji, a flag, a Korean syllable in pieces.
# The rules are those of Unicode's UAX #29 that forbid a break; where they depend on data that Python lacks, a stricter
# rule takes their place, which at worst cuts a little earlier than needed.

_JOINER = "\u200d"
_VIRAMA = 9  # canonical combining class of signs that join two consonants
_MARKS = frozenset({"Mn", "Mc", "Me"})
# Extending characters that are no marks: joiners, half-width voicing marks, Thai and Lao vowels hung on a consonant
_EXTENDING = frozenset("\u200c\u200d\uff9e\uff9f\u0e33\u0eb3")
_JAMO = (
    ("L", "\u1100", "\u115f"),
    ("V", "\u1160", "\u11a7"),
    ("T", "\u11a8", "\u11ff"),
    ("L", "\ua960", "\ua97c"),
    ("V", "\ud7b0", "\ud7c6"),
    ("T", "\ud7cb", "\ud7fb"),
)
_GOES_ON_WITH = {
    "L": frozenset({"L", "V", "LV", "LVT"}),
    "V": frozenset({"V", "T"}),
    "LV": frozenset({"V", "T"}),
    "T": frozenset({"T"}),
    "LVT": frozenset({"T"}),
}


def cut_at_or_before(text: str, place: int, floor: int) -> int:
    """Return the last place in `floor < p <= place` where `text` may be cut; `place` itself when there is none.

    `floor` must be a place where the text may be cut, for flags are counted from there.
    """
    for candidate in range(place, floor, -1):
        if may_cut(text, candidate, floor):
            return candidate
    return place


def cut_at_or_after(text: str, place: int, ceiling: int, floor: int) -> int:
    """Return the first place in `place <= p < ceiling` where `text` may be cut; `ceiling` when there is none."""
    for candidate in range(place, ceiling):
        if may_cut(text, candidate, floor):
            return candidate
    return ceiling


def may_cut(text: str, place: int, floor: int = 0) -> bool:
    """Return whether a cut at `place` breaks no character as a reader sees it; flags are counted from `floor`."""
    if not 0 < place < len(text):
        return True
    before, after = text[place - 1], text[place]
    if before < "\x7f" and after < "\x7f":
        return not (before == "\r" and after == "\n")
    return not (
        _extends(after)
        or before == _JOINER
        or (unicodedata.combining(before) == _VIRAMA and unicodedata.category(after) == "Lo")
        or _halves_a_flag(text, place, floor)
        or _halves_a_syllable(before, after)
    )


def _extends(char: str) -> bool:
    return (
        unicodedata.category(char) in _MARKS
        or char in _EXTENDING
        or "\U0001f3fb" <= char <= "\U0001f3ff"  # skin tones
        or "\U000e0020" <= char <= "\U000e007f"  # tags, as in the flag of Scotland
    )


def _is_regional(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"


def _halves_a_flag(text: str, place: int, floor: int) -> bool:
    if not (_is_regional(text[place - 1]) and _is_regional(text[place])):
        return False
    start = place - 1
    while start > floor and _is_regional(text[start - 1]):
        start -= 1
    return (place - start) % 2 == 1


def _syllable_part(char: str) -> str:
    """Return which part of a Korean syllable a character is: L, V, T, both LV, all LVT, or none."""
    if "\uac00" <= char <= "\ud7a3":
        return "LV" if (ord(char) - 0xAC00) % 28 == 0 else "LVT"  # 28 syllables share their first two letters
    for part, first, last in _JAMO:
        if first <= char <= last:
            return part
    return ""


def _halves_a_syllable(before: str, after: str) -> bool:
    if before < "\u1100":
        return False
    return _syllable_part(after) in _GOES_ON_WITH.get(_syllable_part(before), ())


# --- runs of plain lines -------------------------------------------------------------------------
#
# As OpenClaw makes them, but never above the limit: lines are gathered until the next would not fit, and the last few
# are carried over into the next chunk. Lengths are counted in UTF-16 code units, as JavaScript counts them, so that the
# same text gives the same chunks.

_UNITS_PER_TOKEN = 4  # OpenClaw's estimate
_LEAST_UNITS = 32  # OpenClaw's floor for the limit

_Part = tuple[int, str, int]  # 1-based line, text, units with its newline


def chunk_lines(
    document: Document, *, tokens: int = 400, overlap: int = 80, entries: Sequence[Entry] = ()
) -> list[Chunk]:
    """Return runs of lines of at most `tokens`, front matter included, without context.

    Carried lines make way for the next line when both do not fit; OpenClaw 2026.2 lets such a chunk grow to twice the
    limit. A pair of surrogates is never cut. Each of the `entries` begins and ends a chunk.
    """
    limit = max(_LEAST_UNITS, tokens * _UNITS_PER_TOKEN)
    carried = max(0, overlap * _UNITS_PER_TOKEN)
    chunks: list[Chunk] = []
    current: list[_Part] = []
    units = 0
    labels = {line: entry.label for entry in entries for line in range(entry.first_line, entry.last_line + 1)}
    label: EntryLabel | None = None
    for part in _parts(document.text, limit):
        if labels and labels.get(part[0]) != label:
            if label or not all(line.startswith("#") or not line.strip() for _, line, _ in current):
                chunks += _chunk_of(current, label)
                current, units = [], 0
            label = labels.get(part[0])
        if current and units + part[2] > limit:
            chunks += _chunk_of(current, label)
            current = _carry(current, carried, limit - part[2])
            units = sum(kept[2] for kept in current)
        current.append(part)
        units += part[2]
    return chunks + _chunk_of(current, label)


def _chunk_of(parts: list[_Part], label: EntryLabel | None) -> list[Chunk]:
    text = "\n".join([part[1] for part in parts])
    return [Chunk(parts[0][0], parts[-1][0], text, label=label)] if text.strip() else []


def _carry(parts: list[_Part], least: int, room: int) -> list[_Part]:
    """Return the last parts that together reach `least` units, fewer when there is no room for them."""
    first, units = len(parts), 0
    while first and units < least and units + parts[first - 1][2] <= room:
        first -= 1
        units += parts[first][2]
    return parts[first:]


def _parts(text: str, limit: int) -> Iterator[_Part]:
    for number, line in enumerate(text.split("\n"), start=1):
        units = len(line) if line.isascii() else _units(line)
        if units <= limit:
            yield number, line, units + 1
        else:
            for segment in _segments(line, limit):
                yield number, segment, _units(segment) + 1


def _units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _segments(line: str, limit: int) -> Iterator[str]:
    """Cut a line every `limit` units, one unit earlier where the cut would part a pair of surrogates."""
    raw = line.encode("utf-16-le", "surrogatepass")
    start = 0
    while start < len(raw):
        end = min(start + 2 * limit, len(raw))
        if end < len(raw) and raw[end - 1] & 0xFC == 0xD8:  # the last unit is the first half of a pair
            end -= 2
        yield raw[start:end].decode("utf-16-le", "surrogatepass")
        start = end
