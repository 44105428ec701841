"""A stand-in for QMD 2.8.3: the commands that notewell runs, with the output, exit codes and traps recorded from it.

It is installed as a program by `install_stand_in`. The variable `QMD_STAND_IN` makes it misbehave: `crash`, `hang`,
`noise`, `partial`, `garbage`, `flood`, `memory`, `old` or `random` in searches, `update:crash` and the like elsewhere.
"""

import contextlib
import json
import os
import random
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

Flags = dict[str, Any]
CONFIG = Path(os.environ.get("XDG_CONFIG_HOME", "")) / "qmd" / "index.yml"
INDEX = Path(os.environ.get("XDG_CACHE_HOME", "")) / "qmd" / "index.sqlite"  # named as QMD's; JSON here
VALUES = {"-n", "-c", "--name", "--mask", "--index"}
MODELS = "models:\n  embed: hf:ggml-org/embeddinggemma-300M-GGUF/embeddinggemma-300M-Q8_0.gguf\n"


def install_stand_in(folder: Path) -> Path:
    """Write the stand-in as a program `qmd` and return its path."""
    program = folder / "qmd"
    program.write_text(f"#!{sys.executable} -IS\n{Path(__file__).read_text(encoding='utf-8')}", encoding="utf-8")
    program.chmod(0o755)
    return program


def parse(given: list[str]) -> tuple[Flags, list[str]]:
    """Return flags and positionals; as QMD does, take unknown flags without a word."""
    flags: Flags = {"-c": []}
    names: list[str] = []
    plain = False
    words = iter(given)
    for word in words:
        if plain or not word.startswith("-"):
            names.append(word)
        elif word == "--":
            plain = True
        elif word in VALUES:
            value = next(words)
            flags["-c"] += [value] if word == "-c" else []
            flags[word] = flags["-c"] if word == "-c" else value
        else:
            flags["--version" if "v" in word.lstrip("-")[:1] else word] = True
    return flags, names


def places(flags: Flags) -> tuple[Path, Path]:
    """Return configuration and index: a `.qmd` in this folder or one above comes first, unless `--index` is given."""
    if "--index" not in flags:
        for folder in (Path.cwd(), *Path.cwd().parents):
            if (folder / ".qmd" / "index.yml").exists():
                return folder / ".qmd" / "index.yml", folder / ".qmd" / "index.sqlite"
    return CONFIG, INDEX


def collections(config: Path) -> dict[str, tuple[str, str]]:
    text = config.read_text() if config.exists() else ""
    found = re.findall(r"^  (\S+):\n    path: (.*)\n    pattern: (.*)\n", text, re.MULTILINE)
    return {name: (path, json.loads(pattern)) for name, path, pattern in found}


def save(config: Path, known: dict[str, tuple[str, str]]) -> None:
    config.parent.mkdir(parents=True, exist_ok=True)
    entries = "".join(
        f"  {name}:\n    path: {path}\n    pattern: {json.dumps(mask)}\n" for name, (path, mask) in known.items()
    )
    config.write_text(f"collections:\n{entries}{MODELS}")


def reindex(config: Path, index: Path) -> None:
    old = json.loads(index.read_text()) if index.exists() else {"vectors": []}
    files = {}
    for name, (path, mask) in collections(config).items():
        for pattern in mask[1:-1].split(",") if mask.startswith("{") else [mask]:
            for file in sorted(Path(path).glob(pattern)):
                inside = file.relative_to(path)
                if file.is_file() and not any(part.startswith(".") or part == "node_modules" for part in inside.parts):
                    files[f"{name}/{inside.as_posix()}"] = file.read_bytes().decode("utf-8", "replace")
    index.parent.mkdir(parents=True, exist_ok=True)
    draft = index.with_suffix(f".{os.getpid()}")
    draft.write_text(json.dumps({"files": files, "vectors": old["vectors"]}))
    draft.replace(index)
    print(f"\nIndexed: {len(files)} new, 0 updated, 0 unchanged, 0 removed\n")


def snippet(body: str, terms: list[str]) -> tuple[int, str]:
    lines = body.split("\n")
    best = max(range(len(lines)), key=lambda i: (sum(term in lines[i].lower() for term in terms), -i))
    first, last = max(0, best - 1), min(len(lines), best + 3)
    text = "\n".join(lines[first:last])
    text = text[:297] + "..." if len(text) > 300 else text
    return best + 1, f"@@ -{first + 1},{last - first} @@ ({first} before, {len(lines) - last} after)\n{text}"


