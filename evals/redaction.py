"""Measures redaction: the lines of public texts and code it touches, the secrets it misses, and its speed.

    python -m evals.redaction [--eval FOLDER] [--gitleaks FOLDER] [--noseyparker FOLDER] [--kingfisher FOLDER]
                              [--show] [--compare]

Texts and code of the collections hold no real secrets, so every line that is touched counts as a false positive.
`--gitleaks`, `--noseyparker` and `--kingfisher` take checkouts and measure examples of their rules, see
evals/public_rules.py. `--show` prints no missed example that is to stay unseen.
`--compare` runs the maintained library detect-secrets over the same texts, if it is installed.
"""

from __future__ import annotations

import argparse
import json
import sys
import sysconfig
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from notewell.text.redaction import Redactor

if TYPE_CHECKING:
    from evals.public_rules import Example

ROOT = Path(__file__).parent.parent
TEXTS = (
    "scifact", "locomo-turns", "locomo-sessions", "agent-chats", "anthropic-docs", "xquad-en", "xquad-zh",
    "cmrc2018-zh", "korquad-ko",
)  # fmt: skip
MOST_TOUCHED = 1 / 10_000  # lines
LEAST_PLANTED = 0.995  # a password of letters alone may be a word by chance
LEAST_FOUND = {"gitleaks, alone and in prose": 0.99, "gitleaks, behind a telling name": 0.995}
LONG_TEXT = 3_000_000  # characters
REDACTOR = Redactor(b"only for measuring".ljust(32))
SEEDS = range(1, 6)


