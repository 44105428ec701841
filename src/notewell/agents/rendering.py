"""Renders results as lines of text for people."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from notewell.agents.documents import last_messages
from notewell.text.entries import CATEGORY, IMPORTANCE

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
        Listed,
        MemoryList,
        Remembered,
        SearchAnswer,
        Status,
        Trashed,
        UndoReport,
    )
    from notewell.sessions import Session, SessionEntry

    Style = Callable[[str], str]

SHORT_WIDTH = 120  # columns of a hit in one line, where there is no terminal
LEAST_TEXT = 20  # columns for text, however narrow the terminal
TAB = 4  # columns
_LEAD = re.compile(r"\s*(?:(?:[-*+>]|\d{1,3}[.)])\s+)*")
# Between words and, in scripts without spaces, between characters, except before closing and after opening marks.
_BREAK = re.compile(
    r"\s+|(?<=[\u3000-\u9fff\uac00-\ud7af\uff00-\uffef])(?<![「『（［｛〈《【〔〖])"
    r"(?=[^\s、。，．：；！？・ー」』）］｝〉》】〕〗”’…—,.:;!?)\]}])"
)

_MORE_BLANK_LINES = re.compile(r"\n(?:[ \t]*\n){2,}")

MAX_FIRST_LINE = 90  # characters of an entry in a list
MAX_LINES_OF_A_FILE = 10  # shown of a forgotten file: enough to recognize it
MAX_TITLE = 48  # characters in a list of sessions


def _plain(text: str) -> str:
    return text


@dataclass(frozen=True, slots=True)
class Look:
    """How lines look: styled for a terminal, or plain."""

    strong: Style = _plain
    faint: Style = _plain
    marked: Style | None = None  # words of the query
    width: int | None = None  # of the terminal; long lines wrap below their indent


PLAIN = Look()


def search_lines(answer: SearchAnswer, look: Look = PLAIN, *, short: bool = False) -> Iterator[str]:
    """Yield each hit: its citation, score and snippet, or with `short` one line of it."""
    if not answer.hits:
        yield "no hits"
    for number, hit in enumerate(answer.hits, start=1):
        if short:
            yield _one_line(hit, answer.query, look, look.width)
            continue
        if number > 1:
            yield ""
        yield f"{look.strong(hit.citation)}  {look.faint(', '.join(_about(hit)))}"
        for line in _MORE_BLANK_LINES.sub("\n\n", hit.snippet).split("\n"):
            yield from _marked_lines(f"  {line}".rstrip(), answer.query, look.marked, look.width)
        if hit.explanation is not None:
            yield "  " + look.faint(" ".join(f"{name}={value}" for name, value in hit.explanation.items()))


def _about(hit: Hit) -> Iterator[str]:
    """Yield facts about a hit."""
    yield f"{_score(hit)} {hit.found_by}"
    if hit.source == "sessions" and hit.dated:  # a note's path says it
        yield hit.dated.isoformat()
    if hit.category and (hit.category, hit.importance) != (CATEGORY, IMPORTANCE):
        yield f"{hit.category}, importance {hit.importance}"
    if hit.replaces:
        yield f"replaces {', '.join(place.citation for place in hit.replaces)}"
    if hit.replaced_by:
        yield f"replaced by {hit.replaced_by.citation}"


def timeline_lines(answer: SearchAnswer, look: Look = PLAIN) -> Iterator[str]:
    """Yield one line per hit: its day, where it is, and what it says."""
    if not answer.hits:
        yield "no hits"
    for hit in answer.hits:
        day = f"{hit.dated.isoformat() if hit.dated else 'undated':10}  "
        yield day + _one_line(hit, answer.query, look, (look.width or SHORT_WIDTH) - len(day))


def _one_line(hit: Hit, query: str, look: Look, width: int | None) -> str:
    """Return a hit as one line: its citation, and its line with the most words of the query."""
    from notewell.search.snippets import ELLIPSIS, matched_spans

    lines = [line.strip() for line in hit.snippet.split("\n") if line.strip() not in {"", ELLIPSIS}]
    best = max(lines, key=lambda line: (len(matched_spans(line, query)), line[:1] != "#"), default="")
    lead = f"{hit.citation}  {hit.score:.2f}  "
    room = _room_beside(lead, width or SHORT_WIDTH)
    spans = matched_spans(best, query)
    if spans and cell_width(best[: spans[0][1]]) > room:  # show the match
        best = ELLIPSIS + best[max(0, spans[0][0] - room // 3) :]
    best = _shortened(best.expandtabs(TAB), room)
    text = "".join(_marked_lines(best, query, look.marked, None))
    return f"{look.strong(hit.citation)}  {look.faint(f'{hit.score:.2f}')}  {text}"


def _marked_lines(line: str, query: str, marked: Style | None, width: int | None) -> Iterator[str]:
    """Yield a line wrapped below its indent, with the words of the query marked."""
    line = line.expandtabs(TAB) if width else line
    spans: Sequence[tuple[int, int]] = ()
    if marked:
        from notewell.search.snippets import matched_spans

        spans = matched_spans(line, query)
    indent = " " * _hanging(line) if width and width - _hanging(line) >= LEAST_TEXT else ""
    for number, (start, stop) in enumerate(wrapped(line, width, len(indent)) if width else [(0, len(line))]):
        shown, at = indent if number else "", start
        for span in spans:
            first, last = max(span[0], at), min(span[1], stop)
            if first < last and marked:
                shown += line[at:first] + marked(line[first:last])
                at = last
        yield shown + line[at:stop]


def _room_beside(lead: str, width: int) -> int:
    """Return the columns left for a text after `lead`, including the next row if these are too few."""
    room = width - cell_width(lead)
    while room < LEAST_TEXT:
        room += width
    return room


# --- the width of text ---------------------------------------------------------------------------


def wrapped(line: str, width: int, indent: int) -> Iterator[tuple[int, int]]:
    """Yield the half-open spans of a wrapped line; those after the first are indented.

    Lines break at blanks, between characters of scripts without spaces, and elsewhere only if nothing else fits.
    """
    start, room = 0, width
    while (most := start + fitting(line, room, start)) < len(line):
        stop = most = max(most, start + 1)
        breaks = [found.end() for found in _BREAK.finditer(line, start + 1, most + 1)]
        if breaks and not line[start : breaks[-1]].isspace():
            stop = breaks[-1]
            while stop < len(line) and line[stop].isspace():
                stop += 1
        yield start, start + len(line[start:stop].rstrip())
        start, room = stop, width - indent
    if start < len(line) or not start:
        yield start, len(line)


def cell_width(text: str) -> int:
    """Return the width of a text on a terminal: two columns for wide characters, none for combining marks.

    Control characters take four, since they are shown as escapes.
    """
    if text.isascii() and text.isprintable():
        return len(text)
    return sum(map(_cells, text))


def _cells(char: str) -> int:
    if unicodedata.category(char) == "Cc":
        return 4
    return 0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in {"W", "F"} else 1


def fitting(text: str, width: int, start: int = 0) -> int:
    """Return the number of characters from `start` on that fit into a width."""
    used = 0
    for place in range(start, len(text)):
        used += cell_width(text[place])
        if used > width:
            return place - start
    return len(text) - start


def _hanging(line: str) -> int:
    """Return the column in which the text of a line begins, after indent and list marker."""
    found = _LEAD.match(line)
    return len(found[0]) if found else 0


def list_lines(found: MemoryList, look: Look = PLAIN) -> Iterator[str]:
    """Yield one line per entry, note or conversation: its date, its citation and its beginning."""
    if not found.items:
        yield "nothing found"
    for item in found.items:
        about = " ".join(filter(None, (item.entry, item.author and f"by {item.author}", _standing(item))))
        about = f"  ({about})" if about else ""
        lead = f"0000-00-00  {item.citation}  {about}"
        text = _shortened(item.text.split("\n", 1)[0], _room_beside(lead, look.width) if look.width else MAX_FIRST_LINE)
        yield f"{item.when:%Y-%m-%d}  {look.strong(item.citation)}  {text}{about and look.faint(about)}"
    if found.total > len(found.items):
        yield look.faint(f"{len(found.items):,} of {found.total:,} shown; see more with --limit")


def history_lines(entries: Iterable[Listed], look: Look = PLAIN) -> Iterator[str]:
    """Yield whole entries with author, time and what replaced them."""
    for number, item in enumerate(entries):
        if number:
            yield ""
        made = (item.author and f"by {item.author}", item.origin and f"from {item.origin}", _standing(item))
        about = ", ".join(filter(None, (item.entry, f"{item.when:%Y-%m-%d %H:%M}", *made)))
        yield f"{look.strong(item.citation)}  {look.faint(about)}"
        for line in item.text.split("\n"):
            yield from _marked_lines(f"  {line}".rstrip(), "", None, look.width)


def _standing(item: Listed) -> str:
    if item.replaced_by:
        return f"replaced{f' {item.replaced_at:%Y-%m-%d}' if item.replaced_at else ''} by {item.replaced_by}"
    return f"replaces {', '.join(item.replaces)}" if item.replaces else ""


def _shortened(text: str, most: int) -> str:
    """Return a text, cut to a number of columns."""
    return text if cell_width(text) <= most else f"{text[: fitting(text, most - 1)].rstrip()}…"


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
        f"{preview.unchanged:,} unchanged; {_count(preview.chunks, 'chunk')}, about {preview.tokens:,} tokens, "
        f"{preview.known:,} already embedded{known}"
    )
    if preview.cost:
        yield cost_line(preview.cost, preview.to_embed)


def cost_line(cost: CostEstimate, texts: int) -> str:
    """Return what embedding would cost, and the basis of the price."""
    work = f"to embed: {_count(texts, 'text')}, about {cost.tokens:,} tokens, with {cost.provider}/{cost.model}"
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
        "index": f"{_place(status)}, {_estimated(status)}{status.index_bytes / 2**20:.1f} MB"
        + (", read-only" if status.read_only else ""),
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


def _estimated(status: Status) -> str:
    """Return the word before the size of the index if that is an estimate."""
    return "about " if "://" in _place(status) else ""


def check_lines(checks: Iterable[Check], *, good: Style = _plain, bad: Style = _plain) -> Iterator[str]:
    """Yield one line per check, and a hint where one failed."""
    for check in checks:
        yield f"{good('ok  ') if check.ok else bad('FAIL')} {check.name:9} {check.detail}"
        if check.hint:
            yield f"     {'':9} {check.hint}"


def _score(hit: Hit) -> str:
    """Return the score, with its parts if age counts."""
    if not hit.relevance:
        return f"{hit.score:.2f}"
    return f"{hit.relevance:.2f} x {hit.score / hit.relevance:.2g} for age"


def remembered_lines(done: Remembered) -> Iterator[str]:
    """Yield where a text was written or is already known, and similar entries."""
    replaced = f", replaces {done.replaced.citation}" if done.replaced else ""
    yield f"{done.citation}  {'written' if done.written else 'already known, not written again'}{replaced}"
    for known in done.known:
        how = "same" if known.same else "same subject, different value" if known.differs else "similar"
        yield f"  {how}: {known.citation}  {known.text}"


def forget_lines(report: ForgetReport, *, with_text: bool = True) -> Iterator[str]:
    """Yield what was forgotten, or would be, with each line or without."""
    yield from _forgotten_lines(report.forgotten, with_text=with_text)
    if report.dry_run:
        return
    if report.for_good:
        chunks, vectors = _count(report.chunks, "chunk"), _count(report.vectors, "vector")
        yield f"wiped: {chunks} from the index, {vectors} from the cache"
    elif report.undo:
        yield f"moved to the trash for 30 days; `notewell undo {report.undo}` restores it"


def trash_lines(trash: Iterable[Trashed]) -> Iterator[str]:
    """Yield what can be restored: each call of `forget` with its id and what it took."""
    empty = True
    for batch in trash:
        empty = False
        yield f"{batch.id}  {_day(batch.forgotten_at)}, kept until {_day(batch.kept_until)}"
        yield from (f"  {line}" for line in _forgotten_lines(batch.forgotten))
    if empty:
        yield "the trash is empty"


def undo_lines(report: UndoReport) -> Iterator[str]:
    """Yield what was restored."""
    for each in report.restored:
        yield f"{each.path}  {_lost(each)} restored"


def _forgotten_lines(forgotten: Iterable[Forgotten], *, with_text: bool = True) -> Iterator[str]:
    for each in forgotten:
        yield f"{each.path}  {_lost(each)}{', in the trash' if each.in_trash else ''}"
        said = [line for line in each.lines if line.text.strip() and not line.text.startswith("<!-- notewell ")]
        shown = said if not each.whole else said[:MAX_LINES_OF_A_FILE]
        for line in shown if with_text else ():
            yield f"  L{line.line}  {line.text}" if line.line else f"  {line.text}"
        if with_text and len(shown) < len(said):
            yield f"  ... and {_count(len(said) - len(shown), 'more line')}"


def _day(moment: datetime) -> str:
    return f"{moment.astimezone():%Y-%m-%d %H:%M}"


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
