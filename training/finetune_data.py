"""Chooses what `finetune.py` reads, and writes where the model puts it at the start.

    python -m training.finetune_data MODEL_FOLDER START.npz DATA.npz GIVEN PAIRS.jsonl[.xz]...

GIVEN holds `chats.jsonl`, `statements.jsonl` and `dialogues.jsonl`, as for `prepare.py`; the last is not used and may
be empty.
"""

import itertools
import random
import sys
import time
import zlib
from collections import Counter
from collections.abc import Iterator
from multiprocessing import Pool
from pathlib import Path

import numpy as np

from training.grammar import translated_questions
from training.model import HIDDEN, Packed, embed, read_weights
from training.prepare import Texts, add_talk, all_talks, read_pairs, start_worker, tokenise_all

LONGEST = 512
TALKS = {
    "fact": 0.46,
    "written": 0.24,
    "scene": 0.10,
    "chat": 0.14,
    "statement": 0.02,
    "template": 0.04,
}  # shares of what talks have in tokens
LANGUAGES = frozenset("ar cs da de el en es fa fi fr he hi hu id it ja ko nl no pl pt ro ru sv th tr uk vi zh".split())
# How many translations and headings of a source and language are read; more of the languages that follow.
PARALLEL = {
    "flores": 250, "ntrex": 400, "tico": 200, "eth": 150, "k8s": 150, "mdn": 150, "lohelp": 80, "pydocs": 150,
    "osg": 100, "d2l": 300, "ddtp": 60, "tatoeba": 300, "tldr": 40,
}  # fmt: skip
HEADINGS = {"mdn": 35, "k8s": 50, "eth": 35, "d2l": 40, "lohelp": 15, "ddtp": 15, "osg": 15}
ONE_IN = {"scene": 15, "template": 5}  # talks that rules make are plentiful
PASSAGES = {"zh": 30, "ja": 30, "ko": 30, "en": 60}  # made of the texts of one source
OTHER_PASSAGES = 8  # of every other language
MORE = {"zh": 2.5, "ja": 2, "ko": 2, "en": 2, "bg": 0.3, "cs": 0.3, "da": 0.3, "fa": 0.3, "fi": 0.3, "he": 0.3}
MORE |= {"hu": 0.3, "no": 0.3, "sv": 0.3}
EVERYDAY = {"tatoeba"}  # too short for passages
ANCHORED = {"drcd"}  # passages stay, and nobody asks for them
KEPT_PASSAGES = 10  # one passage in so many is kept back
ANCHORED_ONE_IN = 3  # of their passages
SAID = 0.3  # of the translations that are parts of passages
STAYING = 8_000  # translations that stay where they are, too
KNOWN = 0.3  # of talks that are not everyday ones in many languages


def crc(text: str) -> int:
    """A number that stands for a text."""
    return zlib.crc32(text.encode("utf8", "replace"))


class Limits:
    """Counts what is read of each source and language."""

    def __init__(self, limits: dict[str, int]) -> None:
        self.limits = limits
        self.counts: Counter[tuple[str, str, str]] = Counter()

    def wanted(self, source: str, left: str, right: str) -> bool:
        key = (source, left, right)
        self.counts[key] += 1
        return self.counts[key] <= self.limits.get(source, 0) * MORE.get(left if left != "en" else right, 1)


def filled(parts: list[np.ndarray], choice: random.Random) -> Iterator[list[int]]:
    """Places of parts that make a passage of up to 512 tokens together, each part once."""
    order = list(range(len(parts)))
    choice.shuffle(order)
    longest, tokens, passage = choice.randint(100, LONGEST), 2, []
    for place in order:
        if passage and tokens + len(parts[place]) > longest:
            yield passage
            longest, tokens, passage = choice.randint(100, LONGEST), 2, []
        passage.append(place)
        tokens += len(parts[place])


