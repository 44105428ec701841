"""Makes one hit of neighbouring chunks: an answer that runs on in the next chunk, or messages one after the other."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from notewell.search.snippets import SNIPPET_CHARS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from notewell.types import StoredChunk

LEAST_SHOWN = SNIPPET_CHARS // 2  # characters of each message in a snippet of several, or all of a shorter one


def joined_groups(chunks: Sequence[StoredChunk]) -> list[list[int]]:
    """Return the positions of the chunks in groups that make one hit each, in the order of their best member.

    Chunks of a note are joined while they touch or overlap and fit into a snippet together; messages of a conversation
    while they follow one another and a good part of each fits, pieces of one message always. `chunks` are ranked.
    """
    by_file: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for position, chunk in enumerate(chunks):
        by_file[chunk.source, chunk.path].append(position)
    groups: list[list[int]] = []
    for members in by_file.values():
        groups += [members] if len(members) == 1 else _groups_of_file(chunks, members)
    return sorted(groups, key=min)


def _groups_of_file(chunks: Sequence[StoredChunk], members: Sequence[int]) -> Iterator[list[int]]:
    """Grow groups in rank order, so that the better chunks choose their company first."""
    groups: list[list[int]] = []
    for position in members:
        for group in groups:
            if _fits(chunks[position], [chunks[member] for member in group]):
                group.append(position)
                break
        else:
            groups.append([position])
    yield from groups


def _fits(chunk: StoredChunk, group: Sequence[StoredChunk]) -> bool:
    if not chunk.turn:
        touching = any(c.first_line - 1 <= chunk.last_line and chunk.first_line - 1 <= c.last_line for c in group)
        return touching and len(lines_text([*group, chunk]) or "") in range(1, SNIPPET_CHARS + 1)
    if any(chunk.turn == other.turn for other in group):
        return True
    if all(abs(chunk.turn - other.turn) > 1 for other in group):
        return False
    shown = {other.turn: min(LEAST_SHOWN, _length(other)) for other in (*group, chunk)}
    return sum(shown.values()) <= SNIPPET_CHARS


def _length(message: StoredChunk) -> int:
    return len(message.text) if message.parts == 1 else LEAST_SHOWN


def lines_text(chunks: Sequence[StoredChunk]) -> str | None:
    """Return the lines that chunks of one note cover together; None when they do not fit together line by line.

    Pieces of a single long line do not: their lines do not say what lies between them.
    """
    text: dict[int, str] = {}
    for chunk in sorted(chunks, key=lambda c: (c.first_line, c.last_line)):
        lines = chunk.text.split("\n")
        if len(lines) != chunk.last_line - chunk.first_line + 1:
            return None
        for number, line in enumerate(lines, start=chunk.first_line):
            if text.setdefault(number, line) != line:
                return None
    numbers = list(text)
    return "\n".join(text.values()) if numbers == list(range(numbers[0], numbers[-1] + 1)) else None
