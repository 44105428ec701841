"""Models downloaded from a hub: a real server on loopback that behaves, disconnects, lies or refuses."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from filelock import FileLock

from notewell.embedding.local import download
from notewell.embedding.local.download import download_model
from notewell.embedding.local.models import HubFile, hub_file
from notewell.errors import EmbedderUnavailableError
from notewell.settings import LocalSettings, Settings

from .loopback_hub import Hub, serving

huggingface_hub = pytest.importorskip("huggingface_hub", reason="the extra `gguf` is not installed")

NAME = "hf:owner/tiny-GGUF/tiny.gguf"
CONTENT = bytes(range(256)) * 40_000  # 10 MB: several blocks


@pytest.fixture
def hub() -> Iterator[Hub]:
    with serving(Hub(CONTENT)) as hub:
        yield hub


@pytest.fixture
def settings(hub, tmp_path) -> Settings:
    return Settings(local=LocalSettings(model_cache_dir=str(tmp_path / "models"), hub_url=hub.address))


@pytest.fixture
def pauses(monkeypatch) -> list[float]:
    """Waits between attempts are recorded instead of done."""
    waited: list[float] = []
    monkeypatch.setattr(download, "time", SimpleNamespace(sleep=waited.append))
    return waited


def part_of(settings: Settings) -> Path:
    target = hub_file(NAME).path_in(Path(settings.local.model_cache_dir))
    return target.with_name(f"{target.name}.part")


# --- names ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("hf:a/b/c.gguf", HubFile("a/b", "main", "c.gguf"), id="plain"),
        pytest.param("hf:a/b@v2/x/c.gguf", HubFile("a/b", "v2", "x/c.gguf"), id="revision and folder"),
        pytest.param(
            "EmbeddingGemma-300m",
            HubFile("ggml-org/embeddinggemma-300M-GGUF", "main", "embeddinggemma-300M-Q8_0.gguf"),
            id="by name",
        ),
    ],
)
def test_names_of_models(name, expected):
    assert hub_file(name) == expected


@pytest.mark.parametrize(
    "name", ["hf:a/b", "hf:a/../c.gguf", "hf:a/b/..", "hf:a/b/c.onnx", "gpt", "hf:/a/b/c.gguf", ""]
)
def test_a_name_that_means_nothing(name):
    with pytest.raises(EmbedderUnavailableError, match="is not the name of a model that can be downloaded") as raised:
        hub_file(name)
    assert "hf:owner/repository/file.gguf" in raised.value.hint


def test_where_it_is_kept(tmp_path):
    file = hub_file("hf:a/b@v2/x/c.gguf")
    assert file.path_in(tmp_path) == tmp_path / "a--b" / "v2" / "x" / "c.gguf"
    assert str(file) == "hf:a/b@v2/x/c.gguf"


# --- downloading ---------------------------------------------------------------------------------


def test_a_model_is_fetched_once(hub, settings):
    steps = []
    path = download_model(NAME, settings=settings, progress=steps.append)
    assert path.read_bytes() == CONTENT
    assert [request[0] for request in hub.requests] == [
        "/owner/tiny-GGUF/resolve/main/tiny.gguf",
        "/cdn/owner/tiny-GGUF/resolve/main/tiny.gguf",
    ]
    assert (steps[0].stage, steps[-1].done, steps[-1].total) == ("download", len(CONTENT) >> 20, len(CONTENT) >> 20)
    assert download_model(NAME, settings=settings) == path
    assert len(hub.requests) == 2
    assert not part_of(settings).exists()


def test_a_file_in_a_folder_of_another_revision(hub, settings):
    download_model("hf:a/b@v2/x/c.gguf", settings=settings)
    assert hub.requests[0][0] == "/a/b/resolve/v2/x/c.gguf"


def test_a_hub_that_redirects_within_its_own_host(hub, settings):
    hub.redirect_to = "/cdn/{path}"
    assert download_model(NAME, settings=settings).read_bytes() == CONTENT


def test_nothing_is_sent_but_the_name(hub, settings, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_secret_0451")
    download_model(NAME, settings=settings)
    assert [headers["user-agent"] for headers in hub.headers] == ["notewell", "notewell"]
    assert not any("authorization" in headers or "0451" in str(headers) for headers in hub.headers)


def test_the_model_of_the_settings_is_the_default(hub, settings):
    chosen = Settings(local=settings.local, model=NAME)
    assert download_model(settings=chosen).name == "tiny.gguf"


def test_a_download_that_broke_off_goes_on(hub, settings, pauses):
    hub.drop_after = [3_000_000, 4_000_000]
    path = download_model(NAME, settings=settings)
    assert path.read_bytes() == CONTENT
    asked = [wanted for address, wanted in hub.requests if address.startswith("/cdn/")]
    assert asked == [None, "bytes=3000000-", "bytes=7000000-"]
    assert len(pauses) == 2


def test_another_run_goes_on_where_the_first_gave_up(hub, settings, pauses):
    hub.drop_after = [3_000_000, 0, 0, 0]
    with pytest.raises(EmbedderUnavailableError, match=r"cannot be reached: .*"):
        download_model(NAME, settings=settings)
    assert part_of(settings).stat().st_size == 3_000_000
    hub.drop_after, hub.requests = [], []
    assert download_model(NAME, settings=settings).read_bytes() == CONTENT
    assert hub.requests[-1][1] == "bytes=3000000-"


RUN = """
import sys
from notewell.embedding.local.download import download_model
from notewell.settings import LocalSettings, Settings
settings = Settings(local=LocalSettings(model_cache_dir=sys.argv[1], hub_url=sys.argv[2]))
download_model(sys.argv[3], settings=settings, progress=lambda step: print(step.done, flush=True))
"""


@pytest.mark.slow
def test_a_killed_download_goes_on_where_it_was(hub, settings):
    hub.hang_after = 3_000_000
    command = [sys.executable, "-c", RUN, settings.local.model_cache_dir, hub.address, NAME]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        while process.stdout.readline().strip() != "2":
            assert process.poll() is None
        process.kill()
    hub.released.set()
    kept = part_of(settings).stat().st_size
    assert kept > 1_000_000
    hub.hang_after, hub.requests = None, []
    assert download_model(NAME, settings=settings).read_bytes() == CONTENT
    assert hub.requests[-1][1] == f"bytes={kept}-"


def test_a_server_without_ranges_sends_all_of_it_again(hub, settings, pauses):
    hub.drop_after, hub.ranges = [3_000_000], False
    assert download_model(NAME, settings=settings).read_bytes() == CONTENT


def test_a_part_of_another_version_is_not_mixed_in(hub, settings):
    part = part_of(settings)
    part.parent.mkdir(parents=True)
    part.write_bytes(b"x" * 1000)
    assert download_model(NAME, settings=settings).read_bytes() == CONTENT


def test_a_part_that_is_longer_than_the_file(hub, settings, pauses):
    part = part_of(settings)
    part.parent.mkdir(parents=True)
    part.write_bytes(CONTENT + b"more")
    assert download_model(NAME, settings=settings).read_bytes() == CONTENT


def test_without_a_checksum_the_length_counts(hub, settings):
    hub.announce = False
    assert download_model(NAME, settings=settings).read_bytes() == CONTENT


def test_a_file_that_is_not_what_was_announced_is_not_kept(hub, settings):
    hub.sha256 = "0" * 64
    with pytest.raises(EmbedderUnavailableError, match=r"is corrupt: its sha256 is .*, the hub announced 000"):
        download_model(NAME, settings=settings)
    assert not part_of(settings).exists()
    assert not part_of(settings).with_suffix("").exists()


# --- refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "message", "hint"),
    [
        pytest.param(401, "refuses access to", "by hand", id="not signed in"),
        pytest.param(403, "refuses access to", "by hand", id="terms not accepted"),
        pytest.param(404, "the hub does not have", "check the name", id="no such file"),
        pytest.param(418, "status 418", "mirror", id="something else"),
    ],
)
def test_a_refusal_is_one_request_and_says_what_to_do(hub, settings, pauses, code, message, hint):
    hub.codes = [code]
    with pytest.raises(EmbedderUnavailableError, match=message) as raised:
        download_model(NAME, settings=settings)
    assert hint in raised.value.hint
    assert len(hub.requests) == 2  # the hub and where it leads
    assert pauses == []


@pytest.mark.parametrize("code", [429, 500, 503])
def test_a_busy_hub_is_asked_again(hub, settings, pauses, code):
    hub.codes, hub.retry_after = [code, code], "7"
    assert download_model(NAME, settings=settings).read_bytes() == CONTENT
    assert pauses == [7, 7]


def test_retries_end(hub, settings, pauses):
    hub.codes = [503] * 10
    with pytest.raises(EmbedderUnavailableError, match="status 503"):
        download_model(NAME, settings=settings)
    assert pauses == [1.0, 2.0]
    hub.codes, hub.retry_after = [503], "3600"
    with pytest.raises(EmbedderUnavailableError, match="status 503"):
        download_model(NAME, settings=settings)


def test_no_hub(tmp_path, pauses):
    nowhere = Settings(local=LocalSettings(model_cache_dir=str(tmp_path), hub_url="http://127.0.0.1:9"))
    with pytest.raises(EmbedderUnavailableError, match=r"the model hub 127.0.0.1:9 cannot be reached") as raised:
        download_model(NAME, settings=nowhere)
    assert "local.hub_url" in raised.value.hint


def test_a_redirect_loop_ends(hub, settings, pauses):
    hub.redirect_to = "/again/{path}"
    with pytest.raises(EmbedderUnavailableError, match="redirects"):
        download_model(NAME, settings=settings)
    assert len(hub.requests) <= 3 * 21


@pytest.mark.parametrize("target", ["file:///etc/passwd", "ftp://example.org/x"])
def test_only_the_web_is_followed(hub, settings, target):
    hub.redirect_to = target
    with pytest.raises(EmbedderUnavailableError, match=r"(file|ftp):, which is not followed"):
        download_model(NAME, settings=settings)


def test_a_full_disk_is_seen_before_it_is_full(hub, settings, monkeypatch):
    monkeypatch.setattr(download.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 5 << 20}))
    with pytest.raises(EmbedderUnavailableError, match=r"needs 9 MB more, .* has 5 MB free") as raised:
        download_model(NAME, settings=settings)
    assert "local.model_cache_dir" in raised.value.hint


def test_two_downloads_do_not_write_one_file(hub, settings, monkeypatch):
    monkeypatch.setattr(download, "LOCK_TIMEOUT_S", 0.05)
    target = part_of(settings).with_suffix("")
    target.parent.mkdir(parents=True)
    with (
        FileLock(f"{target}.lock"),
        pytest.raises(EmbedderUnavailableError, match=r"another process is downloading tiny\.gguf"),
    ):
        download_model(NAME, settings=settings)


# --- without the package, without a network -----------------------------------------------------


def test_without_the_package_it_is_said_how_to_install_it(hub, settings, monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(EmbedderUnavailableError, match="downloading models needs huggingface_hub") as raised:
        download_model(NAME, settings=settings)
    assert raised.value.hint == 'run `pip install "notewell[gguf]"`'
    assert hub.requests == []


def test_a_downloaded_model_needs_neither_package_nor_network(settings, monkeypatch):
    path = download_model(NAME, settings=settings)
    offline = Settings(
        local=LocalSettings(model_cache_dir=settings.local.model_cache_dir, hub_url="http://127.0.0.1:9")
    )
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    assert download_model(NAME, settings=offline) == path


def test_the_offline_mode_of_huggingface_hub(hub, settings, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(EmbedderUnavailableError, match="cannot be reached: HF_HUB_OFFLINE is set"):
        download_model(NAME, settings=settings)
    assert hub.requests == []
