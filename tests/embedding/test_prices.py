"""What embedding costs: list prices, prices of one's own, nothing on this machine, and unknown."""

from __future__ import annotations

import pytest

from notewell.embedding.hashing import HashingEmbedder
from notewell.embedding.prices import LIST_PRICES, estimate, price_of
from notewell.embedding.selection import open_provider
from notewell.errors import SettingsError
from notewell.settings import CostSettings, RemoteSettings, Settings

PROVIDERS = ("openai", "gemini", "voyage", "mistral", "ollama")


def settings(provider: str, model: str = "", *, base_url: str = "", **prices: str) -> Settings:
    return Settings(
        provider=provider,
        model=model,
        remote=RemoteSettings(api_key="k", base_url=base_url),
        cost=CostSettings(prices={name.replace("__", "/"): price for name, price in prices.items()}),
    )


def price(chosen: Settings):
    embedder = open_provider(chosen.provider, chosen)
    try:
        return price_of(embedder, chosen)
    finally:
        embedder.close()


@pytest.mark.parametrize("provider", PROVIDERS)
def test_every_default_model_has_a_price(provider):
    found = price(settings(provider))
    assert found.usd_per_million is not None
    assert (found.usd_per_million > 0) is (provider != "ollama")


def test_the_list_names_providers_there_are_and_batch_jobs_are_cheaper():
    for name, (at_once, by_batch) in LIST_PRICES.items():
        assert name.split("/")[0] in PROVIDERS
        assert 0 < by_batch < at_once < 1


def test_an_unknown_model_has_no_price_and_is_not_called_for_it():
    found = price(settings("openai", "brand-new", base_url="http://192.0.2.1/v1"))
    assert found.usd_per_million is None
    assert "openai/brand-new" in found.basis
    assert "cost.prices" in found.basis


@pytest.mark.parametrize("address", ["http://localhost:1234/v1", "http://127.0.0.1:8080/v1", "http://[::1]/v1"])
def test_a_server_on_this_machine_costs_nothing(address):
    assert price(settings("openai", "text-embedding-3-small", base_url=address)).usd_per_million == 0


def test_a_gateway_is_not_free():
    assert price(settings("openai", "text-embedding-3-small", base_url="https://gateway.example/v1")).usd_per_million


def test_prices_of_your_own_come_first():
    own = settings("openai", base_url="http://localhost:1/v1", **{"openai__text-embedding-3-small": "0.5"})
    assert price(own).usd_per_million == 0.5
    assert price(own).basis == "cost.prices in the settings"


@pytest.mark.parametrize("written", ["", "free", "-1", "nan", "inf"])
def test_a_price_that_is_none(written):
    with pytest.raises(SettingsError, match=r"the price of openai/text-embedding-3-small must be in dollars") as raised:
        price(settings("openai", **{"openai__text-embedding-3-small": written}))
    assert '"openai/text-embedding-3-small" = "0.02"' in raised.value.hint


def test_an_estimate():
    chosen = settings("openai")
    embedder = open_provider("openai", chosen)
    found = estimate(embedder, chosen, 2_500_000)
    embedder.close()
    assert (found.provider, found.model, found.tokens) == ("openai", "text-embedding-3-small", 2_500_000)
    assert (found.usd, found.batch_usd) == (pytest.approx(0.05), pytest.approx(0.025))
    assert "2026" in found.basis


def test_what_runs_here_is_free():
    assert estimate(HashingEmbedder(), Settings(), 10**9).usd == 0
