"""Answers in, lines for people out; shared by every surface that shows text."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from recollect import Check, Hit, IndexPreview, IndexReport, SearchAnswer, Status

    Style = Callable[[str], str]


def _plain(text: str) -> str:
    return text


def search_lines(answer: SearchAnswer, *, strong: Style = _plain, faint: Style = _plain) -> Iterator[str]:
    """Yield each hit: where it is, how well it fits, what it says."""
    if not answer.hits:
        yield "no hits"
    for number, hit in enumerate(answer.hits, start=1):
        if number > 1:
            yield ""
        yield f"{strong(hit.citation)}  {faint(f'{hit.score:.2f} {_found_by(hit)}')}"
        for line in hit.snippet.split("\n"):
            yield f"  {line}".rstrip()
        if hit.explanation is not None:
            yield "  " + faint(" ".join(f"{name}={value}" for name, value in hit.explanation.items()))


def report_lines(report: IndexReport) -> Iterator[str]:
    """Yield what an indexing run did."""
    counts = {
        "new": report.added,
        "changed": report.changed,
        "renamed": report.renamed,
        "removed": report.removed,
        "unchanged": report.unchanged,
    }
    files = ", ".join(f"{count:,} {name}" for name, count in counts.items() if count) or "none"
    vectors = ", ".join(
        f"{count:,} {name}"
        for name, count in {
            "embedded": report.embedded,
            "reused": report.reused,
            "by words only": report.unknown,
            "pending": report.pending,
        }.items()
        if count
    )
    yield f"notes: {files}" + (f"; chunks: {vectors}" if vectors else "") + f" ({report.seconds:.1f} s)"


def preview_lines(preview: IndexPreview) -> Iterator[str]:
    """Yield what an indexing run would do."""
    if preview.rebuild_reason:
        yield f"everything would be indexed anew: {preview.rebuild_reason}"
    for name, paths in (("new", preview.added), ("changed", preview.changed), ("removed", preview.removed)):
        for path in paths:
            yield f"{name:8} {path}"
    yield (
        f"{len(preview.added):,} new, {len(preview.changed):,} changed, {len(preview.removed):,} removed, "
        f"{preview.unchanged:,} unchanged; {preview.chunks:,} chunks, about {preview.tokens:,} tokens, "
        f"{preview.known:,} of them embedded before"
    )


def status_lines(status: Status) -> Iterator[str]:
    """Yield the state of the memory as aligned pairs."""
    embedder = status.embedder or "none"
    rows = {
        "workspace": status.workspace,
        "agent": status.agent,
        "notes": f"{status.files:,} files, {status.chunks:,} chunks"
        + (f", {status.pending:,} without a vector" if status.pending else ""),
        "search": status.mode,
        "embedder": f"{embedder} ({status.embedder_reason})",
        "index": f"{status.state_folder}, {status.index_bytes / 2**20:.1f} MB"
        + (", read-only" if status.read_only else ""),
        "cache": f"{status.cache_entries:,} vectors, {status.cache_bytes / 2**20:.1f} MB",
        "fresh": "no: notes changed, `recollect index` takes them in" if status.stale else "yes",
    }
    for name, value in rows.items():
        yield f"{name:10} {value}"
    yield from check_lines(status.checks)


def check_lines(checks: Iterable[Check], *, good: Style = _plain, bad: Style = _plain) -> Iterator[str]:
    """Yield a line a check, and what to do where one failed."""
    for check in checks:
        yield f"{good('ok  ') if check.ok else bad('FAIL')} {check.name:9} {check.detail}"
        if check.hint:
            yield f"     {'':9} {check.hint}"


def _found_by(hit: Hit) -> str:
    return {"both": "meaning+words", "vector": "meaning", "keyword": "words"}[hit.found_by]
