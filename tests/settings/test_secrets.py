"""Keys are used, never shown: not in messages, tracebacks, representations or the public view."""

from __future__ import annotations

import json
import traceback
from pathlib import Path

import pytest

from notewell.errors import SettingsError
from notewell.settings import RemoteSettings, Settings, StoreSettings, load_settings, to_public_dict

SECRET = "sk-proj-Ab12Cd34Ef56Gh78"
ANY_KEY = "0f9e8d7c6b5a49382716f5e4d3c2b1a0"


@pytest.mark.parametrize(
    "layers",
    [
        pytest.param({"user": f'[remote]\napi_key = ["{SECRET}"]'}, id="wrong type in a file"),
        pytest.param({"user": f'[remote]\nheaders = "Bearer {SECRET}"'}, id="headers as text"),
        pytest.param({"user": f'[remote]\nheaders = {{ Authorization = ["{SECRET}"] }}'}, id="a header as list"),
        pytest.param({"user": f'remote = "{SECRET}"'}, id="a key for the whole group"),
        pytest.param({"user": f'provider = "{SECRET}"'}, id="a key for the provider"),
        pytest.param({"user": f'provider = "X {ANY_KEY}"'}, id="a key without a known beginning"),
        pytest.param({"user": f'[remote]\napikey = "{SECRET}"'}, id="under a misspelt name"),
        pytest.param({"user": f'[remote]\napi_key = "{SECRET}'}, id="in a file that is not TOML"),
        pytest.param({"user": f'[remote]\nbase_url = "ftp://me:{ANY_KEY[:9]}@host/?key={SECRET}"'}, id="in an address"),
        pytest.param({"shared": f'[remote]\napi_key = "{SECRET}"'}, id="in a workspace file"),
        pytest.param({"shared": f'provider = "{SECRET.lower()}"'}, id="as a provider in a workspace file"),
        pytest.param({"environ": {"NOTEWELL_REMOTE__HEADERS": f"Authorization: {SECRET}"}}, id="in a variable"),
        pytest.param({"environ": {"NOTEWELL_API_KEY": SECRET}}, id="in an unknown variable"),
        pytest.param({"environ": {"NOTEWELL_QUERY__MAX_RESULTS": SECRET}}, id="in the wrong variable"),
        pytest.param({"flags": {"remote.api_key": [SECRET]}}, id="in a flag"),
    ],
)
def test_no_message_holds_a_secret(load, layers):
    with pytest.raises(SettingsError) as caught:
        load(**layers)
    told = "".join(traceback.format_exception(caught.value)) + caught.value.message + caught.value.hint
    for secret in (SECRET, SECRET.lower(), ANY_KEY, ANY_KEY[:9]):
        assert secret not in told


SETTINGS = Settings(
    remote=RemoteSettings(
        base_url=f"https://me:{ANY_KEY[:9]}@host/v1?token={SECRET}",
        api_key=SECRET,
        headers={"Authorization": f"Bearer {SECRET}", "X-Api-Key": "short", "X-Team": "memory"},
    ),
    store=StoreSettings(path=f"/data/{ANY_KEY}"),
    extra_paths=(Path("docs"),),
)


def test_the_public_view_masks_keys_and_keeps_the_rest():
    public = to_public_dict(SETTINGS)
    assert public["remote"]["api_key"] == "***"
    assert public["remote"]["headers"] == {"Authorization": "***", "X-Api-Key": "***", "X-Team": "memory"}
    assert public["remote"]["base_url"] == "https://***@host/v1?token=***"
    assert public["store"]["path"] == f"/data/{ANY_KEY}"
    assert public["extra_paths"] == ["docs"]
    assert public["query"]["hybrid"]["vector_weight"] == 0.7
    assert json.loads(json.dumps(public)) == public


def test_an_unset_key_is_shown_as_unset():
    assert to_public_dict(Settings())["remote"]["api_key"] == ""


def test_the_representation_holds_no_key():
    assert SECRET not in repr(SETTINGS).replace(SETTINGS.remote.base_url, "")
    assert "Authorization" not in repr(SETTINGS)


def test_keys_reach_the_settings(load):
    environ = {"NOTEWELL_REMOTE__API_KEY": SECRET, "NOTEWELL_REMOTE__HEADERS": f'{{"Authorization": "{SECRET}"}}'}
    resolved = load(environ=environ)
    assert resolved.settings.remote.api_key == SECRET
    assert resolved.settings.remote.headers == {"Authorization": SECRET}
    assert SECRET not in repr(resolved)


def test_long_values_are_cut_in_messages(workspace):
    with pytest.raises(SettingsError) as caught:
        load_settings(workspace, environ={"NOTEWELL_CONFIG": "", "NOTEWELL_PROVIDER": "no " * 200})
    assert len(caught.value.message) < 300
