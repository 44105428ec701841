"""Runs every function that reads text over strings made to slow it down, and prints how its time grows.

    python -m benchmarks.adversarial [--only NAME] [--size CHARACTERS] [--show SECONDS]

Each string is made at n and 4n characters. The exponent is the slope of the time between them (2n in the middle would
not change the line through all three): 1 is linear, 2 quadratic. Where it is above 1.2, it is measured again, and then
at 4n and 16n: what only leaves the processor's cache on the way is linear there, and what is quadratic is not. It fails
when one is still above 1.2. All functions take about 12 minutes.
"""

from __future__ import annotations

import argparse
import gc
import math
import sys
import time
from collections.abc import Callable, Iterator
from datetime import date
from itertools import islice
from typing import Any

MOST_EXPONENT = 1.2
SIZE = 50_000
TRIES = 3
LONGEST_S = 1.0  # above it, four times the size is not tried: the exponent is clear
FASTEST_S = 0.004  # below it the clock and the garbage collector decide, not the function

TODAY = date(2026, 11, 18)
TOKENS = (
    "ghp_a1B2c3D4e5F6a1B2c3D4e5F6a1B2c3D4e5F6 ", "AKIAJ7QW3ERT5YUI2OPA ", "sk-ant-api03-" + "a1B2c3D4e5" * 10 + " ",
    "eyJhbGciOiJIUzI1NiJ9.", "xoxb-123456789012-", "glpat-", "SG.", "AC0123456789abcdef0123456789abcdef ",
)  # fmt: skip
REPEATED = (  # each one many times in a row
    *TOKENS, 'password="', "password=hunter2x ", "password of the ", "passwort für ", "密码是", "token: ", "secret=",
    "acme_key=", "acme_key=a1b2c3d4e5f6g7h8i9j0 ", "SECRET a1b2c3d4e5f6g7h8i9j0 ", "pk_", "live_a1",
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
)  # fmt: skip
AROUND = (("", ""), ("a ", " b"), ("---\n", "\n---\n"), ("```\n", "\n"), ("<recalled-memory ", ""), ('{"a": "', '"}'))


