"""Takes everyday sentences in nineteen languages from Common Voice, which people read aloud there (CC0).

python -m training.sentences SERVER_DATA_FOLDER OUT.jsonl
"""

import json
import random
import sys
from pathlib import Path

LANGUAGES = "ar de en es fr hi id it ja ko nl pl pt ru th tr uk vi zh-CN".split()
WITHOUT_SPACES = {"ja", "ko", "th", "zh-CN"}
MOST = {"en": 67_000}
MOST_OTHERWISE = 60_000
LEFT_OUT = ("addresses", "benchmark", "LICENSE", "brezhoneg")
LONGEST = 180


def sentences(folder: Path, choice: random.Random) -> list[str]:
    """Sentences of one language: what people handed in first, then sentences of Wikipedia."""
    shortest = 5 if folder.name in WITHOUT_SPACES else 12
    spoken: set[str] = set()
    written: set[str] = set()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix != ".md" and not any(part in path.name for part in LEFT_OUT):
            lines = map(str.strip, path.read_text(encoding="utf8", errors="replace").splitlines())
            into = written if "wiki" in path.name or "europarl" in path.name else spoken
            into |= {line for line in lines if shortest <= len(line) <= LONGEST}
    ordered = []
    for group in (sorted(spoken), sorted(written - spoken)):
        choice.shuffle(group)
        ordered += group
    return ordered[: MOST.get(folder.name, MOST_OTHERWISE)]


def main(folder: Path, out: Path) -> None:
    """Write one language and sentence a line."""
    choice = random.Random(17)
    with out.open("w", encoding="utf8") as file:
        for language in LANGUAGES:
            found = sentences(folder / language, choice)
            print(language, len(found))
            file.writelines(json.dumps([language[:2], text], ensure_ascii=False) + "\n" for text in found)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
