"""Whatever is typed: no query is an error, and no path leads out of the memory."""

from __future__ import annotations

import os
import random
from itertools import product
from pathlib import Path

import pytest

from notewell import Citation, Memory, NoteNotFoundError, PathRefusedError, SearchAnswer

# --- queries ------------------------------------------------------------------------------------

PIECES = [
    *('"', "'", "`", "*", "^", "+", "-", ":", "(", ")", "{", "}", "[", "]", "<", ">", "\\", "/", "|", "&", "%", "_"),
    *(
        "AND",
        "OR",
        "NOT",
        "NEAR(",
        "NEAR/2",
        "NEAR(a b, 0)",
        "a*",
        '"a"*',
        "col:x",
        "{a b}:x",
        "- -",
        '""',
        '"""',
        "^a",
    ),
    *("text_terms:x", "rowid", "SELECT", "'; DROP TABLE chunks;--", "?", "?1", ":a", "@a", "$a", "NULL", "x'00'"),
    *("\x00", "\x01", "\x07", "\x1b[2J", "\x7f", "\r\n", "\t", "\n", "\u2028", "\u200b", "\u202e", "\ufeff", "\ufffe"),
    *(
        "\ud800",
        "\udfff",
        "\udc80x",
        "🎉",
        "👩‍👩‍👧‍👦",
        "🇵🇹",
        "e\u0301",
        "ﬁ",
        "İ",
        "ß",
        "ǅ",
        "\u0345",
        "\U0010ffff",
        "𝔘",
    ),
    *("数据库", "迁", "データ", "ﾃﾞｰﾀ", "데이터", "ㅎ", "ไทย", "עברית", "العربية", "हिन्दी", "数x据1库", "Ωμέγα"),
    *(
        "printer",
        "guest network",
        "HARB-214",
        "192.168.10.7",
        "snake_case",
        "camelCase",
        "a.b.c",
        "C++",
        "3.14",
        "#tag",
    ),
    *("the", "of the and", "a" * 300, "-" * 300, '"' * 301, "(" * 300, "数" * 300, " " * 300, "a b " * 200, "9" * 400),
]
FUZZED = 5_000


def fuzzed_queries(seed: int, count: int):
    """Yield queries made of pieces that mean something to some parser, and of plain noise."""
    chance = random.Random(seed)
    for _ in range(count):
        pieces = chance.choices(PIECES, k=chance.randint(1, 8))
        if chance.random() < 0.3:
            pieces.append("".join(chr(chance.randrange(0x250)) for _ in range(chance.randint(1, 30))))
        if chance.random() < 0.1:
            pieces.append("".join(chr(chance.randrange(0x11_0000)) for _ in range(chance.randint(1, 10))))
        chance.shuffle(pieces)
        yield chance.choice(["", " ", '"', "  "]).join(pieces)


