"""Lines of text for people, shared by every surface."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from notewell.agents.documents import last_messages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

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
    from notewell.sessions import Session, SessionEntry

    Style = Callable[[str], str]

MAX_TITLE = 48  # characters in a list of sessions, whose lines also show an id, a time and a count


def _plain(text: str) -> str:
    return text


def search_lines(answer: SearchAnswer, *, strong: Style = _plain, faint: Style = _plain) -> Iterator[str]:
    """Yield each hit: its citation, score and snippet."""
    if not answer.hits:
        yield "no hits"
    for number, hit in enumerate(answer.hits, start=1):
        if number > 1:
            yield ""
        label = f", {hit.category}, importance {hit.importance}" if hit.category else ""
        yield f"{strong(hit.citation)}  {faint(f'{_score(hit)} {hit.found_by}{label}')}"
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
        yield f"the index would be rebuilt: {preview.rebuild_reason}"
    for name, paths in (("new", preview.added), ("changed", preview.changed), ("removed", preview.removed)):
        for path in paths:
            yield f"{name:8} {path}"
    known = f" ({preview.known / preview.chunks:.0%})" if preview.chunks else ""
    yield (
        f"{len(preview.added):,} new, {len(preview.changed):,} changed, {len(preview.removed):,} removed, "
        f"{preview.unchanged:,} unchanged; {preview.chunks:,} chunks, about {preview.tokens:,} tokens, "
        f"{preview.known:,} already embedded{known}"
    )
    if preview.cost:
        yield cost_line(preview.cost, preview.to_embed)


def cost_line(cost: CostEstimate, texts: int) -> str:
    """Return what embedding would cost, and the basis of the price."""
    work = f"to embed: {texts:,} texts, about {cost.tokens:,} tokens, with {cost.provider}/{cost.model}"
    if cost.usd is None:
        return f"{work}; price: unknown ({cost.basis})"
    cheaper = cost.batch_usd is not None and cost.batch_usd < cost.usd
    batch = f", or {dollars(cost.batch_usd)} as a batch job" if cheaper and cost.batch_usd is not None else ""
    return f"{work}; price: {dollars(cost.usd)}{batch} ({cost.basis})"


def dollars(usd: float) -> str:
    """Return an amount with a sensible number of digits."""
    if usd == 0 or usd >= 0.01:
        return f"${usd:,.2f}" if usd else "$0"
    return f"${usd:.5f}" if usd >= 0.0001 else "less than $0.0001"


def status_lines(status: Status) -> Iterator[str]:
    """Yield the state of the memory as aligned names and values."""
    embedder = status.embedder or "none"
    rows = {
        "workspace": status.workspace,
        "agent": status.agent,
        "notes": f"{status.files:,} files, {status.chunks:,} chunks"
        + (f", {status.pending:,} without a vector" if status.pending else ""),
        "search": status.mode,
        "embedder": f"{embedder} ({status.embedder_reason})",
        "index": f"{_place(status)}, {status.index_bytes / 2**20:.1f} MB" + (", read-only" if status.read_only else ""),
        "cache": f"{status.cache.entries:,} vectors, {status.cache.bytes / 2**20:.1f} MB",
        "fresh": "no: notes changed; run `notewell index`" if status.stale else "yes, by size, times and inode",
    }
    if status.fallback and status.fallback.instead_of == "qmd":
        rows["backend"] = f"{status.backend}, in place of qmd: {status.fallback.reason}"
    elif status.backend != "builtin":
        rows["backend"] = status.backend
    if status.jobs:
        rows["jobs"] = "; ".join(
            f"{job.provider} {job.id or '(new)'}, {job.chunks:,} chunks, since {job.since}" for job in status.jobs
        )
    for name, value in rows.items():
        yield f"{name:10} {value}"
    yield from check_lines(status.checks)


def _place(status: Status) -> str:
    """Return the folder of the index, or the database that holds it."""
    return status.db_path if status.db_path and "://" in status.db_path else status.state_folder


def check_lines(checks: Iterable[Check], *, good: Style = _plain, bad: Style = _plain) -> Iterator[str]:
    """Yield one line per check, and a hint where one failed."""
    for check in checks:
        yield f"{good('ok  ') if check.ok else bad('FAIL')} {check.name:9} {check.detail}"
        if check.hint:
            yield f"     {'':9} {check.hint}"


def _score(hit: Hit) -> str:
    """Return the score; where age counts also its parts, since a bare 0.00 tells nothing."""
    if not hit.relevance:
        return f"{hit.score:.2f}"
    return f"{hit.relevance:.2f} x {hit.score / hit.relevance:.2g} for age"


def remembered_lines(done: Remembered) -> Iterator[str]:
    """Yield where a text was written or is already known, and similar entries."""
    yield f"{done.citation}  {'written' if done.written else 'already known, not written again'}"
    for known in done.known:
        yield f"  {'same' if known.same else 'similar'}: {known.citation}  {known.text}"


def forget_lines(report: ForgetReport) -> Iterator[str]:
    """Yield what was forgotten, or would be."""
    for each in report.forgotten:
        yield f"{each.path}  {_lost(each)}"
    if not report.dry_run:
        chunks, vectors = _count(report.chunks, "chunk"), _count(report.vectors, "vector")
        yield f"wiped: {chunks} from the index, {vectors} from the cache"


def _lost(each: Forgotten) -> str:
    amount = _count(each.count, "line" if each.source == "memory" else "message")
    if not each.whole:
        return amount
    return f"the whole file, {amount}" if each.count else "the whole file"


def session_list_lines(entries: Sequence[SessionEntry]) -> Iterator[str]:
    """Yield one line per session."""
    if not entries:
        yield "no sessions"
    for entry in entries:
        what = "cannot be read" if entry.damage else _count(entry.message_count, "message")
        title = (entry.title or entry.channel or "")[:MAX_TITLE]
        yield f"{entry.session_id}  {entry.kind:6}  {_time(entry.updated_at)}  {what}  {title}".rstrip()


def session_lines(session: Session, *, last: int | None = None) -> Iterator[str]:
    """Yield a conversation: who said what and when, with one line per tool call."""
    entry = session.entry
    yield f"{entry.session_id}  {entry.kind}  {_count(entry.message_count, 'message')}  {entry.title or ''}".rstrip()
    for summary in session.summaries:
        yield ""
        yield f"[{summary.original_message_count} messages compacted {_time(summary.compacted_at)}]"
        yield from summary.content.split("\n")
    for message in last_messages(session, last):
        yield ""
        yield f"{message.role}  {_time(message.timestamp)}" + (f"  {message.name}" if message.name else "")
        if message.text:
            yield from (f"  {line}".rstrip() for line in message.text.split("\n"))
        yield from (f"  -> {call.name}" for call in message.tool_calls)


def _count(number: int, unit: str) -> str:
    return f"{number:,} {unit}{'' if number == 1 else 's'}"


def _time(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000).astimezone().strftime("%Y-%m-%d %H:%M") if milliseconds else "-"
