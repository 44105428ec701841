"""Nothing outside the memory can be read, whatever the path looks like."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from notewell.errors import PathRefusedError
from notewell.sources.notes import NotesSource
from notewell.types import FileStamp

ABSOLUTE = [
    "/etc/passwd",
    "/etc/passwd.md",
    "/memory/a.md",
    "//memory/a.md",
    "///etc/x.md",
    "//server/share/x.md",
    "/",
    "//",
    "{tmp}/outside/secret.md",
    "{tmp}/workspace/memory/a.md",
    "{tmp}/workspace/MEMORY.md",
    "C:/memory/a.md",
    "C:\\memory\\a.md",
    "c:memory/a.md",
    "C:a.md",
    "\\\\server\\share\\x.md",
    "\\\\?\\C:\\x.md",
    "\\\\.\\C:\\x.md",
    "//?/C:/x.md",
    "\\memory\\a.md",
    "~/secret.md",
    "~root/secret.md",
    "$HOME/secret.md",
    "%USERPROFILE%/secret.md",
    "file:///etc/passwd.md",
    "file://memory/a.md",
    "http://example.org/a.md",
]
UPWARDS = [
    "..",
    "../",
    "../secret.md",
    "../outside/secret.md",
    "../../etc/passwd.md",
    "memory/..",
    "memory/../MEMORY.md",
    "memory/../notes-outside.md",
    "memory/../../outside/secret.md",
    "memory/deep/../../notes-outside.md",
    "memory/deep/../a.md",
    "memory/./a.md",
    "./MEMORY.md",
    "./memory/a.md",
    "./../outside/secret.md",
    "memory//a.md",
    "memory/a.md/",
    "memory/a.md/.",
    "memory/a.md/..",
    "memory/a.md/../a.md",
    "memory/a.md/../../notes-outside.md",
    ".../outside/secret.md",
    "memory/.../a.md",
    "memory/.. /a.md",
    "memory/..../a.md",
    "memory/ ../a.md",
    "memory/..;/a.md",
    "..\\outside\\secret.md",
    "memory\\a.md",
    "memory\\..\\notes-outside.md",
    "memory/..\\notes-outside.md",
    "memory/..\\..\\outside\\secret.md",
    "memory\\../notes-outside.md",
    "MEMORY.md/../notes-outside.md",
    "@outside/secret.md",
    "@../outside/secret.md",
    "@/secret.md",
    "@",
]
ENCODED = [
    "memory/%2e%2e/notes-outside.md",
    "memory/%2E%2E/notes-outside.md",
    "memory/.%2e/notes-outside.md",
    "memory%2fa.md",
    "memory/%2fa.md",
    "memory%2f..%2fnotes-outside.md",
    "memory%5ca.md",
    "memory/%5c..%5cnotes-outside.md",
    "%2e%2e/outside/secret.md",
    "%2fetc%2fpasswd.md",
    "memory/%252e%252e/notes-outside.md",
    "memory/%c0%ae%c0%ae/notes-outside.md",
    "memory/%c0%af..%c0%afnotes-outside.md",
    "memory/%u002e%u002e/notes-outside.md",
    "memory/a%00.md",
    "memory/a.md%00.txt.md",
    "memory/a%0a.md",
    "memory/．．/notes-outside.md",
    "memory/‥/notes-outside.md",
    "memory／a.md",
    "memory/．．／notes-outside.md",
    "memory∕a.md",
    "memory/..∕notes-outside.md",
    "memory⁄a.md",
    "memory/..⁄notes-outside.md",
    "memory＼a.md",
    "memory/..＼notes-outside.md",
    "ｍemory/a.md",
    "mem\u200bory/a.md",
    "memory/\u202ea.md",
    "memory/a\u200d.md",
    "\ufeffmemory/a.md",
]
CONTROL = [
    "",
    " ",
    "\t",
    "\n",
    ".",
    "\0",
    "memory/a.md\0",
    "memory/a\0.md",
    "\0memory/a.md",
    "memory/a.md\0.md",
    "memory/\0/a.md",
    "memory/a.md\n",
    "\nmemory/a.md",
    "memory/a\r\n.md",
    "memory/\x1b[2Ja.md",
    "memory/\x7f.md",
    "memory/\udcff.md",
    "\ud800.md",
    " memory/a.md",
    "memory /a.md",
    "memory/ a.md ",
    "memory/a.md ",
    "memory/a.md.",
    "memory/a.md...",
    "memory./a.md",
    "memory/deep./b.md",
    "memory/deep /b.md",
]
WINDOWS = [
    "memory/CON.md",
    "memory/con.md",
    "memory/NUL.md",
    "memory/nul .md",
    "memory/aux.txt.md",
    "memory/PRN.md",
    "memory/COM1.md",
    "memory/com9.log.md",
    "memory/LPT1.md",
    "memory/lpt².md",
    "memory/CONIN$.md",
    "memory/CON/a.md",
    "memory/a.md:stream.md",
    "memory/a.md::$DATA.md",
    "memory/a.md::$DATA",
    "memory:stream/a.md",
    "MEMORY.md:x.md",
    "memory/b:c.md",
    "memory/a?.md",
    "memory/*.md",
    "memory/<a>.md",
    "memory/a|b.md",
    'memory/"a".md',
]
NOT_NOTES = [
    "memory",
    "memory/",
    "memory/deep",
    "memory/folder.md",
    "memory/pipe.md",
    "memory/data.txt",
    "memory/a",
    "memory/a.markdown",
    "memory/a.md.bak",
    "memory/a.md~",
    "notes-outside.md",
    "README.md",
    "memory-old/x.md",
    "memoryx/x.md",
    "memory.md.md",
    "xmemory/a.md",
    "MEMORY.mdx",
    "memory/.git/x.md",
    "memory/.hidden.md",
    "memory/deep/.obsidian/x.md",
    "memory/node_modules/x.md",
    "memory/.notewell/index.md",
    ".notewell/x.md",
    ".git/x.md",
    ".md",
    "memory/.md",
    "a.md",
    "Memory.md/a.md",
]
LINKS = [
    "memory/link.md",
    "memory/link-inside.md",
    "memory/dangling.md",
    "memory/linked/secret.md",
    "memory/linked/deep/secret.md",
    "memory/deep/up/MEMORY.md",
    "memory/deep/up/notes-outside.md",
    "memory/loop/a.md",
    "memory/loop/loop/loop/a.md",
    "memory.md",
]
CORPUS = ABSOLUTE + UPWARDS + ENCODED + CONTROL + WINDOWS + NOT_NOTES


@pytest.fixture(scope="module")
def source(tmp_path_factory) -> NotesSource:
    tmp = tmp_path_factory.mktemp("escapes")
    root = tmp / "workspace"
    for name in (
        "outside/secret.md",
        "outside/deep/secret.md",
        "workspace/MEMORY.md",
        "workspace/notes-outside.md",
        "workspace/README.md",
        "workspace/a.md",
        "workspace/memory-old/x.md",
        "workspace/memoryx/x.md",
        "workspace/.git/x.md",
        "workspace/.notewell/x.md",
        "workspace/memory/a.md",
        "workspace/memory/data.txt",
        "workspace/memory/.hidden.md",
        "workspace/memory/.git/x.md",
        "workspace/memory/node_modules/x.md",
        "workspace/memory/deep/b.md",
        "workspace/memory/deep/.obsidian/x.md",
        "workspace/memory/folder.md/inner.md",
    ):
        (tmp / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp / name).write_text("content", encoding="utf-8")
    if hasattr(os, "mkfifo"):
        os.mkfifo(root / "memory" / "pipe.md")
    else:
        (root / "memory" / "pipe.md").mkdir()
    return NotesSource(root, ())


@pytest.fixture(scope="module")
def linked(source: NotesSource, tmp_path_factory) -> NotesSource:
    tmp = tmp_path_factory.mktemp("links")
    root = tmp / "workspace"
    for name in ("outside/deep/secret.md", "outside/secret.md", "workspace/MEMORY.md", "workspace/notes-outside.md"):
        (tmp / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp / name).write_text("content", encoding="utf-8")
    (root / "memory" / "deep").mkdir(parents=True)
    (root / "memory" / "a.md").write_text("content", encoding="utf-8")
    links = {
        "memory/link.md": tmp / "outside/secret.md",
        "memory/link-inside.md": root / "memory/a.md",
        "memory/dangling.md": tmp / "nowhere.md",
        "memory/linked": tmp / "outside",
        "memory/deep/up": root,
        "memory/loop": root / "memory",
        "memory.md": root / "notes-outside.md",
    }
    for name, target in links.items():
        try:
            (root / name).symlink_to(target, target_is_directory=target.is_dir())
        except OSError as error:
            pytest.skip(f"no symbolic links here: {error}")
    return NotesSource(root, ())


def test_the_corpus_is_large_and_without_repeats():
    assert len(set(CORPUS + LINKS)) == len(CORPUS + LINKS) >= 180


def test_what_the_corpus_must_not_refuse(source):
    for path in ("MEMORY.md", "memory/a.md", "memory/deep/b.md", "memory/folder.md/inner.md"):
        assert source.resolve(path).read_text(encoding="utf-8") == "content"
        assert source.exists(path)


@pytest.mark.parametrize("path", CORPUS, ids=ascii)
def test_an_escape_is_refused_with_one_error(source, path, request):
    path = path.replace("{tmp}", str(Path(source.resolve("MEMORY.md")).parents[1].as_posix()))
    with pytest.raises(PathRefusedError) as refused:
        source.resolve(path)
    assert refused.value.message == f"not a memory file: {path!r}"
    assert refused.value.__cause__ is None
    assert not source.exists(path)
    with pytest.raises(PathRefusedError):
        source.stamp_of(path)
    with pytest.raises(OSError):
        source.read(FileStamp("memory", path, 0, 0))


@pytest.mark.parametrize("path", LINKS)
def test_a_link_is_refused_wherever_it_lies(linked, path):
    with pytest.raises(PathRefusedError):
        linked.resolve(path)
    with pytest.raises(OSError):
        linked.read(FileStamp("memory", path, 0, 0))
