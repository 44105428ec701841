"""Answers in, lines for people out; shared by every surface that shows text."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from notewell import (
        Check,
        CostEstimate,
        ForgetReport,
        Forgotten,
        Hit,
        IndexPreview,
        IndexReport,
        Remembered,
        SearchAnswer,
        Status,
    )

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
        yield f"{strong(hit.citation)}  {faint(f'{_score(hit)} {hit.found_by}')}"
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
            "keyword-only": report.unknown,
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
        f"{preview.known:,} of them embedded before{_share(preview.known, preview.chunks)}"
    )
    if preview.cost:
        yield cost_line(preview.cost, preview.to_embed)


def cost_line(cost: CostEstimate, texts: int) -> str:
    """Return what embedding would cost, with where the price comes from."""
    work = f"to embed: {texts:,} texts, about {cost.tokens:,} tokens, by {cost.provider}/{cost.model}"
    if cost.usd is None:
        return f"{work}; price: unknown ({cost.basis})"
    by_batch = cost.batch_usd is not None and cost.batch_usd < cost.usd
    batch = f", {dollars(cost.batch_usd)} by batch job" if by_batch and cost.batch_usd is not None else ""
    return f"{work}; price: {dollars(cost.usd)}{batch} ({cost.basis})"


def dollars(usd: float) -> str:
    """Return an amount with as many digits as make sense for it."""
    if usd == 0 or usd >= 0.01:
        return f"${usd:,.2f}" if usd else "$0"
    return f"${usd:.5f}" if usd >= 0.0001 else "less than $0.0001"


def _share(part: int, whole: int) -> str:
    return f" ({part / whole:.0%})" if whole else ""


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
        "fresh": "no: notes changed, `notewell index` takes them in" if status.stale else "yes",
    }
    if status.jobs:
        rows["jobs"] = "; ".join(
            f"{job.provider} {job.id or '(new)'}, {job.chunks:,} chunks, since {job.since}" for job in status.jobs
        )
    for name, value in rows.items():
        yield f"{name:10} {value}"
    yield from check_lines(status.checks)


def check_lines(checks: Iterable[Check], *, good: Style = _plain, bad: Style = _plain) -> Iterator[str]:
    """Yield a line a check, and what to do where one failed."""
    for check in checks:
        yield f"{good('ok  ') if check.ok else bad('FAIL')} {check.name:9} {check.detail}"
        if check.hint:
            yield f"     {'':9} {check.hint}"


def _score(hit: Hit) -> str:
    """Return the score; where age counts, what it is made of: a bare 0.00 would tell nothing."""
    if not hit.relevance:
        return f"{hit.score:.2f}"
    return f"{hit.relevance:.2f} x {hit.score / hit.relevance:.2g} for age"


def remembered_lines(done: Remembered) -> Iterator[str]:
    """Yield where something was written, or where it is known already, and what is like it."""
    yield f"{done.citation}  {'written' if done.written else 'known already, not written again'}"
    for known in done.known:
        yield f"  {'says the same' if known.same else 'similar'}: {known.citation}  {known.text}"


def forget_lines(report: ForgetReport) -> Iterator[str]:
    """Yield what was forgotten, or would be."""
    for each in report.forgotten:
        yield f"{each.path}  {_lost(each)}"
    if not report.dry_run:
        yield f"wiped: {report.chunks:,} chunks of the index, {report.vectors:,} vectors of the cache"


def _lost(each: Forgotten) -> str:
    unit = "line" if each.source == "memory" else "message"
    amount = f"{each.count:,} {unit}{'' if each.count == 1 else 's'}"
    if not each.whole:
        return amount
    return f"the whole file, {amount}" if each.count else "the whole file"
