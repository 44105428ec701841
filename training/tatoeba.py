"""Takes everyday sentences and their English translations from Tatoeba (CC BY 2.0 FR).

    python -m training.tatoeba FOLDER OUT.jsonl

FOLDER holds pairs of files as `tatoeba.deu-eng.deu` and `tatoeba.deu-eng.eng`, and lists as `jpn.txt` with an English
sentence, a tab, and its translation in each line.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

LANGUAGES = {
    "ara": "ar", "bul": "bg", "ces": "cs", "cmn": "zh", "dan": "da", "deu": "de", "ell": "el", "fin": "fi", "fra": "fr",
    "heb": "he", "hin": "hi", "hun": "hu", "ind": "id", "ita": "it", "jpn": "ja", "kor": "ko", "nld": "nl", "nob": "no",
    "pes": "fa", "pol": "pl", "por": "pt", "ron": "ro", "rus": "ru", "spa": "es", "swe": "sv", "tha": "th", "tur": "tr",
    "ukr": "uk", "vie": "vi",
}  # fmt: skip


def translations(folder: Path) -> Iterator[tuple[str, str, str]]:
    """A language, a sentence in it, and the sentence in English."""
    for code, language in LANGUAGES.items():
        for path in sorted(folder.rglob(f"tatoeba.{code}-eng.{code}")):
            foreign = path.read_text(encoding="utf8").splitlines()
            english = path.with_suffix(".eng").read_text(encoding="utf8").splitlines()
            yield from ((language, a.strip(), b.strip()) for a, b in zip(foreign, english, strict=True))
        for path in sorted(folder.rglob(f"{code}.txt")):
            for line in path.read_text(encoding="utf8", errors="replace").splitlines():
                english_text, tab, rest = line.partition("\t")
                if tab:
                    yield language, rest.split("\t")[0].strip(), english_text.strip()


def main(folder: Path, out: Path) -> None:
    """Write a pair a line, in the layout of the pair files."""
    seen = set()
    with out.open("w", encoding="utf8") as file:
        for language, text, english in translations(folder):
            if (text, english) not in seen and len(english) > 8 and text != english:
                seen.add((text, english))
                file.write(json.dumps(["par", language, "en", "tatoeba", text, english], ensure_ascii=False) + "\n")
    print(len(seen), "pairs")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
