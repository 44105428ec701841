"""Splits a document into runs of plain lines, as OpenClaw does, but never above the limit.

Lines are gathered until the next would not fit; the last few are carried over into the next chunk. Lengths are counted
in UTF-16 code units, as JavaScript counts them, so that the same text gives the same chunks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from notewell.text.entries import Entry
from notewell.types import Chunk, Document, EntryLabel

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