class Passages:
    """Long texts made of several, as further rows behind those of the texts."""

    def __init__(self, ids: list[np.ndarray], languages: list[str]) -> None:
        self.ids, self.languages = ids, languages
        self.kept: set[int] = set()
        self.made: list[int] = []

    def add(self, rows: list[int], language: str, choice: random.Random) -> dict[int, int]:
        """Make passages of all these rows; return which row is in which."""
        inside = {}
        inner = [self.ids[row][1:-1] for row in rows]
        most = PASSAGES.get(language, OTHER_PASSAGES)
        for places in itertools.islice(filled(inner, choice), most):
            passage = len(self.ids)
            self.ids.append(np.concatenate([[0], *(inner[place] for place in places), [2]])[:LONGEST].astype(np.int32))
            self.languages.append(language)
            self.made.append(passage)
            if len(self.made) % KEPT_PASSAGES == 0:
                self.kept.add(passage)
            inside |= {rows[place]: passage for place in places[: max(1, len(places) - 1)]}
        return inside


class Material:
    """What is read, as rows of texts."""

    def __init__(self) -> None:
        self.choice = random.Random(17)
        self.texts = Texts()
        self.said: list[tuple[int, int]] = []  # a translation, its English text
        self.found: list[tuple[int, int]] = []  # a question, its passage
        self.kept: list[tuple[str, int, int]] = []  # kind and languages of such a pair that is kept back
        self.stays: set[int] = set()
        self.parallel: dict[tuple[str, str], dict[int, int]] = {}
        self.documents: dict[tuple[str, str], set[int]] = {}
        self.talks: dict[str, list] = {name: [] for name in ("said", "asked", "of", "source", "held", "follows")}

    def read_pairs(self, files: list[Path]) -> None:
        """Read translations, and headings and questions with their passages."""
        every = Texts()
        pairs, _ = read_pairs(files, every)
        self.choice.shuffle(pairs)
        names = list(every.rows)
        translations, headings = Limits(PARALLEL), Limits(HEADINGS)

        def add(row: int) -> int:
            return self.texts.add(names[row], every.languages[row], every.limits[row])

        for kind, source, left, right, a, b, _ in pairs:
            if not {left, right} <= LANGUAGES:
                continue
            if kind == "par" and left != "en" and right == "en" and translations.wanted(source, left, right):
                self.add_translation(source, left, add(a), add(b))
            elif kind == "qd" and source in ANCHORED and crc(names[b]) % ANCHORED_ONE_IN:
                continue
            elif kind == "qd" and (source in ANCHORED or headings.wanted(source, left, right)):
                self.add_heading(f"{source} {left}-{right}", add(a), add(b), is_kept=crc(names[b]) % KEPT_PASSAGES == 3)
        watched = {document for _, _, document in self.kept}
        self.documents = {key: rows - watched for key, rows in self.documents.items()}
        self.found = [pair for pair in self.found if pair[1] not in watched]

    def add_translation(self, source: str, language: str, foreign: int, english: int) -> None:
        if source in EVERYDAY or self.choice.random() < SAID:
            self.said.append((foreign, english))
        if source not in EVERYDAY:
            self.parallel.setdefault((source, language), {})[foreign] = english

    def add_heading(self, name: str, asked: int, document: int, *, is_kept: bool) -> None:
        if is_kept:
            self.kept.append((name, asked, document))
            return
        source, language = name.split(maxsplit=1)[0], name[-2:]
        self.documents.setdefault((source, language), set()).add(document)
        if source in ANCHORED:
            self.stays.add(asked)
        else:
            self.found.append((asked, document))

    def read_talks(self, given: Path) -> None:
        """Read talks, and the translations in them."""
        talks = self.talks
        for number, (source, held, talk) in enumerate(all_talks(given)):
            if source not in TALKS or number % ONE_IN.get(source, 1):
                continue
            for message, (said, asked, _) in zip(talk, add_talk(self.texts, talk), strict=True):
                is_fact = source == "fact"  # the first question is the same in both languages
                values = ((said + said)[:2], asked, number, source, held, is_fact)
                for column, value in zip(talks.values(), values, strict=True):
                    column.append(value)
                if message.english and message.language != "en" and not held and source in ("fact", "written"):
                    self.said.append((said[0], said[1]))
                    if is_fact:
                        self.said.append((asked[0], asked[-1]))
        for language, question, english in translated_questions():
            self.said.append((self.texts.add(question, language, 64), self.texts.add(english, "en", 64)))
        print("messages", Counter(zip(talks["source"], talks["held"], strict=True)))

    def make_passages(self, passages: Passages) -> list[int]:
        """Make passages of translations and of shorter passages; return what stays where it is."""
        english_of: dict[str, set[int]] = {}
        for (source, _), rows in self.parallel.items():
            english_of.setdefault(source, set()).update(rows.values())
        english_inside = {
            source: passages.add(sorted(rows), "en", self.choice) for source, rows in sorted(english_of.items())
        }
        for (source, language), rows in sorted(self.parallel.items()):
            inside = passages.add(sorted(rows), language, self.choice)
            for foreign, english in rows.items():
                for asked, document in ((english, inside.get(foreign)), (foreign, english_inside[source].get(english))):
                    languages = f"{passages.languages[asked]}-{passages.languages[document or 0]}"
                    if document in passages.kept:
                        self.kept.append((f"passage {languages}", asked, document))
                    elif document is not None and self.choice.random() < 0.4:
                        self.found.append((asked, document))
        for (_, language), rows in sorted(self.documents.items()):
            if len(rows) > 20:
                passages.add(sorted(rows), language, self.choice)
        single = sorted(set().union(*self.documents.values()))
        self.stays |= set(self.choice.sample([pair[0] for pair in self.said], STAYING))
        print(
            len(passages.made),
            "passages,",
            len(single),
            "single ones,",
            len(self.found),
            "pairs",
            len(self.said),
            "said",
        )
        return [row for row in passages.made if row not in passages.kept] + single

    def known(self, staying: list[int], languages: np.ndarray) -> np.ndarray:
        """The texts whose vectors at the start are needed."""
        known = np.zeros(len(languages), bool)
        for rows in (staying, list(self.stays), [row[2] for row in self.kept], [pair[1] for pair in self.said]):
            known[rows] = True
        talks = self.talks
        for source, said, asked in zip(talks["source"], talks["said"], talks["asked"], strict=True):
            if source in ("fact", "written") or self.choice.random() < KNOWN:
                known[said[0]] = True
                known[[row for row in asked if languages[row] == "en"]] = True
        return np.flatnonzero(known)


