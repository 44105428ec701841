"""Documents for the chunking tests, and the checks every list of chunks must pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from notewell.chunking.lines import weigh
from notewell.sources.notes import split_front_matter
from notewell.types import Chunk, Document, FileStamp


def document_of(text: str, *, metadata: Mapping[str, str] | None = None, body_first_line: int = 1) -> Document:
    return Document(
        stamp=FileStamp("memory", "memory/note.md", len(text), 0),
        text=text,
        content_hash="",
        body_first_line=body_first_line,
        metadata=metadata or {},
    )


def read_document(text: str) -> Document:
    metadata, body_first_line = split_front_matter(text)
    return document_of(text, metadata=metadata, body_first_line=body_first_line)


def assert_spans_exact(document: Document, chunks: Sequence[Chunk]) -> None:
    """The text is the span's lines, or the first lines whole and a piece of the last, which was too long."""
    lines = document.text.split("\n")
    for chunk in chunks:
        assert 1 <= chunk.first_line <= chunk.last_line <= len(lines)
        own = lines[chunk.first_line - 1 : chunk.last_line]
        if chunk.text != "\n".join(own):
            *whole, piece = chunk.text.split("\n")
            assert whole == own[:-1]
            assert piece in own[-1]


def assert_covers_body(document: Document, chunks: Sequence[Chunk]) -> None:
    """Every line that is not blank is in a chunk; of a line that was cut, every character that is not blank."""
    lines = document.text.split("\n")
    whole: set[int] = set()
    pieces: dict[int, list[str]] = {}
    for chunk in chunks:
        *above, last = chunk.text.split("\n")
        whole.update(range(chunk.first_line, chunk.first_line + len(above)))
        if last == lines[chunk.last_line - 1]:
            whole.add(chunk.last_line)
        else:
            pieces.setdefault(chunk.last_line, []).append(last)
    for number, line in enumerate(lines, start=1):
        if number < document.body_first_line or not line.strip() or number in whole:
            continue
        covered = 0
        for piece in pieces.get(number, []):
            start = line.rfind(piece, 0, covered + len(piece) + _blanks_at(line, covered))
            assert start >= 0, (line, piece)
            covered = max(covered, start + len(piece))
        assert not line[covered:].strip()


def _blanks_at(line: str, place: int) -> int:
    return len(line[place:]) - len(line[place:].lstrip())


def assert_light_enough(chunks: Sequence[Chunk], tokens: int) -> None:
    assert [weigh(chunk.text) for chunk in chunks if weigh(chunk.text) > 4 * tokens] == []


def assert_in_order(chunks: Sequence[Chunk]) -> None:
    spans = [(chunk.first_line, chunk.last_line) for chunk in chunks]
    assert spans == sorted(spans)
