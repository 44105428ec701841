"""What holds for the chunks of every text there is."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from notewell.chunking import chunk_document
from notewell.chunking.lines import chunk_lines
from notewell.chunking.markdown import chunk_markdown
from notewell.sources.notes import decode_note

from .documents import (
    assert_covers_body,
    assert_in_order,
    assert_light_enough,
    assert_spans_exact,
    read_document,
)

WORDS = st.sampled_from(
    ["router", "VLAN", "a", "The end.", "漢字かな", "한국어", "👩\u200d👧", "🇩🇪", "e\u0301", "`x`", "|", " "]
)
PLAIN = st.lists(WORDS, max_size=12).map(" ".join)
LINES = st.one_of(
    st.just(""),
    st.sampled_from(
        ["# A", "## B", "### C", "###### F", "#", "===", "---", "***", "```", "~~~~", "    code", "  ", "\u2003"]
    ),
    PLAIN,
    PLAIN.map(lambda line: f"- {line}"),
    PLAIN.map(lambda line: f"    1. {line}"),
    PLAIN.map(lambda line: f"## {line}"),
    PLAIN.map(lambda line: f"| {line} |"),
    PLAIN.map(lambda line: line * 10),
)
MARKDOWN = st.lists(LINES, max_size=60).map("\n".join)
ANY_TEXT = st.text(max_size=300).map(lambda text: decode_note(text.encode("utf-8", "replace")))
TEXTS = st.one_of(MARKDOWN, MARKDOWN.map(lambda text: f"---\ntitle: T\n---\n{text}"), ANY_TEXT)
TOKENS = st.integers(1, 60)
OVERLAPS = st.integers(0, 80)


@pytest.mark.slow
@settings(max_examples=400)
@example(text="# A\n    1. ", tokens=2, overlap=0)  # only the blanks of the second line fit below the heading
@given(text=TEXTS, tokens=TOKENS, overlap=OVERLAPS)
def test_markdown_chunks_cover_the_body_within_limits_and_spans(text, tokens, overlap):
    document = read_document(text)
    chunks = chunk_markdown(document, tokens=tokens, overlap=overlap)
    assert_light_enough(chunks, tokens)
    assert_spans_exact(document, chunks)
    assert_in_order(chunks)
    assert_covers_body(document, chunks)
    assert all(chunk.text.strip() and chunk.first_line >= document.body_first_line for chunk in chunks)
    assert chunks == chunk_markdown(document, tokens=tokens, overlap=overlap)


@pytest.mark.slow
@settings(max_examples=200)
@given(TEXTS, TOKENS, OVERLAPS)
def test_line_chunks_cover_the_text_within_limits_and_spans(text, tokens, overlap):
    document = read_document(text)
    chunks = chunk_lines(document, tokens=tokens, overlap=overlap)
    assert all(len(chunk.text.encode("utf-16-le")) // 2 <= max(32, tokens * 4) for chunk in chunks)
    assert_in_order(chunks)
    covered = {line for chunk in chunks for line in range(chunk.first_line, chunk.last_line + 1)}
    assert {n for n, line in enumerate(text.split("\n"), start=1) if line.strip()} <= covered
    assert all(chunk.context == "" and chunk.text.strip() for chunk in chunks)


@pytest.mark.slow
@settings(max_examples=100)
@given(MARKDOWN, st.integers(20, 60))
def test_no_chunk_of_a_text_ends_in_a_heading_that_is_followed_by_text(text, tokens):
    """Plain headings only: `## word` at the end of a chunk means that nothing but headings or nothing follows."""
    document = read_document(text)
    chunks = chunk_markdown(document, tokens=tokens, overlap=0)
    for chunk, following in pairwise(chunks):
        lines = [line for line in chunk.text.split("\n") if line.strip()]
        if "```" in text or "~~~" in text or chunk.last_line == following.first_line:
            continue
        if lines[-1] in {"# A", "## B", "### C", "###### F"}:
            assert following.text.startswith("#") or all(line.startswith("#") for line in lines)


@pytest.mark.parametrize("style", ["markdown", "lines"])
@settings(max_examples=50)
@given(text=MARKDOWN)
def test_appending_never_changes_the_chunks_far_above(style, text):
    """Only what follows a chunk can move its end, so all but the last chunks stay."""
    before = chunk_document(read_document(text), style=style, tokens=40, overlap=8)
    after = chunk_document(read_document(text + "\n\nA last line."), style=style, tokens=40, overlap=8)
    assert [c.text for c in before[:-2]] == [c.text for c in after[: len(before[:-2])]]
