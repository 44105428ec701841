"""The benchmark of adversarial strings runs every public function that reads a text of any length."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parent.parent
ROOMS = (
    *("text", "chunking", "sources", "search", "sessions/import_export.py"),
    *(
        "memory/note_lines.py",
        "memory/statements.py",
        "agents/rendering.py",
        "agents/install.py",
        "agents/editing.py",
        "openclaw/functions.py",
    ),
    *("settings/edit.py", "settings/masking.py"),
)
TEXTS = {"str", "bytes", "Iterable[str]"}  # a parameter that is one of these
# What these are given is a name, a word or a value with a limit, or they are part of another one that is measured.
SHORT = {
    "sources/walk.py": "file names",
    "sources/included.py": "file names, patterns and names of agents",
    "sources/transcripts/__init__.py": "session ids, measured where one is not checked first",
    "sources/transcripts/growing.py": "pieces of files, measured as read_messages",
    "text/languages.py": "a word, or the first 600 letters",
    "text/redaction/marks.py": "one secret",
    "text/redaction/contexts.py": "redact",
    "text/redaction/scanning.py": "redact",
    "search/word_variants.py": "words of a question of 4,000 characters",
    "search/dates/east_asian.py": "moments",
    "search/dates/european.py": "moments",
    "search/dates/phrases.py": "tables of this package",
    "search/options.py": "options",
    "search/qmd.py": "output of a program, measured as parse_results",
    "chunking/lines.py": "one line, measured as chunk_document",
}
SHORT_FUNCTIONS = {
    *("is_unspaced", "pairs", "stem", "irregular_forms"),  # one word
    "phrase_pattern",  # tables of this package
    "marked_private",  # is_private
    *("read_time", "keyword_query", "hit_of", "plain"),  # time_reading, query_terms, parse_results
    *("note_date", "date_in_name", "is_session_file", "shown_of"),
    *("decode_json5", "parse_object", "write_name", "whole_elements", "message_text"),  # parse_json5, read_messages
    *("read_container", "tokens_of"),  # container_at, values_of
    *("open_code_block", "weigh", "redact"),  # closed_text, chunk_document; the Redactor
    "audience_of",  # the name of a chat
    "encoding_of",  # decode_note
    *("chunk_id", "switch_store", "is_secret_header"),  # names of sources, an address, a header
    *("ask_reranker", "put_in_order"),  # hits
}


def readers() -> dict[str, str]:
    """Return where each public function is that is given a text or bytes first."""
    found = {}
    for room in ROOMS:
        top = ROOT / "src" / "notewell" / room
        for path in [top] if top.is_file() else sorted(top.rglob("*.py")):
            place = path.relative_to(ROOT / "src" / "notewell").as_posix()
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                if not isinstance(node, ast.FunctionDef) or node.name.startswith("_"):
                    continue
                kinds = [ast.unparse(each.annotation) for each in node.args.args if each.annotation]
                if TEXTS & set(kinds) and place not in SHORT and node.name not in SHORT_FUNCTIONS:
                    found[node.name] = place
    return found


def test_every_public_text_function_is_measured():
    tree = ast.parse((ROOT / "benchmarks" / "adversarial.py").read_text(encoding="utf-8"))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert {name: place for name, place in readers().items() if name not in imported} == {}