def main(folder: Path, start: Path, out: Path, given: Path, files: list[Path]) -> None:
    """Write texts, talks, pairs, and the vectors that the model gives to texts at the start."""
    material = Material()
    material.read_pairs(files)
    material.read_talks(given)
    tokenizer = (folder / "tokenizer.json").read_text()
    with Pool(1, start_worker, (tokenizer, tokenizer)) as pool:
        flat, offsets = tokenise_all(pool, 0, list(material.texts.rows), material.texts.limits)
    passages = Passages(np.split(flat, offsets[1:-1]), material.texts.languages)
    staying = material.make_passages(passages)
    flat = np.concatenate(passages.ids).astype(np.int32)
    offsets = np.concatenate([[0], np.cumsum([len(ids) for ids in passages.ids])]).astype(np.int64)
    languages = np.array(passages.languages, "U3")
    rows = material.known(staying, languages)
    print(len(rows), "texts and", int(np.diff(offsets)[rows].sum()), "tokens to embed", flush=True)
    began = time.process_time()
    vectors = np.zeros((len(languages), HIDDEN), np.float16)
    vectors[rows] = embed(Packed(read_weights(start), compiled=False), flat, offsets, rows, 16_384).half().numpy()
    print(round(time.process_time() - began), "s", flush=True)
    talks = material.talks
    np.savez(
        out,
        flat=flat,
        offsets=offsets,
        language=languages,
        vectors=vectors,
        staying=np.array(staying, np.int32),
        stays=np.array(sorted(material.stays), np.int32),
        said=np.array(material.said, np.int32),
        found=np.array(material.found, np.int32),
        kept=np.array([row[1:] for row in material.kept], np.int32),
        kept_name=np.array([row[0] for row in material.kept], "U20"),
        talk_said=np.array(talks["said"], np.int32),
        talk_asked=np.array([row for rows in talks["asked"] for row in rows], np.int32),
        talk_asked_at=np.concatenate([[0], np.cumsum([len(rows) for rows in talks["asked"]])]).astype(np.int64),
        talk_of=np.array(talks["of"], np.int32),
        talk_source=np.array(talks["source"], "U10"),
        talk_held=np.array(talks["held"]),
        talk_follows=np.array(talks["follows"]),
    )


if __name__ == "__main__":
    model, first, made, folder_given, *pair_files = map(Path, sys.argv[1:])
    main(model, first, made, folder_given, pair_files)
