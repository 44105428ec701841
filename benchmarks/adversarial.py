"""Runs every function that reads text over strings made to slow it down, and prints how its time grows.

    python -m benchmarks.adversarial [--only NAME] [--budget SECONDS] [--show EXPONENT]

Each string is made at n, 2n and 4n characters. The exponent is the slope of the processor time between them: 1 is
linear, 2 quadratic. n is chosen for each function so that all of it takes about 5 minutes of processor time.

First a string is measured at n and 4n. Where the exponent is above 1.15, it is measured at all three, each several
times, and the least time counts: what else runs on the machine decides nothing. Where it is still above 1.2, n is
doubled until it is not, or until 4n characters take half a second: what only leaves the processor's cache on the way is
linear then, and what is quadratic is still above. It fails when one is above 1.2.
"""

from __future__ import annotations

import argparse
import gc
import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

MOST_EXPONENT = 1.2
SUSPICIOUS = 1.15  # by a first look, in which another process may have been in the way
BUDGET_S = 200.0  # for a first look at each string; what is measured again takes a quarter more
SIZES = (4_000, 50_000)  # n: fewer characters show no growth, and more are not needed where time is left
SAMPLED_EVERY = 12  # strings by which the speed of a function is estimated
TRIES = 3
LONGEST_S = 0.5  # above it, no larger size is tried
FASTEST_S = 0.0015  # below it the clock and the garbage collector decide, not the function
# Memory is kept once it was there: fetching it from the system again costs more for long texts than for short ones.
ALLOCATOR = {
    "PYTHONMALLOC": "malloc",
    "MALLOC_TRIM_THRESHOLD_": str(2**30),
    "MALLOC_MMAP_THRESHOLD_": str(2**25),
    "MALLOC_TOP_PAD_": str(2**26),
}
MOST_SHOWN = 3  # strings above the bound, after which a function is not measured further

TODAY = date(2026, 11, 18)
TOKENS = (
    "ghp_a1B2c3D4e5F6a1B2c3D4e5F6a1B2c3D4e5F6 ", "AKIAJ7QW3ERT5YUI2OPA ", "sk-ant-api03-" + "a1B2c3D4e5" * 10 + " ",
    "eyJhbGciOiJIUzI1NiJ9.", "xoxb-123456789012-", "glpat-", "SG.", "AC0123456789abcdef0123456789abcdef ",
)  # fmt: skip
REPEATED = (  # each one many times in a row
    *TOKENS, 'password="', "password=hunter2x ", "password of the ", "passwort für ", "密码是", "token: ", "secret=",
    "pw is ", "psk=", "a\\_", "acme_key=", "acme_key=a1b2c3d4e5f6g7h8i9j0 ", "SECRET a1b2c3d4e5f6g7h8i9j0 ",
    "pk_", "live_a1",
    "pk_prod_a1B2c3D4e5F6a1B2c3D4e5F6 ", "%YAML 1.2\n", "%a\n\n", "api_key", "key", "pass",
    "Bearer ", "Authorization: ", "curl -u a:", "curl ", "mysql -p", "login a password ",
    "seed phrase: ", "seed phrase: legal winner thank ", "abandon ", "://a:", "://a:b@", ":5432:a:b:", 'auth": "',
    "kind: Secret\ndata:\n", "kind: Secret\ndata:\n  a: YWFhYWFh\n", "%2", "%25", "%5F", "a%5F", "\u200b", "a\u200b",
    "-----BEGIN PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\n", "Private-Lines: 1\n",
    "[secret:jwt:00000000]", "[secret:", "<recalled-memory", "<recalled-memory>", "</recalled-memory>", "< ", "<",
    "<recalled-memory></recalled-memory>", "a", "a ", "aB3", "a.", "a-", "a_", "a'", "A", " ", "\t", "\n", "\r\n", "-",
    "_", "*", "**", "`", "```\n", "```", "~~~\n", "# ", "#", "# a\n", "> ", "- ", "- a\n", "1. ", "  - a\n", "|",
    "| a ", "[",
    "]", "[a](", "[a](b)", "(", ")", "{", "}", '"', "'", "\\", "\\n", ",", ":", "a: ", "a: b\n", "---\n", "+++\n",
    "<!--", "-->", "<a>", "&amp;", "/", "//", "/*", "*/", "0", "1.", "2026-11-18 ", "last week ", "two days ago ",
    "monday ", "in 1999 ", "5", "é", "e\u0301", "\u0301", "İ", "会", "会议", "の", "가", "กา", "\U0001f600", "\ud800",
    "ﬁ", "JIRA-123 ", "MemoryIndex", "l'", "\ufeff", "\x00", "\x1b[31m",
    "<!-- notewell ", "<!-- notewell id=a -->\n", "- a\n<!-- notewell id=a blocks=9 -->\n", "_Noted 2026-11-18 by a",
    ", from ", "._", "id=", "&#", "&#9", "&#9;", "&a", "\\<!-- notewell -->\n", "#L1", "#L1-L2", "@", "a/", "../",
    "%2e", "a.b.", ".1.jsonl", "-0001", "sessions/", "\u3000", "会 ", "a\u0301 ", "\r", "\x1b[", "[\n", "},\n",
    "  messages: [\n", "  ], // end of messages\n", "a,", "'a", '"a" ', "\"\\", "&lt;", "<recalled-memory a",
    "(untrusted", "a (untrusted a):\n```json\n", "<system-reminder>", "<system-reminder a", "reply ",
)  # fmt: skip
AROUND = (
    ("", ""), ("", "!"), ("a ", " b"), ("---\n", "\n---\n"), ("```\n", "\n"), ("<recalled-memory ", ""),
    ('{"a": "', '"}'),
    ("# a", "!\n"), ("a\n<!-- notewell ", " -->\n"), ('a\n<!-- notewell author="', '" -->\n'),
    ("a\n_Noted 2026-11-18 by ", "\n"),
)  # fmt: skip


