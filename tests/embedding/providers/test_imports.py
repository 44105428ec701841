"""What choosing a remote embedder costs: none of the packages that only a call needs."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.fakes.providers import PROVIDERS

SCRIPT = """
import sys
from notewell.embedding.selection import open_provider
from notewell.settings import RemoteSettings, Settings
settings = Settings(provider="{name}", remote=RemoteSettings(api_key="any"))
embedder = open_provider("{name}", settings)
embedder.identity, embedder.knows("text"), embedder.close()
print(sorted(set(sys.modules) & {{"httpx", "stamina", "tenacity", "asyncio", "numpy", "anyio"}}))
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(PROVIDERS))
def test_choosing_an_embedder_imports_nothing_that_only_a_call_needs(name):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(name=name)], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"
