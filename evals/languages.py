"""Writes the profiles by which languages are recognised, and measures how often they are right.

    python -m evals.languages write PAIRS...
    python -m evals.languages measure PAIRS...

PAIRS are files of translations, one JSON array a line: `[kind, language of a, language of b, source, a, b, ...]`. The
profiles are counted in NTREX-128 (news in 128 languages, CC BY-SA 4.0) and in the words of
`language_words.txt`, written by hand; the thresholds were chosen on FLORES. What is measured comes from the other
sources: whole texts, and runs of three to eight words, as short as a question.
"""

from __future__ import annotations

import argparse
import json
import lzma
import math
import random
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from notewell.text.languages import _WORD, PROFILES, language_of, trigrams

WRITTEN_FROM = "ntrex"
CHOSEN_ON = "flores"  # the two thresholds in `text/languages.py`
SCRIPTS = {
    "latin": "en de fr es it pt nl pl tr vi id cs sv da no fi hu ro".split(),
    "cyrillic": "ru uk bg".split(),
    "arabic": "ar fa".split(),
}
WORDS = 250  # of each language, most frequent first
TRIGRAMS = 350
TRIGRAM_SHARE = 0.5  # neighbouring trigrams overlap, so each says less than its likelihood
STEP = 0.5  # weights are rounded to this
SHORTEST, LONGEST = 3, 8  # words of a question
TESTED = 400  # texts of a language and length
EVERYDAY = Path(__file__).with_name("language_words.txt")  # what people ask and tell, which is rare in news


def main() -> None:
    """Write the profiles or print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("task", choices=("write", "measure"))
    parser.add_argument("pairs", nargs="+")
    options = parser.parse_args()
    if options.task == "write":
        write(options.pairs)
    else:
        measure(options.pairs)


def texts_of(files: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Yield language, source and text of every translation and question."""
    for file in files:
        with lzma.open(file, "rt", encoding="utf-8") as lines:
            for line in lines:
                kind, one, other, source, a, b = json.loads(line)[:6]
                if kind != "dic":
                    yield one, source, a
                    yield other, source, b


def write(files: Sequence[str]) -> None:
    """Count words and trigrams, and write those that are frequent in each language with their weights."""
    texts: dict[str, set[str]] = defaultdict(set)
    for language, source, text in texts_of(files):
        if source == WRITTEN_FROM:
            texts[language].add(text)
    everyday = dict(line.split(" ", 1) for line in EVERYDAY.read_text(encoding="utf-8").splitlines())
    lines = []
    for script, languages in SCRIPTS.items():
        for language in languages:
            weights = _weights(sorted(texts[language]), _WORD.findall(everyday[language]))
            lines += [f"{script} {language} {weight:g} {' '.join(group)}" for weight, group in weights.items()]
    PROFILES.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{PROFILES.name}: {PROFILES.stat().st_size} bytes")


def _weights(texts: Sequence[str], everyday: Sequence[str]) -> Mapping[float, list[str]]:
    words = Counter(word for text in texts for word in _WORD.findall(text.lower()))
    least = words.total() // 1000
    for word in everyday:
        words[word] = max(words[word], least)  # as frequent as in a question
    pieces: Counter[str] = Counter()
    for word, count in words.items():
        for piece in trigrams(word):
            pieces[piece] += count
    grouped = defaultdict(list)
    kept = dict(words.most_common(WORDS)) | {word: words[word] for word in everyday}
    for chosen, share in ((kept, 1.0), (dict(pieces.most_common(TRIGRAMS)), TRIGRAM_SHARE)):
        floor = min(chosen.values()) / 4  # a word that is not listed is rarer than those that are
        for feature, count in sorted(chosen.items(), key=lambda item: (-item[1], item[0])):
            grouped[max(STEP, round(share * math.log(count / floor) / STEP) * STEP)].append(feature)
    return dict(sorted(grouped.items(), reverse=True))


def measure(files: Sequence[str]) -> None:
    """Print, for each language, how many whole texts and short runs are recognised, left open and mistaken."""
    rng = random.Random(17)
    texts: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for language, source, text in texts_of(files):
        if source not in {WRITTEN_FROM, CHOSEN_ON}:
            texts[language][source].append(text)
    print("| language | texts: right | open | wrong | 3 to 8 words: right | open | wrong | mistaken for |")
    print("|---|--:|--:|--:|--:|--:|--:|---|")
    spent = {"texts": [], "runs": []}
    for language, by_source in sorted(texts.items()):
        chosen = [rng.choice(by_source[rng.choice(sorted(by_source))]) for _ in range(4 * TESTED)]
        long = [text for text in chosen if len(_WORD.findall(text)) > LONGEST or len(text) > 40][:TESTED]
        short = [run for text in chosen if (run := _run(text, rng))][:TESTED]
        cells, mistaken = [], Counter()
        for name, tested in (("texts", long), ("runs", short)):
            started = time.process_time()
            found = Counter(map(language_of.__wrapped__, tested))
            spent[name].append((time.process_time() - started) / max(1, len(tested)))
            total = max(1, found.total())
            right, empty = found.pop(language, 0), found.pop("", 0)
            mistaken += found
            cells += [f"{right / total:.1%}", f"{empty / total:.1%}", f"{found.total() / total:.1%}"]
        wrong = ", ".join(f"{other} {count}" for other, count in mistaken.most_common(3))
        print(f"| {language} | {' | '.join(cells)} | {wrong} |")
    for name, each in spent.items():
        print(f"{name}: {sorted(each)[len(each) // 2] * 1e3:.3f} ms each, worst language {max(each) * 1e3:.3f}")


def _run(text: str, rng: random.Random) -> str:
    """Return three to eight words from within a text; for scripts without blanks, as many characters."""
    words = text.split()
    count = rng.randint(SHORTEST, LONGEST)
    if len(words) < count:
        return text[: 2 * count] if len(text) > 2 * count and not text.isascii() else ""
    first = rng.randrange(len(words) - count + 1)
    return " ".join(words[first : first + count])


if __name__ == "__main__":
    main()
