"""Takes names of everyday things, places and languages in many languages from Unicode's CLDR.

    python -m training.names FOLDER OUT.jsonl

FOLDER holds the unpacked npm packages `cldr-annotations-full`, `cldr-localenames-full` and `cldr-dates-full`.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

LANGUAGES = (
    "zh ja ko de fr es it pt nl pl ru uk tr vi ar hi th id cs sv da no fi hu el he ro bg fa".split()
)  # those of the pairs
FOLDED = {"no": "nb"}


def annotations(folder: Path, language: str) -> dict[str, tuple[str, list[str]]]:
    """For each symbol its name and keywords."""
    found = {}
    for path in folder.glob(f"cldr-annotations-full*/package/annotations/{language}/annotations.json"):
        for symbol, entry in json.loads(path.read_text())["annotations"]["annotations"].items():
            if entry.get("tts"):
                found[symbol] = (entry["tts"][0], entry.get("default", []))
    return found


def names(folder: Path, language: str) -> dict[str, str]:
    """Countries, languages and cities by their codes."""
    found = {}
    locale = FOLDED.get(language, language)
    for kind in ("territories", "languages"):
        for path in folder.glob(f"cldr-localenames-full*/package/main/{locale}/{kind}.json"):
            listed = json.loads(path.read_text())["main"][locale]["localeDisplayNames"][kind]
            found |= {f"{kind} {code}": name for code, name in listed.items() if "-alt-" not in code}

    def cities(zones: dict) -> Iterator[tuple[str, str]]:
        for name, entry in zones.items():
            if isinstance(entry, dict):
                if "exemplarCity" in entry:
                    yield f"city {name}", entry["exemplarCity"]
                else:
                    yield from cities(entry)

    for path in folder.glob(f"cldr-dates-full*/package/main/{locale}/timeZoneNames.json"):
        found |= dict(cities(json.loads(path.read_text())["main"][locale]["dates"]["timeZoneNames"]["zone"]))
    return found


def main(folder: Path, out: Path) -> None:
    """Write the names in the layout of the pair files."""
    english, english_names = annotations(folder, "en"), names(folder, "en")
    count = 0
    with out.open("w", encoding="utf8") as file:

        def write(language: str, text: str, translated: str) -> None:
            file.write(json.dumps(["dic", language, "en", "cldr", text, translated], ensure_ascii=False) + "\n")

        for language in LANGUAGES:
            for symbol, (name, keywords) in annotations(folder, language).items():
                if symbol in english and symbol.isascii() is False:
                    other, other_keywords = english[symbol]
                    write(language, name, other)
                    write(language, f"{name}: {', '.join(keywords)}", f"{other}: {', '.join(other_keywords)}")
                    count += 2
            for code, name in names(folder, language).items():
                if code in english_names and name != english_names[code]:
                    write(language, name, english_names[code])
                    count += 1
    print(count, "pairs")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