def strings(size: int) -> Iterator[tuple[str, str]]:
    """Yield a name and a string of about `size` characters: each piece repeated, alone and in something."""
    for piece in REPEATED:
        for before, after in AROUND if len(piece) <= 3 else AROUND[:1]:
            name = f"{before}{piece} x n{after}"
            yield name, before + piece * (size // len(piece)) + after
    yield "a row of openings, then text", "<recalled-memory>" * (size // 34) + "a " * (size // 4)
    yield "nested lists", "".join("  " * (at % 200) + "- a\n" for at in range(size // 200))
    yield "deep brackets, closed", "[" * (size // 2) + "]" * (size // 2)
    yield "deep objects", '{"a":' * (size // 6) + "1" + "}" * (size // 6)
    yield "headings of every depth", "".join("#" * (at % 6 + 1) + " a\n" for at in range(size // 6))
    yield "long line with tokens", "x" * (size // 2) + TOKENS[0] * (size // 90)
    yield "front matter without end", "---\n" + "a: b\n" * (size // 5)
    yield "front matter of quotes", "---\na: " + '"' * size + "\n---\n"
    yield "objects in lists", "[{a:" * (size // 4)
    yield "objects in lists, closed", "[{a:" * (size // 8) + "1" + "}]" * (size // 4)
    yield "objects that never end", '{"a": [\n' * (size // 8)
    yield "objects with comments that never end", "{ /* a\n" * (size // 7)
    yield "a long number", "[" + "1" * size + "]"
    yield "strings that never end", "'a\\\n" * (size // 4)
    yield "comments that never end", "[1, /* " * (size // 7)
    yield "members without end", "{" + "a: 1, " * (size // 6)
    yield "the same member", "{" + "a: 1, " * (size // 6) + "}"
    yield "rows of a table", "| a | b |\n" * (size // 10)
    yield "anchors and aliases", "---\nprivate: &a no\n" + "a: *a\n" * (size // 6) + "---\n"
    yield "marks of entries", "- a\n<!-- notewell id=a -->\n" * (size // 26)


def functions() -> dict[str, Callable[[str], Any]]:
    """Return every public function that reads text, by name."""
    from notewell.agents.install.json_editor import parse_json
    from notewell.agents.install.toml_editor import with_table
    from notewell.agents.tools.calling import without_commands
    from notewell.chunking import chunk_document
    from notewell.chunking.dialogue import chunk_message
    from notewell.embedding.input_text import is_mostly_latin, valid_unicode
    from notewell.embedding.providers.requests import estimate_tokens, split_text
    from notewell.memory.note_writing import entry_text
    from notewell.memory.statements import similar_statements
    from notewell.search.dates.filters import time_reading
    from notewell.search.dates.moments import moments
    from notewell.search.qmd_output import parse_results
    from notewell.search.query import query_terms
    from notewell.search.snippets import make_snippet
    from notewell.search.word_variants import explained_in
    from notewell.settings.load import line_numbers
    from notewell.settings.masking import masked_text
    from notewell.sources.front_matter import split_front_matter
    from notewell.sources.privacy import is_private
    from notewell.sources.transcripts.formats import record_in
    from notewell.sources.transcripts.json5 import container_at, parse_json5
    from notewell.sources.transcripts.session_files import read_messages
    from notewell.text.entries import closed_text, find_entries, without_comments
    from notewell.text.fences import fence, strip_fenced
    from notewell.text.lexicon.function_words import function_words
    from notewell.text.lexicon.tokenizing import fold, index_terms, words
    from notewell.text.redaction import Redactor
    from notewell.types import Document, FileStamp, SpokenLine

    stamp = FileStamp("memory", path="memory/a.md", size=1, mtime_ns=1)
    redactor = Redactor(b"only for measuring".ljust(32))

    def chunks(style: Any) -> Callable[[str], Any]:
        return lambda text: chunk_document(Document(stamp, text, ""), style=style, tokens=400, overlap=80)

    return {
        "redact": redactor.redact,
        "fence": lambda text: fence(text, "memory/a.md"),
        "strip_fenced": strip_fenced,
        "fold": fold,
        "words": lambda text: list(words(text)),
        "index_terms": index_terms,
        "function_words": lambda text: function_words(list(words(text)), text),
        "chunk_document markdown": chunks("markdown"),
        "chunk_document lines": chunks("lines"),
        "chunk_message": lambda text: chunk_message(SpokenLine(1, text.replace("\n", " "), 1)),
        "split_front_matter": split_front_matter,
        "is_private": lambda text: is_private("memory/a.md", text),
        "is_private yaml": lambda text: is_private("memory/a.md", f"---\nprivate: no\n{text}\n---\n"),
        "is_private toml": lambda text: is_private("memory/a.md", f"+++\nprivate = false\n{text}\n+++\n"),
        "is_private json": lambda text: is_private("memory/a.md", f'{{"private": false, "a": [{text}]}}'),
        "make_snippet": lambda text: make_snippet(text, {"a": 1.0, "memory": 2.0}),
        "explained_in": lambda text: explained_in(text, "aab"),
        "query_terms": query_terms,
        "time_reading": lambda text: time_reading(text, TODAY),
        "moments": lambda text: moments(text, TODAY),
        "similar_statements": lambda text: similar_statements("the ferry leaves at four", "memory/a.md", text),
        "entry_text": entry_text,
        "find_entries": find_entries,
        "without_comments": without_comments,
        "closed_text": closed_text,
        "parse_json5": parse_json5,
        "parse_json5 in a list": lambda text: parse_json5(f"[{text}]"),
        "parse_json5 in quotes": lambda text: parse_json5('{"a": "' + text.replace('"', '\\"') + '"}'),
        "container_at": container_at,
        "container_at in a list": lambda text: container_at(f"[{text}]"),
        "read_messages": lambda text: read_messages(text.encode("utf-8", "replace")),
        "read_messages in a session": lambda text: read_messages(
            f"{{\n  messages: [\n{text}\n  ], // end\n}}".encode("utf-8", "replace")
        ),
        "record_in": lambda text: record_in(text.encode("utf-8", "replace")),
        "parse_json": parse_json,
        "parse_json in a list": lambda text: parse_json(f"[{text}]"),
        "with_table": lambda text: with_table(text, ("mcp", "notewell"), {"a": 1}),
        "line_numbers": line_numbers,
        "masked_text": lambda text: masked_text(f"https://a.b/ {text}"),
        "parse_results": parse_results,
        "parse_results in a list": lambda text: parse_results(f'[{{"score": 1, "file": "{text}'),
        "without_commands": without_commands,
        "split_text": lambda text: split_text(text, len(text) // 1000),
        "estimate_tokens": estimate_tokens,
        "is_mostly_latin": is_mostly_latin,
        "valid_unicode": valid_unicode,
    }


def seconds(function: Callable[[str], Any], text: str) -> float:
    """Return the least processor time of a few calls; an error is an answer, too."""
    least = math.inf
    gc.disable()  # its rounds grow with what lives, which is not the function's doing
    for _ in range(TRIES):
        start = time.process_time()
        try:
            function(text)
        except (ValueError, RecursionError):
            pass
        except Exception as error:  # its own errors refuse the text
            if not type(error).__module__.startswith("notewell"):
                raise
        least = min(least, time.process_time() - start)
        if least < FASTEST_S / 4:
            break
    gc.enable()
    return least


def exponent(function: Callable[[str], Any], texts: list[str]) -> tuple[float, float]:
    """Return the exponent and the time of the longest text; the exponent is 0 where all are too fast to tell."""
    longest = seconds(function, texts[-1])
    if longest < FASTEST_S:
        return 0.0, longest
    shortest = max(seconds(function, texts[0]), 1e-6)
    return math.log(longest / shortest) / math.log(len(texts[-1]) / len(texts[0])), longest


def main() -> int:
    """Measure and print; fail when a function grows faster than linearly."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--only", metavar="NAME", help="one function")
    parser.add_argument("--size", type=int, default=SIZE, help="characters of the shortest text")
    parser.add_argument("--show", type=float, metavar="EXPONENT", help="print every text from this exponent on")
    options = parser.parse_args()
    made = [list(strings(options.size * times)) for times in (1, 4)]
    worst_of_all = 0.0
    print(f"{'function':<26}{'texts':>6}{'exponent':>10}{'slowest':>10}  text with the highest exponent")
    for name, function in functions().items():
        if options.only and options.only != name:
            continue
        worst, at, slowest = 0.0, "", 0.0
        for number, same in enumerate(zip(*made, strict=True)):
            texts = [text for _, text in same]
            found, longest = exponent(function, texts)
            if found > MOST_EXPONENT:  # once more: another process may have been in the way
                found = min(found, exponent(function, texts)[0])
            if found > MOST_EXPONENT and longest < LONGEST_S:
                larger = [next(islice(strings(options.size * times), number, None))[1] for times in (4, 16)]
                found = min(found, exponent(function, larger)[0])
            if options.show is not None and found >= options.show:
                print(f"    {name}: {found:.2f} {longest:.3f} s {same[0][0]!r}")
            if found > worst:
                worst, at = found, same[0][0]
            slowest = max(slowest, longest)
        worst_of_all = max(worst_of_all, worst)
        print(f"{name:<26}{len(made[0]):>6}{worst:>10.2f}{slowest:>9.3f}s  {at!r}")
    return int(worst_of_all > MOST_EXPONENT)


if __name__ == "__main__":
    sys.exit(main())