def search(command: str, flags: Flags, query: str, config: Path, index: Path) -> str:
    unknown = [name for name in flags["-c"] if name not in collections(config)]
    if unknown:
        sys.exit(f"Collection not found: {unknown[0]}")
    if not query:
        sys.exit("Usage: qmd search [options] <query>")
    known = json.loads(index.read_text())
    if command != "search" and not known["vectors"]:
        count = len(known["files"])
        sys.stderr.write(f"Warning: {count} documents (100%) need embeddings. Run 'qmd embed' for better results.\n")
    if command == "query" and "\n" in query and not re.match(r"(?i)(lex|vec|hyde|intent):", query):
        sys.exit(
            "Line 1 is missing a lex:/vec:/hyde:/intent: prefix. Each line in a query document must start with one."
        )
    terms = [word.lower() for word in query.split() if not word.startswith("-")]
    without = [word[1:].lower() for word in query.split() if word.startswith("-") and word != "-"]
    found: list[dict[str, object]] = []
    for name, body in known["files"].items():
        text = body.lower()
        matches = all(term in text for term in terms) if command == "search" else any(term in text for term in terms)
        usable = command == "search" or name in known["vectors"]
        if (
            usable
            and terms
            and matches
            and not any(term in text for term in without)
            and name.split("/")[0] in flags["-c"]
        ):
            line, shown = snippet(body, terms)
            title = body.lstrip("# \ufeff").split("\n")[0].strip()
            found.append({"docid": f"#{len(found):06x}", "score": 0, "file": f"qmd://{name}", "line": line})
            found[-1] |= {"title": title, "snippet": shown}
    return json.dumps(found[: int(flags.get("-n", 20))], indent=2, ensure_ascii=False)


def misbehave(how: str, output: str) -> None:  # noqa: C901 - a table of branches
    """Print a good answer badly, or none at all."""
    if how.startswith("random"):
        calls = Path(os.environ["XDG_CACHE_HOME"] + ".calls").read_text().count("\n")
        how = random.Random(f"{how} {calls}").choice(
            ["", "", "crash", "hang", "noise", "partial", "garbage", "flood", "killed"]
        )
    if how == "crash":
        sys.exit("Error: database disk image is malformed")
    elif how == "hang":
        subprocess.Popen(["sleep", "600"]).wait()
    elif how == "noise":
        print("\x1b[2K\x1b[33m[warn]\x1b[0m ggml [1/3] loading []{ \x1b]0;title\x07")
        print(output.replace("[\n", "\x1b[1m[\n\x1b[0m", 1))
        print("[done] {}")
    elif how == "partial":
        print(output[: len(output) * 2 // 3])
    elif how == "garbage":
        print("Segmentation fault, or was it?")
    elif how == "flood":
        with contextlib.suppress(BrokenPipeError):
            while True:
                print("x" * 65536)
    elif how == "memory":
        kept = []
        while True:
            kept.append(b"x" * 4_000_000)
            time.sleep(0.01)
    elif how == "killed":
        os.kill(os.getpid(), 9)
    else:
        print(output)


def main() -> None:
    flags, names = parse(sys.argv[1:])
    how = os.environ.get("QMD_STAND_IN", "")
    command = names[0] if names else ""
    with contextlib.suppress(OSError), Path(os.environ["XDG_CACHE_HOME"] + ".calls").open("a") as log:
        log.write(json.dumps({"words": sys.argv[1:], "folder": str(Path.cwd()), "env": dict(os.environ)}) + "\n")
    if flags.get("--version") or how == "old":
        print("qmd 1.0.7" if how == "old" else "qmd 2.8.3 (facd35e)")
        sys.exit(how == "old" and not flags.get("--version"))
    sys.stderr.write("Cannot find package 'sqlite-vec-linux-x64' imported from sqlite-vec/index.mjs\n")
    if how.startswith(f"{command}:"):
        how = how.partition(":")[2]
    elif (":" in how and not how.startswith("random")) or command not in {"search", "vsearch", "query"}:
        how = ""
    config, index = places(flags)
    known = collections(config)
    if command == "collection" and names[1] == "add":
        if flags["--name"] in known:
            sys.exit(f"Collection '{flags['--name']}' already exists.")
        save(config, known | {flags["--name"]: (names[2], flags["--mask"])})
        reindex(config, index)
    elif command == "collection" and names[1] == "remove":
        save(config, {name: value for name, value in known.items() if name != names[2]})
        reindex(config, index)
    elif command == "update":
        misbehave(how, "Updating 1 collection(s)...")
        reindex(config, index)
    elif command == "embed":
        misbehave(how, "Embedding...")
        values = json.loads(index.read_text())
        index.write_text(json.dumps(values | {"vectors": list(values["files"])}))
    else:
        misbehave(how, search(command, flags, " ".join(names[1:]), config, index))


if __name__ == "__main__":
    main()
