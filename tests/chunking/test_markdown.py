"""Chunks keep to the structure of a note, know where they stand, and move with their text."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from notewell.chunking import chunk_document
from notewell.chunking.lines import weigh
from notewell.chunking.markdown import chunk_markdown

from .documents import (
    assert_covers_body,
    assert_in_order,
    assert_light_enough,
    assert_spans_exact,
    document_of,
    read_document,
)


def spans(text: str, *, tokens: int = 400, overlap: int = 80) -> list[tuple[int, int]]:
    chunks = chunk_markdown(read_document(text), tokens=tokens, overlap=overlap)
    return [(chunk.first_line, chunk.last_line) for chunk in chunks]


def contexts(text: str, *, tokens: int = 400, overlap: int = 80) -> list[str]:
    return [chunk.context for chunk in chunk_markdown(read_document(text), tokens=tokens, overlap=overlap)]


def prose(lines: int, *, width: int = 40, start: int = 0) -> str:
    return "\n".join(f"{number:03} ".ljust(width, "x") for number in range(start, start + lines))


@pytest.mark.parametrize("text", ["", "\n", "\n\n\n", " \t\n\u3000\n", "---\ntitle: A\n---\n", "---\ntitle: A\n---"])
def test_blank_notes_have_no_chunks(text):
    assert chunk_markdown(read_document(text)) == []


def test_a_small_note_is_one_chunk_without_the_blank_lines_around_it():
    [chunk] = chunk_markdown(read_document("\n\n# Title\n\ntext\n\n \n"))
    assert (chunk.first_line, chunk.last_line, chunk.text, chunk.context) == (3, 5, "# Title\n\ntext", "")


def test_front_matter_is_no_part_of_a_chunk_and_lines_keep_their_numbers():
    [chunk] = chunk_markdown(read_document("---\ntitle: Router\ntags: [a]\n---\n\nVLAN 10\n"))
    assert (chunk.first_line, chunk.last_line, chunk.text, chunk.context) == (6, 6, "VLAN 10", "Router")


def test_a_new_subject_ends_a_chunk_that_is_full_enough():
    text = f"# A\n\n{prose(3)}\n\n# B\n\n{prose(3)}\n\n## C\n\n{prose(3)}"
    assert spans(text, tokens=100) == [(1, 5), (7, 11), (13, 17)]


def test_tiny_sections_share_a_chunk():
    text = "# A\n\none\n\n## B\n\ntwo\n\n## C\n\nthree"
    assert spans(text, tokens=100) == [(1, 11)]


@pytest.mark.parametrize(
    ("text", "second_starts_at"),
    [
        pytest.param(f"{prose(7)}\n### C\n{prose(6)}", 8, id="before a heading"),
        pytest.param(f"{prose(7)}\n\n{prose(6)}", 9, id="after a blank line"),
        pytest.param(f"{prose(6)}\n- item\n  more of it\n{prose(6)}", 7, id="before a list item"),
        pytest.param(f"{prose(8)}\nIt ends here.\n{prose(6)}", 10, id="after a sentence"),
        pytest.param(f"{prose(4)}\n\n```\n{prose(8)}\n```", 6, id="before a code block rather than inside"),
        pytest.param(f"{prose(6)}\n\n| a | b |\n{prose(6)}", 8, id="before a table"),
        pytest.param(f"{prose(6)}\n***\n{prose(6)}", 7, id="before a rule"),
    ],
)
def test_where_a_chunk_ends(text, second_starts_at):
    assert spans(text, tokens=100, overlap=0)[1][0] == second_starts_at


def test_a_heading_is_never_left_alone_at_the_end():
    for above in range(1, 12):
        text = f"{prose(above)}\n\n### Heading\n\n{prose(12)}"
        for chunk in chunk_markdown(read_document(text), tokens=100, overlap=0):
            assert not chunk.text.rstrip().endswith("### Heading")


@pytest.mark.parametrize("line", ["word " * 100, "x" * 390, "x" * 400], ids=["far too long", "just too long", "full"])
def test_a_heading_stays_with_a_line_that_does_not_fit_beside_it(line):
    chunks = chunk_markdown(document_of(f"# Title\n\n{line}"), tokens=100, overlap=0)
    assert chunks[0].text.startswith(f"# Title\n\n{line[:40]}")
    assert (chunks[0].first_line, chunks[0].last_line) == (1, 3)
    assert [chunk.context for chunk in chunks[1:]] == ["Title"] * (len(chunks) - 1)
    assert "".join(chunk.text for chunk in chunks).replace(" ", "") == f"# Title\n\n{line}".replace(" ", "")


@pytest.mark.parametrize(
    "fenced",
    [
        pytest.param("```\n# not a heading\n```", id="backticks"),
        pytest.param("~~~ python\n# not a heading\n~~~", id="tildes"),
        pytest.param("   ```\n# not a heading\n   ```", id="indented"),
        pytest.param("````\n```\n# not a heading\n````", id="a shorter fence inside"),
        pytest.param("```\n~~~\n# not a heading\n~~~\n```", id="another fence inside"),
        pytest.param("```\n``` x\n# not a heading\n`````", id="a longer closer, and a closer with text that is none"),
        pytest.param("```\n# not a heading", id="never closed"),
        pytest.param("    # not a heading", id="indented code"),
        pytest.param("#not a heading", id="a tag"),
        pytest.param("####### not a heading", id="seven marks"),
        pytest.param("text\nmore text\n---", id="two lines above an underline"),
        pytest.param("- item\n---", id="a rule below a list"),
    ],
)
def test_what_is_no_heading(fenced):
    chunks = chunk_markdown(document_of(f"# Real\n\n{fenced}\n{prose(12)}"), tokens=60, overlap=0)
    assert {chunk.context for chunk in chunks[1:]} == {"Real"}


@pytest.mark.parametrize(
    ("heading", "context"),
    [
        ("# Plain", "Plain"),
        ("   ### Closed ###", "Closed"),
        ("# About C#", "About C#"),
        ("#\tTab", "Tab"),
        ("Underlined\n===", "Underlined"),
        ("Underlined\n---", "Underlined"),
        ("## **Bold** and _soft_ `code` ~~old~~", "Bold and soft code old"),
        ("## snake_case_name and 2*3", "snake_case_name and 23"),
        ("## [Link](http://a.example) and [[page|shown]] and [[page]]", "Link and shown and page"),
        ("## Anchored {#anchor} ", "Anchored"),
        ("## Seen <!-- not seen -->", "Seen"),
        ("## 家庭网络 🎉", "家庭网络 🎉"),
        ("#", ""),
    ],
    ids=ascii,
)
def test_how_a_heading_reads(heading, context):
    assert contexts(f"{heading}\n\n{prose(12)}", tokens=60, overlap=0)[-1] == context


def test_context_is_the_trail_above_the_first_new_line():
    text = f"# A\n\n## B\n\n{prose(3)}\n\n### C\n\n{prose(9)}\n\n## D\n\n{prose(3)}\n\n# E\n\n{prose(3)}"
    chunks = chunk_markdown(document_of(text), tokens=60, overlap=20)
    assert [(chunk.text.split("\n")[0], chunk.context) for chunk in chunks] == [
        ("# A", ""),
        ("### C", "A > B"),
        (prose(1, start=4), "A > B > C"),
        ("## D", "A"),
        ("# E", ""),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(f"---\ntitle: T\n---\n{prose(9)}", ["T", "T"], id="title alone"),
        pytest.param(f"---\ntitle: T\n---\n# A\n{prose(9)}", ["T", "T > A"], id="title and heading"),
        pytest.param(f"---\ntitle: T\n---\n# t\n{prose(9)}", ["", "t"], id="title said again by the heading"),
    ],
)
def test_the_title_leads_the_context(text, expected):
    assert contexts(text, tokens=60, overlap=0) == expected


def test_context_is_kept_short():
    text = "".join(f"{'#' * level} {f'level{level} ' * 8}\n" for level in range(1, 7)) + prose(12)
    deepest = chunk_markdown(document_of(text), tokens=100, overlap=0)[-1].context
    assert weigh(deepest) <= 120
    assert deepest == "level5 " * 8 + "> " + ("level6 " * 8).strip()
    [*_, chunk] = chunk_markdown(document_of(f"# {'漢' * 80}\n{prose(12)}"), tokens=100, overlap=0)
    assert chunk.context == "漢" * 30


def test_neighbours_overlap_by_whole_lines_within_the_limit():
    document = document_of(prose(30))
    chunks = chunk_markdown(document, tokens=100, overlap=25)
    for above, below in pairwise(chunks):
        assert below.first_line == above.last_line - 1  # two lines of 41 quarters fit in 100, three do not
    assert_light_enough(chunks, 100)


def test_overlap_stops_at_a_heading_and_starts_with_text():
    text = f"{prose(4)}\n\n### B\n\nshort\n\n{prose(1, width=310)}"
    chunks = chunk_markdown(document_of(text), tokens=80, overlap=40)
    assert [chunk.text.split("\n")[0] for chunk in chunks] == [prose(1), "### B", "short"]


@pytest.mark.parametrize("overlap", [60, 100, 100_000, -5])
def test_any_overlap_makes_progress(overlap):
    document = document_of(prose(40))
    chunks = chunk_markdown(document, tokens=60, overlap=overlap)
    assert_covers_body(document, chunks)
    assert_light_enough(chunks, 60)
    assert len({chunk.first_line for chunk in chunks}) == len(chunks) <= 40


def test_cjk_weighs_a_token_a_character():
    document = document_of("\n".join("漢字かな混じり文。" * 4 for _ in range(20)))
    chunks = chunk_markdown(document, tokens=100, overlap=0)
    assert all(len(chunk.text) <= 100 for chunk in chunks)
    assert len(chunks) == 10


def structured_note(seed: int) -> str:
    words = random.Random(seed)
    out = ["# Handbook", ""]
    for section in range(40):
        out += [f"## Topic {section}", ""]
        for _ in range(words.randint(1, 6)):
            out.append(" ".join(f"w{words.randint(0, 9999)}" for _ in range(words.randint(5, 14))) + ".")
        out.append("")
    return "\n".join(out)


@pytest.mark.parametrize("seed", range(5))
def test_a_line_on_top_leaves_most_chunks_as_they_were(seed):
    text = structured_note(seed)
    before = [chunk.embedded_hash for chunk in chunk_markdown(document_of(text))]
    changed = text.replace(
        "# Handbook\n", "# Handbook\n\nA new line of about sixty characters stands on top of it.\n", 1
    )
    after = {chunk.embedded_hash for chunk in chunk_markdown(document_of(changed))}
    assert len(before) >= 10
    assert len([known for known in before if known in after]) >= 0.7 * len(before)


def test_text_moved_to_another_line_keeps_its_identity():
    text = f"# A\n\n{prose(5)}"
    [here] = chunk_markdown(document_of(text))
    [there] = chunk_markdown(document_of("\n\n\n" + text))
    assert here.embedded_hash == there.embedded_hash
    assert (here.first_line, there.first_line) == (1, 4)


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("word " * 40_000, id="words"),
        pytest.param("x" * 200_000, id="no blank"),
        pytest.param("漢字。" * 60_000, id="Chinese"),
        pytest.param("🇩🇪🇫🇷" * 40_000, id="flags"),
        pytest.param("a" + "\u0301" * 150_000, id="one endless character"),
        pytest.param(" " * 200_000 + "end", id="blanks"),
        pytest.param("# " + "x" * 200_000, id="heading"),
        pytest.param("* " * 100_000 + "x", id="almost a rule"),
        pytest.param("`" * 200_000 + "x`", id="almost a fence"),
        pytest.param("# " + "[" * 100_000, id="almost a link"),
    ],
)
def test_monstrous_lines_are_cut(line):
    document = document_of(f"above\n{line}\nbelow")
    chunks = chunk_markdown(document)
    assert_light_enough(chunks, 400)
    assert_spans_exact(document, chunks)
    assert_in_order(chunks)
    assert chunks[0].text.startswith("above")
    assert chunks[-1].text.endswith("below")


def test_chunk_document_chooses_the_style():
    document = read_document("---\ntitle: T\n---\nbody\n")
    [markdown] = chunk_document(document, style="markdown", tokens=400, overlap=80)
    [lines] = chunk_document(document, style="lines", tokens=400, overlap=80)
    assert (markdown.text, markdown.context) == ("body", "T")
    assert (lines.text, lines.context) == (document.text, "")
