"""A line too heavy for one chunk in, the places to cut it out: sentence ends, else blanks, never inside a character."""

from __future__ import annotations

from collections.abc import Iterator

from notewell.chunking.graphemes import cut_at_or_after, cut_at_or_before, may_cut
from notewell.chunking.weight import fitting_end, fitting_start, weigh

# Where to cut, best first: what the piece may end with, and how full (in percent of the room) it must be by then.
# Sentence ends may cost a quarter of the room, the looser ones half of it at most, so that pieces stay few.
CUTS = (
    ((". ", "! ", "? ", "。", "！", "？", "…"), 75),
    (("; ", ": ", ", ", "；", "：", "，", "、"), 85),
    ((" ", "\t", "\u3000"), 50),
)
TAIL = 25  # percent of the limit; a last piece lighter than this is evened out with the one before it


def cut_line(line: str, *, limit: int, overlap: int, first_limit: int | None = None) -> Iterator[tuple[int, int]]:
    """Yield `(start, end)` of pieces that weigh at most `limit` each and together hold the whole line, in order.

    Each piece begins up to `overlap` before the end of the last one. The first may be held to `first_limit`.
    """
    start, done = 0, 0
    room = limit if first_limit is None else first_limit
    while done < len(line):
        end = fitting_end(line, start, room)
        if end < len(line):
            end = _cut_before(line, start, done, _evened(line, start, done, end, room=room, scrap=limit * TAIL // 100))
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
    for endings, percent in CUTS:
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