Maker = Callable[[int], str]  # returns a string of about so many characters


def strings() -> Iterator[tuple[str, Maker]]:
    """Yield names, and what makes a string of any size: each piece repeated, alone and in something."""
    for piece in REPEATED:
        for before, after in AROUND if len(piece) <= 3 else AROUND[:1]:
            name = f"{before}{piece} x n{after}"
            yield name, partial(_repeated, piece, before, after)
    yield "a row of openings, then text", lambda size: "<recalled-memory>" * (size // 34) + "a " * (size // 4)
    yield "nested lists", lambda size: "".join("  " * (at % 200) + "- a\n" for at in range(size // 200))
    yield "deep brackets, closed", lambda size: "[" * (size // 2) + "]" * (size // 2)
    yield "deep objects", lambda size: '{"a":' * (size // 6) + "1" + "}" * (size // 6)
    yield "headings of every depth", lambda size: "".join("#" * (at % 6 + 1) + " a\n" for at in range(size // 6))
    yield "long line with tokens", lambda size: "x" * (size // 2) + TOKENS[0] * (size // 90)
    yield "front matter without end", lambda size: "---\n" + "a: b\n" * (size // 5)
    yield "front matter of quotes", lambda size: "---\na: " + '"' * size + "\n---\n"
    yield "objects in lists", lambda size: "[{a:" * (size // 4)
    yield "objects in lists, closed", lambda size: "[{a:" * (size // 8) + "1" + "}]" * (size // 4)
    yield "objects that never end", lambda size: '{"a": [\n' * (size // 8)
    yield "objects with comments that never end", lambda size: "{ /* a\n" * (size // 7)
    yield "a long number", lambda size: "[" + "1" * size + "]"
    yield "strings that never end", lambda size: "'a\\\n" * (size // 4)
    yield "comments that never end", lambda size: "[1, /* " * (size // 7)
    yield "members without end", lambda size: "{" + "a: 1, " * (size // 6)
    yield "the same member", lambda size: "{" + "a: 1, " * (size // 6) + "}"
    yield "rows of a table", lambda size: "| a | b |\n" * (size // 10)
    yield "anchors and aliases", lambda size: "---\nprivate: &a no\n" + "a: *a\n" * (size // 6) + "---\n"
    yield "marks of entries", lambda size: "- a\n<!-- notewell id=a -->\n" * (size // 26)
    yield "an earlier entry from many places", lambda size: "a\n_Noted 2026-11-18 by a" + ", from " * (size // 7) + "\n"
    yield (
        "entries that replace each other",
        lambda size: "".join(f"a\n<!-- notewell id={at} replaces={at + 1} -->\n" for at in range(size // 40)),
    )
    yield "different words", lambda size: " ".join(f"{at:x}" for at in range(size // 6))
    yield "different names", lambda size: " ".join(f"a{at:x}-b.c" for at in range(size // 10))
    yield "different lines", lambda size: "".join(f"- {at:x}\n" for at in range(size // 8))
    yield "messages", lambda size: "".join(f'    {{"role": "user", "content": "{at}"}},\n' for at in range(size // 40))


def _repeated(piece: str, before: str, after: str, size: int) -> str:
    return before + piece * (size // len(piece)) + after


def functions() -> dict[str, Callable[[str], Any]]:
    """Return every public function that reads text, by name."""
    return {**_of_texts(), **_of_notes(), **_of_questions(), **_of_conversations(), **_of_surfaces()}


def _of_texts() -> dict[str, Callable[[str], Any]]:
    from notewell.embedding.http_calls import without_secrets
    from notewell.embedding.providers.requests import estimate_tokens, split_text
    from notewell.text import valid_unicode
    from notewell.text.fences import fence, fence_within, strip_fenced
    from notewell.text.function_words import function_words
    from notewell.text.languages import is_mostly_latin, language_of, may_be_english
    from notewell.text.lexicon import fold, index_terms, runs, words
    from notewell.text.phrases import Phrase
    from notewell.text.redaction import Redactor
    from notewell.text.redaction.values import is_placeholder, looks_chosen, looks_like_password, looks_random

    redactor = Redactor(b"only for measuring".ljust(32))
    return {
        "redact": redactor.redact,
        "is_placeholder": is_placeholder,
        "looks_random": looks_random,
        "looks_like_password": looks_like_password,
        "looks_chosen": looks_chosen,
        "fence": lambda text: fence(text, "memory/a.md"),
        "fence_within": lambda text: fence_within(text, "memory/a.md", len(text) // 2),
        "strip_fenced": strip_fenced,
        "fold": fold,
        "words": lambda text: list(words(text)),
        "runs": runs,
        "index_terms": index_terms,
        "function_words": lambda text: function_words(list(words(text)), text),
        "language_of": language_of.__wrapped__,
        "Phrase.lines_in": Phrase("a").lines_in,
        "Phrase.lines_in, two words": Phrase("a a", whole_words=False).lines_in,
        "without_secrets": lambda text: without_secrets(text, ("a-key-that-is-not-there",)),
        "split_text": lambda text: split_text(text, len(text) // 1000),
        "estimate_tokens": estimate_tokens,
        "is_mostly_latin": is_mostly_latin,
        "may_be_english": may_be_english,
        "valid_unicode": valid_unicode,
    }


def _of_notes() -> dict[str, Callable[[str], Any]]:
    from datetime import datetime

    from notewell.chunking import chunk_document
    from notewell.chunking.lines import chunk_message
    from notewell.chunking.markdown import plain_heading
    from notewell.memory.note_files import entry_text
    from notewell.memory.note_lines import (
        check_statement,
        cut_lines,
        lines_marked_as_replaced,
        marked_as_replaced,
        put_lines_back,
        written_in,
    )
    from notewell.memory.statements import gives_other_value, similar_statements
    from notewell.sources.notes import decode_note, is_no_text, split_front_matter
    from notewell.sources.privacy import is_private
    from notewell.sources.walk import is_disguised, parts_of
    from notewell.text.entries import Entry, changed_comments, closed_text, find_entries, without_comments
    from notewell.types import Citation, Document, FileStamp, SpokenLine

    stamp = FileStamp("memory", path="memory/a.md", size=1, mtime_ns=1)

    def chunks(style: Any) -> Callable[[str], Any]:
        return lambda text: chunk_document(Document(stamp, text, ""), style=style, tokens=400, overlap=80)

    def cut_and_put_back(text: str, added: bytes) -> Any:
        raw = text.encode("utf-8", "replace")
        content, cuts = cut_lines(raw, "memory/a.md", range(1, text.count("\n") + 2, 2))
        return put_lines_back(content + added, "memory/a.md", cuts, unchanged=not added)

    return {
        "chunk_document markdown": chunks("markdown"),
        "chunk_document lines": chunks("lines"),
        "plain_heading": plain_heading,
        "chunk_message": lambda text: chunk_message(SpokenLine(1, text.replace("\n", " "), 1)),
        "split_front_matter": split_front_matter,
        "is_private": lambda text: is_private("memory/a.md", text),
        "is_private yaml": lambda text: is_private("memory/a.md", f"---\nprivate: no\n{text}\n---\n"),
        "is_private toml": lambda text: is_private("memory/a.md", f"+++\nprivate = false\n{text}\n+++\n"),
        "is_private json": lambda text: is_private("memory/a.md", f'{{"private": false, "a": [{text}]}}'),
        "decode_note": lambda text: decode_note(text.encode("utf-8", "replace")),
        "is_no_text": is_no_text,
        "written_in": lambda text: written_in(text.encode("utf-8", "replace"), "memory/a.md"),
        "is_disguised": is_disguised,
        "parts_of": parts_of,
        "Citation.parse": Citation.parse,
        "similar_statements": lambda text: similar_statements("the ferry leaves at four", "memory/a.md", text),
        "gives_other_value": lambda text: gives_other_value(text, f"a {text} is b"),
        "entry_text": entry_text,
        "Entry.lines": lambda text: Entry(text).lines,
        "Entry.comment": lambda text: Entry("a", author=text).comment,
        "find_entries": find_entries,
        "without_comments": without_comments,
        "changed_comments": lambda text: changed_comments(text, set(range(1, text.count("\n") + 2, 2))),
        "closed_text": closed_text,
        "cut_lines, put back": lambda text: cut_and_put_back(text, b""),
        "cut_lines, put back, changed": lambda text: cut_and_put_back(text, b"more\n"),
        "marked_as_replaced": lambda text: marked_as_replaced(
            text.encode("utf-8", "replace"),
            "memory/a.md",
            "a",
            "b",
            datetime(2026, 11, 18),  # noqa: DTZ001
        ),
        "lines_marked_as_replaced": lambda text: lines_marked_as_replaced(
            text.encode("utf-8", "replace"), "memory/a.md", _all_lines(text), Entry(text, id="a")
        ),
        "check_statement": lambda text: check_statement("memory/a.md", text, _all_lines(text)),
    }


def _all_lines(text: str) -> range:
    return range(1, max(1, text.count("\n")) + 1)


def _of_questions() -> dict[str, Callable[[str], Any]]:
    from notewell.openclaw.functions import build_fts_query, chunk_markdown
    from notewell.search.dates.filters import day_phrases, time_reading
    from notewell.search.dates.moments import moments
    from notewell.search.dates.question import parse_day
    from notewell.search.qmd_output import parse_results
    from notewell.search.query import query_terms
    from notewell.search.snippets import make_snippet, matched_spans
    from notewell.search.unspaced import content_pieces
    from notewell.search.word_variants import explained_in

    return {
        "make_snippet": lambda text: make_snippet(text, {"a": 1.0, "memory": 2.0}),
        "matched_spans": lambda text: matched_spans(text, "a memory"),
        "explained_in": lambda text: explained_in(text, "aab"),
        "query_terms": query_terms,
        "content_pieces": content_pieces,
        "time_reading": lambda text: time_reading(text, TODAY),
        "parse_day": lambda text: parse_day(text, TODAY),
        "moments": lambda text: moments(text, TODAY),
        "day_phrases": lambda text: day_phrases(text.split()),
        "build_fts_query": build_fts_query,
        "build_fts_query, prefixes": lambda text: build_fts_query(text, prefixes=True),
        "chunk_markdown": chunk_markdown,
        "parse_results": parse_results,
        "parse_results in a list": lambda text: parse_results(f'[{{"score": 1, "file": "{text}'),
    }


def _of_conversations() -> dict[str, Callable[[str], Any]]:
    from notewell.sessions.import_export import import_lines
    from notewell.sessions.model import SessionEntry
    from notewell.sessions.session_file import MESSAGES, salvage, text_of
    from notewell.sessions.session_folder import SessionFolder, owner_of_archive
    from notewell.sources.transcripts import id_of_group, names_of, session_at
    from notewell.sources.transcripts.json5 import (
        after_blanks,
        container_at,
        error_at,
        parse_json5,
        set_members,
        unquoted,
        with_appended,
    )
    from notewell.sources.transcripts.messages import Message, message_from_json, parse_record, record_in, spoken
    from notewell.sources.transcripts.session_files import read_messages

    def encoded(text: str) -> bytes:
        return text.encode("utf-8", "replace")

    def session(text: str) -> str:
        return f"{{\n  messages: [\n{text}\n  ], // end of messages\n}}\n"

    def edited(text: str, edit: Callable[[str], str]) -> Any:
        held = session(text)
        return edit(held) if MESSAGES.elements_of(held) else None

    def records(text: str) -> Any:
        blocks = [{"type": "text", "text": line} for line in text.split("\n")]
        said: dict[str, Any] = {"role": "user", "content": blocks}
        return [parse_record({"type": "message", "message": said}), parse_record({"type": "user", "message": said})]

    entry = SessionEntry("a", "direct")
    file = SessionFolder(Path("sessions"), 1.0, None, None).new("a", "direct")
    return {
        "parse_json5": parse_json5,
        "parse_json5 in a list": lambda text: parse_json5(f"[{text}]"),
        "parse_json5 in quotes": lambda text: parse_json5('{"a": "' + text.replace('"', '\\"') + '"}'),
        "container_at": container_at,
        "container_at in a list": lambda text: container_at(f"[{text}]"),
        "read_messages": lambda text: read_messages(encoded(text)),
        "read_messages in a session": lambda text: read_messages(encoded(session(text))),
        "record_in": lambda text: record_in(encoded(text)),
        "parse_record": records,
        "spoken": lambda text: spoken(Message("user", text, 0)),
        "message, as a session": lambda text: text_of(entry, [message_from_json({"role": "user", "content": text})]),
        "import_lines": lambda text: import_lines(text.splitlines(keepends=True)),
        "arrange": lambda text: MESSAGES.arrange(session(text)),
        "parts_of_end": lambda text: MESSAGES.parts_of_end(session(text) + text),
        "set_head": lambda text: MESSAGES.set_head(session(text), {"title": "a"}),
        "set_members": lambda text: set_members(f"{{{text}}}", 0, {"title": "a"}),
        "elements_of": lambda text: MESSAGES.elements_of(session(text)),
        "with_appended": lambda text: with_appended(session(text), "compactedHistory", {"a": 1}, before="messages"),
        "with_new_elements": lambda text: MESSAGES.with_new_elements(session(text), [{"a": 1}]),
        "with_element": lambda text: edited(text, lambda held: MESSAGES.with_element(held, 0, {"a": 1})),
        "without_elements": lambda text: edited(text, lambda held: MESSAGES.without_elements(held, 0, 1)),
        "salvage": lambda text: salvage(file, encoded(f"{{\n{text}"), {}),
        "salvage, a field": lambda text: salvage(file, encoded(f"{{\n  title: {text}"), {}),
        "owner_of_archive": owner_of_archive,
        "after_blanks": lambda text: after_blanks(text, 0),
        "unquoted": lambda text: unquoted(text, 0, f'"{text}"'),
        "error_at": lambda text: error_at(text, len(text), "broken"),
        "session_at": session_at,
        "id_of_group": id_of_group,
        "names_of": names_of,
    }


def _of_surfaces() -> dict[str, Callable[[str], Any]]:
    from notewell.agents.editing import values_of, with_member, with_table, without_member, without_table
    from notewell.agents.rendering import cell_width, fitting, wrapped
    from notewell.agents.tools.calling import without_commands
    from notewell.settings.load import line_numbers
    from notewell.settings.masking import masked_text

    return {
        "values_of": values_of,
        "values_of, a list": lambda text: values_of(f'{{"a": [{text}]}}'),
        "values_of, a string": lambda text: values_of(f'{{"a": "{text}"}}'),
        "with_member": lambda text: with_member(f'{{"a": [{text}]}}', ("mcp", "notewell"), {"a": 1}),
        "without_member": lambda text: without_member(f'{{"a": [{text}], "b": 1}}', ("b",)),
        "with_table": lambda text: with_table(text, ("mcp", "notewell"), {"a": 1}),
        "without_table": lambda text: without_table(f"{text}\n[mcp.notewell]\na = 1\n", ("mcp", "notewell")),
        "line_numbers": line_numbers,
        "masked_text": lambda text: masked_text(f"https://a.b/ {text}"),
        "without_commands": without_commands,
        "wrapped": lambda text: list(wrapped(text, 80, 4)),
        "cell_width": cell_width,
        "fitting": lambda text: fitting(text, len(text) // 2),
    }


# --- measuring -----------------------------------------------------------------------------------


def seconds(function: Callable[[str], Any], text: str, tries: int) -> float:
    """Return the least processor time of some calls; an error is an answer, too."""
    least = math.inf
    for _ in range(tries):
        gc.disable()  # its rounds grow with what lives, which is not the function's doing
        start = time.process_time()
        try:
            function(text)
        except (ValueError, RecursionError):
            pass
        except Exception as error:  # its own errors refuse the text
            if not type(error).__module__.startswith("notewell"):
                raise
        least = min(least, time.process_time() - start)
        gc.enable()
        if least < FASTEST_S / 4 or least > LONGEST_S:
            break
    return max(least, 1e-6)


def slope(times: Mapping[int, float]) -> float:
    """Return the exponent with which times grow with the length of texts: least squares over their logarithms."""
    points = [(math.log(length), math.log(each)) for length, each in times.items()]
    middle, height = (sum(each) / len(points) for each in zip(*points, strict=True))
    return sum((x - middle) * (y - height) for x, y in points) / sum((x - middle) ** 2 for x, _ in points)


class Measured:
    """What one function does with one string."""

    def __init__(self, function: Callable[[str], Any], make: Maker, n: int) -> None:
        self._function, self._make = function, make
        self._least: dict[int, float] = {}  # seconds, by size
        first = seconds(function, make(n), 3)
        self.longest_s = first if first > LONGEST_S else seconds(function, make(4 * n), 1)
        self.exponent = 0.0
        if self.longest_s < FASTEST_S:
            return
        if first > LONGEST_S:  # where 4n characters should take some hundredth of a second
            self.exponent = self._precise(n // 4)
            return
        self.exponent = slope({len(make(n)): first, len(make(4 * n)): self.longest_s})
        if self.exponent > SUSPICIOUS:
            self.exponent = self._precise(n)
        while self.exponent > MOST_EXPONENT and self._least[4 * n] < LONGEST_S:
            n *= 2
            self.exponent = self._precise(n)

    def _precise(self, n: int) -> float:
        """Return the exponent by the least of several times at n, 2n and 4n."""
        for size in (n, 2 * n, 4 * n):
            if size not in self._least:
                self._least[size] = seconds(self._function, self._make(size), TRIES)
        return slope({len(self._make(size)): self._least[size] for size in (n, 2 * n, 4 * n)})


def size_for(function: Callable[[str], Any], budget_s: float, count: int) -> int:
    """Return n, so that the function takes the budget for `count` strings at n and 4n."""
    sampled = [make(SIZES[0]) for _, make in islice(strings(), 0, None, SAMPLED_EVERY)]
    each_s = sum(seconds(function, text, 2) for text in sampled) / len(sampled)
    runs = 3 + 4  # of n characters: three at n, one at 4n
    return int(min(max(SIZES[0] * budget_s / (count * runs * each_s), SIZES[0]), SIZES[1]))


def main() -> int:
    """Measure and print; fail when a function grows faster than linearly."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--only", metavar="NAME", help="functions whose name begins so")
    parser.add_argument("--budget", type=float, default=BUDGET_S, metavar="SECONDS", help="processor time for all")
    parser.add_argument("--show", type=float, metavar="EXPONENT", help="print every text from this exponent on")
    options = parser.parse_args()
    if not os.environ.items() >= ALLOCATOR.items():
        words = [sys.executable, "-m", "benchmarks.adversarial", *sys.argv[1:]]
        os.execve(sys.executable, words, {**os.environ, **ALLOCATOR})
    texts = list(strings())
    every = functions()
    worst_of_all = 0.0
    print(
        f"{len(texts)} texts\n{'function':<30}{'n':>7}{'exponent':>10}{'slowest':>10}  text with the highest exponent"
    )
    for name, function in every.items():
        if options.only and not name.startswith(options.only):
            continue
        n = size_for(function, options.budget / len(every), len(texts))
        worst, at, slowest, above = 0.0, "", 0.0, 0
        for text_name, make in texts:
            measured = Measured(function, make, n)
            if options.show is not None and measured.exponent >= options.show:
                print(f"    {name}: {measured.exponent:.2f} {measured.longest_s:.3f} s {text_name!r}", flush=True)
            if measured.exponent > worst:
                worst, at = measured.exponent, text_name
            slowest = max(slowest, measured.longest_s)
            above += measured.exponent > MOST_EXPONENT
            if above == MOST_SHOWN and options.show is None:
                break
        worst_of_all = max(worst_of_all, worst)
        print(f"{name:<30}{n:>7}{worst:>10.2f}{slowest:>9.3f}s  {at!r}", flush=True)
    print(
        f"highest exponent {worst_of_all:.2f}, at most {MOST_EXPONENT}; {time.process_time():.0f} s of processor time"
    )
    return int(worst_of_all > MOST_EXPONENT)


if __name__ == "__main__":
    sys.exit(main())