def documents(folder: Path) -> Iterator[str]:
    """Yield the documents of one test set."""
    with (folder / "corpus.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            document = json.loads(line)
            yield "\n".join(part for part in (document.get("title"), document["text"]) if part)


def code() -> dict[str, list[str]]:
    """Return the sources of Python's library and of the installed packages, by collection."""
    paths = sysconfig.get_paths()
    library, packages = Path(paths["stdlib"]), Path(paths["purelib"])
    found = {"Python's library": library, "packages": packages}
    return {
        name: [
            path.read_text(encoding="utf-8", errors="ignore")
            for path in sorted(folder.rglob("*.py"))
            if folder == packages or "site-packages" not in path.parts
        ]
        for name, folder in found.items()
    }


def kinds_found(text: str) -> list[str]:
    """Return the kinds of what is hidden in a text."""
    return [found.kind for found in REDACTOR.redact(text).found]


def false_positives(collections: Mapping[str, list[str]], find: Callable[[str], list[str]], *, show: bool) -> float:
    """Print the share of lines that were touched, by collection, and return the highest.

    A finding counts as one line, and so does a private key of many.
    """
    highest = 0.0
    print(f"{'collection':<18}{'texts':>8}{'lines':>10}{'touched':>9}{'in 10,000':>11}")
    for name, texts in collections.items():
        touched = 0
        for text in texts:
            found = find(text)
            touched += len(found)
            if found and show:
                for each, line in zip(REDACTOR.redact(text).text.split("\n"), text.split("\n"), strict=True):
                    if each != line:
                        print(f"  {name}: {line.strip()[:200]!r}\n      -> {each.strip()[:200]!r}")
        lines = sum(text.count("\n") + 1 for text in texts)
        share = touched / max(lines, 1)
        highest = max(highest, share if lines >= 1 / MOST_TOUCHED else 0.0)
        print(f"{name:<18}{len(texts):>8}{lines:>10}{touched:>9}{share * 10_000:>11.2f}")
    print()
    return highest


def hidden_of_rules(gitleaks: Path | None, noseyparker: Path | None, kingfisher: Path | None, *, show: bool) -> bool:
    """Print how many examples of public rules are hidden, and say whether those with a goal are enough."""
    from evals.public_rules import named, of_kingfisher, self_identifying, tested, unseen
    from tests.text.redaction.planted import left_over

    sets: dict[str, Iterator[Example]] = {}
    if gitleaks:
        sets["gitleaks, alone and in prose"] = self_identifying(gitleaks)
        sets["gitleaks, behind a telling name"] = named(gitleaks)
        sets["gitleaks, its own tests"] = tested(gitleaks)
    if noseyparker:
        sets["Nosey Parker, unseen"] = unseen(noseyparker)
        sets["Nosey Parker, unseen, rules with one group"] = unseen(noseyparker, one_group=True)
    if kingfisher:
        sets["Kingfisher, services looked at"] = of_kingfisher(kingfisher, looked_at=True)
        sets["Kingfisher, unseen"] = of_kingfisher(kingfisher, looked_at=False)
    enough = True
    for name, made in sets.items():
        examples = list(made)
        missed = [each for each in examples if left_over(each.secret, REDACTOR.redact(each.text).text)]
        share = 1 - len(missed) / max(len(examples), 1)
        enough = enough and share >= LEAST_FOUND.get(name, 0)
        rules = len({each.rule for each in examples})
        print(f"{name}: {len(examples)} texts of {rules} rules, {share:.2%} hidden")
        if show and "unseen" not in name:
            for rule, count in Counter(each.rule for each in missed).most_common():
                text = next(each.text for each in missed if each.rule == rule)
                print(f"  {rule}: {count} missed, such as {text[:160]!r}")
    print()
    return enough


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
    print(f"planted: {len(texts)} texts with secrets of {len(kinds)} kinds, {len(missed)} missed")
    for text, count in Counter(each.text for each in missed).most_common(5) if strict else ():
        print(f"  {count}: {text[:160]!r}")
    print()
    return len(missed), len(texts)


def speed(collections: Mapping[str, list[str]]) -> None:
    """Print the megabytes a second of one core: text by text, and as one long text."""
    for name, texts in collections.items():
        size = sum(len(text.encode("utf-8", "replace")) for text in texts)
        long = "\n".join(texts)[:LONG_TEXT]
        long_size = len(long.encode("utf-8", "replace"))
        each, whole = (min(_seconds(sample) for _ in range(3)) for sample in (texts, [long]))
        print(f"speed, {name}: {size / 1e6 / each:.0f} MB/s text by text, {long_size / 1e6 / whole:.0f} as one text")


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
    """Measure, print, and fail when more lines are touched or more secrets missed than may be."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--eval", type=Path, default=ROOT.parent / "shared" / "eval", help="folder of test sets")
    parser.add_argument("--gitleaks", type=Path, metavar="FOLDER", help="checkout of gitleaks")
    parser.add_argument("--noseyparker", type=Path, metavar="FOLDER", help="checkout of Nosey Parker")
    parser.add_argument("--kingfisher", type=Path, metavar="FOLDER", help="checkout of Kingfisher")
    parser.add_argument("--show", action="store_true", help="print every line that was touched, and what was missed")
    parser.add_argument("--compare", action="store_true", help="measure detect-secrets, too")
    options = parser.parse_args()
    texts = {
        name: list(documents(options.eval / name)) for name in TEXTS if (options.eval / name / "corpus.jsonl").is_file()
    }
    programs = code()
    touched = false_positives(texts | programs, kinds_found, show=options.show)
    missed, planted = misses(kinds_found, strict=True)
    enough = hidden_of_rules(options.gitleaks, options.noseyparker, options.kingfisher, show=options.show)
    enough = enough and 1 - missed / planted >= LEAST_PLANTED
    together = [text for name in texts for text in texts[name]]
    speed(
        ({"texts": together} if together else {})
        | {"code": programs["packages"][:: len(programs["packages"]) // 500 or 1]}
    )
    if options.compare:
        other = detect_secrets_kinds()
        if other is None:
            print("detect-secrets is not installed: pip install detect-secrets")
        else:
            print("\ndetect-secrets:")
            start = time.process_time()
            false_positives(texts, other, show=False)
            print(f"{time.process_time() - start:.1f} s of CPU for those")
            misses(other)
    return int(touched > MOST_TOUCHED or not enough)


if __name__ == "__main__":
    sys.exit(main())