@pytest.fixture
def memory(workspace):
    with Memory.open(workspace, provider="hashing") as opened:
        opened.index()
        yield opened


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_thousands_of_fuzzed_queries_raise_nothing(memory, seed):
    fusions = ("balanced", "weighted", "rrf")
    for number, query in enumerate(fuzzed_queries(seed, FUZZED // 5)):
        answer = memory.search(
            query, sync=False, min_score=0, fusion=fusions[number % 3], keyword_only=number % 4 == 0, explain=True
        )
        assert isinstance(answer, SearchAnswer)
        assert answer.query == (query if len(query) <= 400 else f"{query[:397]}...")  # a long one is cut
        assert all(0 <= hit.score <= 1 for hit in answer.hits)
        assert [hit.score for hit in answer.hits] == sorted((hit.score for hit in answer.hits), reverse=True)


@pytest.mark.parametrize(
    "query",
    [
        pytest.param("printer " * 12_500, id="one word 100 kB long"),
        pytest.param(" ".join(f"word{i}" for i in range(12_000)), id="100 kB of different words"),
        pytest.param("x" * 100_000, id="100 kB without a blank"),
        pytest.param('"' * 100_000, id="100 kB of quotes"),
        pytest.param("数据库" * 12_000, id="100 kB of Chinese"),
        pytest.param("!?.,;:-()[]{}" * 8_000, id="100 kB of punctuation"),
        pytest.param("\x00" * 100_000, id="100 kB of NUL"),
        pytest.param("🎉" * 25_000, id="100 kB of emoji"),
    ],
)
def test_a_query_of_100_kb(memory, query):
    assert memory.search(query).query == f"{query[:397]}..."


@pytest.mark.parametrize(
    "query",
    ["printer\x00", '"printer', "printer*", "(printer", "NEAR(printer", "printer AND", "NOT printer", "-printer"],
)
def test_what_looks_like_an_operator_does_not_keep_the_word_from_being_found(memory, query):
    assert memory.search(query).hits[0].path == "memory/network.md"


@pytest.mark.parametrize("query", ['"', "*", "...", "?!", "\x00", " ", "", "🎉", "-"])
def test_a_query_without_a_word_finds_nothing_by_keyword(memory, query):
    answer = memory.search(query, keyword_only=True, min_score=0)
    assert answer.hits == ()


# --- paths --------------------------------------------------------------------------------------

UPWARDS = [
    *("../", "../../", "./../", "..//", "memory/../../", "memory/./../../", "memory/deep/../../../", "memory//../../"),
    *("MEMORY.md/../../", "memory/a.md/../../../", "memory/none/../../../", "....//", ".../", "..;/", ".. /", " ../"),
    *("..\\", "..\\..\\", "memory\\..\\..\\", "memory/..\\..\\", "..\\/", "\\..\\", "memory/deep\\..\\..\\..\\"),
    *("%2e%2e/", "%2E%2E/", "%2e%2e%2f", "..%2f", "..%5c", "%252e%252e/", "..%252f", ".%2e/", "%c0%ae%c0%ae/"),
    *("%u002e%u002e/", "memory/%2e%2e/%2e%2e/", "memory/..%2f..%2f", "&#46;&#46;/", "\\u002e\\u002e/"),
    *("．．/", "‥/", "..／", "..∕", "..⁄", "..＼", ".\u200b./", "..\u200b/", "\u202e../", "\ufeff../", "․․/", "。。/"),
    *("\x00../", "../\x00", "memory/\x00/../../", "..\n/", "..\r\n/", "\t../", "\x1b../", "..\x7f/"),
    *("file:../", "file://", "file:///", "http://localhost/", "data:", "~/", "~root/", "$HOME/", "${HOME}/", "`pwd`/"),
    *("C:", "C:/", "C:\\", "c:..\\", "\\\\server\\share\\", "//server/share/", "\\\\?\\C:\\", "\\\\.\\", "//./", "@"),
    *(
        "%USERPROFILE%\\",
        "%SYSTEMROOT%/",
        "@../",
        "@outside/../",
        "@/",
        "-",
        "--",
        "/",
        "//",
        "///",
        "\\",
        "{outside}/",
    ),
]
ENDINGS = ["", "/", ".", " ", "\x00", "%00.md", "::$DATA", "?x=.md", "#L1-L9"]
INSIDE = [
    "",
    ".",
    "..",
    "/",
    "memory",
    "memory/",
    "memory/deep",
    "memory/folder.md",
    "memory/data.txt",
    "memory/.hidden.md",
    "memory/.git/x.md",
    "notewell.toml",
    ".notewell/main/CURRENT",
    ".notewell/main/index-1.sqlite",
    ".notewell/x.md",
    "notes-outside.md",
    "memory/a.md/",
    "memory/a.md/.",
    "memory/./a.md",
    "memory//a.md",
    "./memory/a.md",
    "./MEMORY.md",
    "/MEMORY.md",
    "memory/deep/../a.md",
    "memory/a.md\x00",
    "memory/a\x00.md",
    "memory/\udcff.md",
    "memory/" + "x" * 300 + ".md",
]
DEVICES = ["/dev/zero", "/dev/null", "/dev/stdin", "/dev/fd/0", "/proc/self/environ", "/proc/self/mem", "/etc/passwd"]
LINKS = ["memory/link.md", "memory/dangling.md", "memory/zero.md", "memory/linked/secret.md", "memory/loop/a.md"]


def escapes(root: Path) -> list[str]:
    """Return every attempt, each at a file that exists, at one that does not and at one that is no note."""
    targets = ["outside/secret.md", "outside/absent.md", "etc/passwd"]
    upwards = [up + target for up, target in product(UPWARDS, targets)]
    endings = [f"../{target}{ending}" for target, ending in product(targets, ENDINGS)]
    absolute = [f"{root.as_posix()}/{target}{ending}" for target, ending in product(targets, ENDINGS)]
    lead_ins = [f"{lead}{root.as_posix()}/{target}" for lead, target in product(["/", "//", "file://", "@"], targets)]
    through = [f"memory/{device}" for device in DEVICES] + [f"memory/../../../../../../../..{d}" for d in DEVICES]
    return [*dict.fromkeys([*upwards, *endings, *absolute, *lead_ins, *INSIDE, *DEVICES, *through])]


@pytest.fixture(scope="module")
def fortress(tmp_path_factory):
    """A memory with a secret beside it."""
    root = tmp_path_factory.mktemp("fortress").resolve()
    for name in (
        "outside/secret.md",
        "workspace/MEMORY.md",
        "workspace/notes-outside.md",
        "workspace/memory/a.md",
        "workspace/memory/deep/b.md",
        "workspace/memory/data.txt",
        "workspace/memory/.hidden.md",
        "workspace/memory/.git/x.md",
        "workspace/memory/folder.md/inner.md",
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("top secret content\n", encoding="utf-8")
    with Memory.open(root / "workspace", provider="none") as memory:
        memory.index()
    return root


@pytest.fixture
def linked(fortress):
    """The same, with links in it that lead out."""
    memory = fortress / "workspace" / "memory"
    targets = {
        "link.md": fortress / "outside/secret.md",
        "dangling.md": fortress / "outside/absent.md",
        "zero.md": Path("/dev/zero"),
        "linked": fortress / "outside",
        "loop": memory,
    }
    made = []
    try:
        for name, target in targets.items():
            (memory / name).symlink_to(target, target_is_directory=target.is_dir())
            made.append(memory / name)
        yield fortress
    except OSError as error:
        pytest.skip(f"no symbolic links here: {error}")
    finally:
        for link in made:
            link.unlink()


def test_the_corpus_has_300_escapes(fortress):
    assert len(escapes(fortress)) >= 300


def test_what_is_memory_can_be_read(fortress):
    with Memory.open(fortress / "workspace", provider="none") as memory:
        for path in ("MEMORY.md", "memory/a.md", "memory/deep/b.md", "memory/folder.md/inner.md"):
            assert memory.get(path).text == "top secret content"


def test_every_escape_is_refused_with_one_and_the_same_error(fortress):
    with Memory.open(fortress / "workspace", provider="none") as memory:
        for path in escapes(fortress):
            with pytest.raises(PathRefusedError) as refused:
                memory.get(path)
            assert refused.value.message == f"not a memory file: {Citation.parse(path).path!r}"
            assert "secret content" not in refused.value.message + refused.value.hint


@pytest.mark.slow
def test_every_escape_is_refused_by_the_command(notewell, fortress):
    for path in escapes(fortress):
        if "\x00" in path:
            continue  # no argument of a process can hold it
        done = notewell("get", "-w", fortress / "workspace", "--json", "--", path)
        assert (done.code, done.document["error"]["kind"]) == (1, "path_refused"), path
        assert "secret content" not in done.out + done.err


@pytest.mark.parametrize("path", LINKS)
def test_every_link_is_refused(linked, path):
    with Memory.open(linked / "workspace", provider="none") as memory, pytest.raises(PathRefusedError):
        memory.get(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes in folders here")
def test_a_pipe_is_refused_and_not_waited_for(fortress):
    pipe = fortress / "workspace/memory/pipe.md"
    os.mkfifo(pipe)
    try:
        with Memory.open(fortress / "workspace", provider="none") as memory, pytest.raises(PathRefusedError):
            memory.get("memory/pipe.md")
    finally:
        pipe.unlink()


@pytest.mark.parametrize("path", ["MEMORY/a.md", "Memory/a.md", "memory/A.md", "memory/a.MD", "memory/DEEP/b.md"])
def test_another_case_never_reads_another_file(fortress, path):
    with Memory.open(fortress / "workspace", provider="none") as memory:
        if (fortress / "workspace" / path).exists():  # a disk that does not tell upper from lower case
            assert memory.get(path).path.lower() == path.lower()
        else:
            with pytest.raises((PathRefusedError, NoteNotFoundError)):
                memory.get(path)


def test_a_refusal_does_not_depend_on_what_is_there(fortress):
    """The same words for a file that exists and for one that does not, but for the path itself."""
    with Memory.open(fortress / "workspace", provider="none") as memory:
        for up in UPWARDS:
            said = []
            for target in ("outside/secret.md", "outside/absent.md"):
                with pytest.raises(PathRefusedError) as refused:
                    memory.get(up + target)
                said.append((refused.value.message.replace(target, "TARGET"), refused.value.hint))
            assert said[0] == said[1]
