"""Measures redaction: the share of English documents it touches, the planted secrets it misses, and its speed.

    python -m evals.redaction [--eval FOLDER] [--show] [--compare]

Documents of the test sets hold no real secrets, so every one that is touched counts as a false positive. `--compare`
runs the maintained library detect-secrets over the same texts, if it is installed.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from notewell.text.redaction import Redactor

ROOT = Path(__file__).parent.parent
ENGLISH = ("scifact", "locomo-turns", "locomo-sessions", "anthropic-docs", "xquad-en")
REDACTOR = Redactor(b"only for measuring".ljust(32))
SEEDS = range(1, 6)


def documents(folder: Path) -> Iterator[str]:
    """Yield the documents of one test set."""
    with (folder / "corpus.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            document = json.loads(line)
            yield "\n".join(part for part in (document.get("title"), document["text"]) if part)


def kinds_found(text: str) -> list[str]:
    """Return the kinds of what is hidden in a text."""
    return [found.kind for found in REDACTOR.redact(text).found]


def false_positives(folder: Path, find: Callable[[str], list[str]], *, show: bool) -> tuple[int, int]:
    """Print and return how many documents were touched, and how many there are."""
    touched = total = 0
    print(f"{'set':<18}{'documents':>10}{'touched':>9}{'share':>9}")
    for name in ENGLISH:
        if not (folder / name / "corpus.jsonl").is_file():
            continue
        documents_seen = documents_touched = 0
        for text in documents(folder / name):
            documents_seen += 1
            found = find(text)
            documents_touched += bool(found)
            if found and show:
                for each, line in zip(REDACTOR.redact(text).text.split("\n"), text.split("\n"), strict=True):
                    if each != line:
                        print(f"  {name}: {line[:200]!r}\n      -> {each[:200]!r}")
        print(f"{name:<18}{documents_seen:>10}{documents_touched:>9}{documents_touched / documents_seen:>9.2%}")
        touched += documents_touched
        total += documents_seen
    print(f"{'all':<18}{total:>10}{touched:>9}{touched / max(total, 1):>9.2%}\n")
    return touched, total


def misses(find: Callable[[str], list[str]], *, strict: bool = False) -> tuple[int, int]:
    """Print and return how many planted secrets were missed, and how many were planted; strictly, also in part."""
    from tests.text.redaction.planted import left_over, planted, private_keys, wrapped

    texts = [each for seed in SEEDS for make in (planted, wrapped, private_keys) for each in make(seed)]
    missed = [
        each
        for each in texts
        if not find(each.text) or (strict and left_over(each.secret, REDACTOR.redact(each.text).text))
    ]
    kinds = {each.kind for each in texts}
    print(f"planted: {len(texts)} texts with secrets of {len(kinds)} kinds, {len(missed)} missed\n")
    return len(missed), len(texts)


def speed(folder: Path) -> None:
    """Print the megabytes a second of one core, for plain text and for talk about code and logs."""
    texts = [text for name in ENGLISH if (folder / name).is_dir() for text in documents(folder / name)]
    code = [
        path.read_text(encoding="utf-8")[at : at + 4000]
        for path in sorted((ROOT / "src").rglob("*.py"))
        for at in range(0, path.stat().st_size, 4000)
    ]
    for name, sample in (("documents", texts), ("source code", code)):
        if not sample:
            continue
        size = sum(len(text.encode()) for text in sample)
        best = min(_seconds(sample) for _ in range(3))
        print(f"speed, {name}: {size / 1e6:.1f} MB at {size / 1e6 / best:.0f} MB/s of CPU")


def _seconds(texts: list[str]) -> float:
    start = time.process_time()
    for text in texts:
        REDACTOR.redact(text)
    return time.process_time() - start


def detect_secrets_kinds() -> Callable[[str], list[str]] | None:
    """Return the same measure by detect-secrets, or None where it is not installed."""
    try:
        from detect_secrets.core.scan import scan_file
        from detect_secrets.settings import default_settings
    except ImportError:
        return None

    def find(text: str) -> list[str]:
        with default_settings(), tempfile.NamedTemporaryFile("w", suffix=".md", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            return [secret.type for secret in scan_file(file.name)]  # with its own filters, as its command does

    return find


def main() -> int:
    """Measure, print, and fail when more than 1 % of the documents is touched or any planted secret is missed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--eval", type=Path, default=ROOT.parent / "shared" / "eval", help="folder of test sets")
    parser.add_argument("--show", action="store_true", help="print every line that was touched")
    parser.add_argument("--compare", action="store_true", help="measure detect-secrets, too")
    options = parser.parse_args()
    touched, total = false_positives(options.eval, kinds_found, show=options.show)
    missed, _ = misses(kinds_found, strict=True)
    speed(options.eval)
    if options.compare:
        other = detect_secrets_kinds()
        if other is None:
            print("detect-secrets is not installed: pip install detect-secrets")
        else:
            print("\ndetect-secrets:")
            start = time.process_time()
            false_positives(options.eval, other, show=False)
            print(f"{time.process_time() - start:.1f} s of CPU for those")
            misses(other)
    return int(bool(missed) or touched * 100 > total)


if __name__ == "__main__":
    sys.exit(main())
