"""Both ways of opening a file refuse links; the second one serves systems that cannot hold folders open."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from notewell.files import no_follow

WAYS = [pytest.param(no_follow._open_by_path, id="by path")]
if no_follow._FOLDER_BY_FOLDER:
    WAYS.append(pytest.param(no_follow._open_by_folder, id="folder by folder"))


@pytest.fixture
def base(tmp_path):
    (tmp_path / "base" / "deep").mkdir(parents=True)
    (tmp_path / "base" / "deep" / "a.md").write_bytes(b"note")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "a.md").write_bytes(b"secret")
    try:
        (tmp_path / "base" / "link.md").symlink_to(tmp_path / "outside" / "a.md")
        (tmp_path / "base" / "linked").symlink_to(tmp_path / "outside", target_is_directory=True)
    except OSError as error:
        pytest.skip(f"no symbolic links here: {error}")
    return os.path.realpath(tmp_path / "base")


@pytest.mark.parametrize("open_file", WAYS)
def test_a_regular_file_is_opened(base, open_file):
    with os.fdopen(open_file(base, ("deep", "a.md")), "rb") as file:
        assert file.read() == b"note"


@pytest.mark.parametrize("open_file", WAYS)
@pytest.mark.parametrize(
    "parts", [("link.md",), ("linked", "a.md"), ("gone.md",), ("deep", "a.md", "b.md")], ids="/".join
)
def test_links_and_missing_files_are_refused(base, open_file, parts):
    with pytest.raises(OSError):
        open_file(base, parts)


@pytest.mark.parametrize("parts", [("deep",), ("pipe.md",)], ids="/".join)
def test_only_regular_files_are_read(base, parts):
    if hasattr(os, "mkfifo"):
        os.mkfifo(Path(base) / "pipe.md")
    with pytest.raises(OSError):
        no_follow.read_below(base, parts)


def test_a_folder_is_named_in_the_error_and_not_left_open(base):
    folder = Path(base) / "deep"
    opened = os.open(folder / "a.md", os.O_RDONLY)  # the lowest number that is free
    os.close(opened)
    for read in (lambda: no_follow.read_regular(folder), lambda: no_follow.read_below(base, ("deep",))):
        with pytest.raises(OSError) as caught:
            read()
        assert str(caught.value.filename).endswith("deep")
    again = os.open(folder / "a.md", os.O_RDONLY)
    os.close(again)
    assert again == opened
