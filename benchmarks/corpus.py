"""A size in, a workspace of Markdown notes and the questions they answer out; the same on every machine."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.words import TOPICS, WORDS_A_TOPIC, Vocabulary, vocabulary

if TYPE_CHECKING:
    from collections.abc import Sequence

QUERIES = 200
CHUNKS_A_NOTE = 7.5  # measured with the default chunker; the table shows how many there really are
SECTIONS = (4, 8)  # a note, both inclusive
SECTION_CHARS = (1_000, 1_400)  # before the last block goes over it
_TOPIC_WORD_SHARE = 0.12  # of all words
_DATED_SHARE = 0.2  # of all notes
_FOLDERS = "projects people places reference decisions health money travel".split()
_LAST_DAY = date(2026, 11, 1)


@dataclass(frozen=True, slots=True)
class Question:
    """Words of one line of one note, and where that line stands."""

    text: str
    path: str
    line: int  # 1-based
    answer: str  # the section around the line: decides the vector of the question


@dataclass(frozen=True, slots=True)
class _Note:
    path: str
    lines: list[str]
    sections: list[tuple[int, int]]  # first and last line of each, counted from 0


def write_corpus(workspace: Path, *, chunks: int, seed: int = 1) -> list[Question]:
    """Write notes of about so many chunks below `workspace` and return questions, spread evenly over them."""
    count = max(1, round(chunks / CHUNKS_A_NOTE))
    wanted = np.bincount(np.linspace(0, count - 1, QUERIES).astype(int), minlength=count)
    questions: list[Question] = []
    for number in range(count):
        note = _note(vocabulary(), number, np.random.default_rng([seed, number]))
        path = workspace / note.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(note.lines) + "\n", encoding="utf-8", newline="\n")
        source = np.random.default_rng([seed, number, 1])
        questions += [_question(note, source) for _ in range(int(wanted[number]))]
    (workspace / "MEMORY.md").write_text("# Memory\n\nWhat stays true is below memory/.\n", encoding="utf-8")
    return questions


def save_questions(path: Path, questions: Sequence[Question]) -> None:
    path.write_text(json.dumps([asdict(question) for question in questions], ensure_ascii=False), encoding="utf-8")


def load_questions(path: Path) -> list[Question]:
    return [Question(**fields) for fields in json.loads(path.read_text(encoding="utf-8"))]


def edited(text: str, number: int) -> str:
    """Return the note with one line in its middle rewritten: the change whose cost is measured."""
    lines = text.split("\n")
    middle = next(
        i for i in range(len(lines) // 2, len(lines)) if len(lines[i]) > 40 and lines[i][0] not in "#`- 0123456789"
    )
    words = lines[middle].split(" ")
    lines[middle] = " ".join([f"edit{number}", *words[1:]])
    return "\n".join(lines)


def sections(count: int, *, seed: int) -> str:
    """Return a note of so many sections; another seed gives one that shares no line with it."""
    source = np.random.default_rng([2, seed])
    lines = ["# Replaced", ""]
    for _ in range(count):
        lines += [*_section(vocabulary(), int(source.integers(TOPICS)), source), ""]
    return "\n".join(lines)


def notes_to_edit(workspace: Path, count: int) -> list[Path]:
    """Return some notes of ordinary length, spread evenly."""
    notes = sorted((workspace / "memory").rglob("*.md"))
    usual = [path for path in notes if 7_000 < path.stat().st_size < 11_000]
    return [usual[i] for i in np.linspace(0, len(usual) - 1, count).astype(int)]


def _note(known: Vocabulary, number: int, source: np.random.Generator) -> _Note:
    topic = int(TOPICS * source.random() ** 1.5)  # some topics fill many notes, most a few
    lines = [f"# {known.topic_words(topic)[0].title()} {known.words[known.table[source.integers(len(known.table))]]}"]
    sections = []
    for _ in range(int(source.integers(SECTIONS[0], SECTIONS[1] + 1))):
        if source.random() < 0.5:  # notes wander: half of the sections turn to a related subject
            topic = (topic + int(source.integers(1, 4))) % TOPICS
        start = len(lines) + 1
        lines += ["", *_section(known, topic, source)]
        sections.append((start, len(lines) - 1))
    return _Note(_path(known, number, topic, source), lines, sections)


def _path(known: Vocabulary, number: int, topic: int, source: np.random.Generator) -> str:
    slug = known.topic_words(topic)[1]
    if source.random() < _DATED_SHARE:
        day = _LAST_DAY - timedelta(days=int(source.integers(0, 1_000)))
        return f"memory/{day.year}/{day.isoformat()}-{slug}-{number}.md"
    folder = _FOLDERS[int(source.integers(len(_FOLDERS)))]
    return f"memory/{folder}/{slug[0]}/{slug}-{number}.md"


def _section(known: Vocabulary, topic: int, source: np.random.Generator) -> list[str]:
    draws = _Draws(known, topic, source)
    wanted = SECTION_CHARS[0] + draws.below(SECTION_CHARS[1] - SECTION_CHARS[0])
    title = " ".join(word for word in draws.words(4) if len(word) > 2)
    lines = [f"## {known.topic_words(topic)[draws.below(WORDS_A_TOPIC)].title()} {title}".rstrip(), ""]
    length = 0
    while length < wanted:
        block = _block(known, draws)
        length += sum(map(len, block)) + len(block)
        lines += [*block, ""]
    return lines[:-1]


def _block(known: Vocabulary, draws: _Draws) -> list[str]:
    kind = draws.below(100)
    if kind < 35:
        return [f"- {draws.sentence(7 + draws.below(9))}" for _ in range(3 + draws.below(5))]
    if kind < 42:
        rows = [draws.words(3) for _ in range(2)]
        body = [f"    {a}_{b} = load('{c}', limit={draws.below(9999)})" for a, b, c in rows]
        return ["```python", f"def {'_'.join(draws.words(2))}():", *body, "```"]
    if kind < 45:
        return ["。".join(known.cjk[draws.below(len(known.cjk))] for _ in range(2)) + "。"]
    if kind < 55:
        when = _LAST_DAY - timedelta(days=draws.below(1_000))
        first, last, place = draws.words(3)
        ticket = f"{place[:3].upper()}-{100 + draws.below(9_000)}"
        return [f"{first.title()} {last.title()} on {when}, {ticket}: {draws.sentence(9)}"]
    lines = [draws.sentence(12 + draws.below(4)) for _ in range(3 + draws.below(4))]
    return [line if i % 2 else line[:-1] for i, line in enumerate(lines)]


class _Draws:
    """Random words and numbers for one section, drawn in bulk."""

    def __init__(self, known: Vocabulary, topic: int, source: np.random.Generator) -> None:
        count = SECTION_CHARS[1] // 2  # more than a section can use
        numbers = known.table[source.integers(len(known.table), size=count)]
        of_topic = np.flatnonzero(source.random(count) < _TOPIC_WORD_SHARE)
        # The first words of a topic are its usual ones.
        picked = (WORDS_A_TOPIC * source.random(len(of_topic)) ** 2).astype(np.int32)
        numbers[of_topic] = known.first_topic_word + topic * WORDS_A_TOPIC + picked
        self._words = list(map(known.words.__getitem__, numbers.tolist()))
        self._numbers = iter(source.integers(1 << 31, size=count).tolist())
        self._used = 0

    def words(self, count: int) -> list[str]:
        self._used += count
        return self._words[self._used - count : self._used]

    def sentence(self, count: int) -> str:
        return " ".join(self.words(count)).capitalize() + "."

    def below(self, limit: int) -> int:
        return int(next(self._numbers)) % limit


def _question(note: _Note, source: np.random.Generator) -> Question:
    """Take 2 to 10 words of one line, in any order, and some function words that may stand nowhere near it."""
    first, last = note.sections[int(source.integers(len(note.sections)))]
    usable = [i for i in range(first + 1, last + 1) if len(note.lines[i].split()) > 6 and note.lines[i].isascii()]
    usable = [i for i in usable if not note.lines[i].startswith((" ", "`", "#"))] or [first]
    line = int(source.choice(usable))
    content = [word.strip(".,:-#").lower() for word in note.lines[line].split()]
    content = list(dict.fromkeys(word for word in content if word))
    # Rare words are what people remember, so they are taken first more often than not.
    known = vocabulary().words
    common = set(known[:100])
    order = sorted(content, key=lambda word: source.random() + (word in common))
    picked = order[: int(source.integers(2, 11))]
    fillers = source.choice(known[:100], size=int(source.integers(1, 4))).tolist()
    text = [*picked, *fillers]
    source.shuffle(text)
    return Question(" ".join(text), note.path, line + 1, "\n".join(note.lines[first : last + 1]))
