"""Estimates the cost of embedding.

The prices are list prices in US dollars of May 2026, without free allowances, taxes and discounts. `cost.prices` in the
settings overrides them by model.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from notewell.embedding.selection import ProbedEmbedder
from notewell.errors import SettingsError
from notewell.types import CostEstimate, Price

if TYPE_CHECKING:
    from notewell.protocols import Embedder
    from notewell.settings import Settings

AS_OF = "2026-05"
_MILLION = 1_000_000

FREE = ("local", "hashing", "ollama")  # on this machine or your own server

# Dollars per million tokens, by ordinary request and by batch job.
LIST_PRICES: Mapping[str, tuple[float, float]] = {
    # openai.com/api/pricing: batch jobs at half the price
    "openai/text-embedding-3-small": (0.02, 0.01),
    "openai/text-embedding-3-large": (0.13, 0.065),
    "openai/text-embedding-ada-002": (0.10, 0.05),
    # ai.google.dev/gemini-api/docs/pricing: batch jobs at half the price
    "gemini/gemini-embedding-001": (0.15, 0.075),
    "gemini/gemini-embedding-2-preview": (0.20, 0.10),
    # docs.voyageai.com/docs/pricing: batch jobs at two thirds of the price; the first 200 million tokens are free
    "voyage/voyage-4-large": (0.12, 0.08),
    "voyage/voyage-4": (0.06, 0.04),
    "voyage/voyage-4-lite": (0.02, 0.0134),
    "voyage/voyage-3-large": (0.18, 0.12),
    "voyage/voyage-3.5": (0.06, 0.04),
    "voyage/voyage-3.5-lite": (0.02, 0.0134),
    # mistral.ai/pricing: batch jobs at half the price
    "mistral/mistral-embed": (0.10, 0.05),
    "mistral/codestral-embed": (0.15, 0.075),
}


def price_of(embedder: Embedder, settings: Settings) -> Price:
    """Return the price of an embedder, from the settings or the list; it is free on this machine."""
    provider, model = _names(embedder)
    name = f"{provider}/{model}"
    own = _own_price(name, settings.cost.prices)
    if own is not None:
        return Price(own, own, "cost.prices in the settings")
    from notewell.embedding.http_calls import Service  # no search needs it

    if provider in FREE or (provider == settings.provider and Service("", settings.remote.base_url).is_loopback):
        return Price(0.0, 0.0, "runs on this machine or one of your own")
    if name in LIST_PRICES:
        at_once, by_batch = LIST_PRICES[name]
        return Price(at_once, by_batch, f"list price of {AS_OF}")
    return Price(None, None, f"no price is known for {name}; set one in cost.prices")


def estimate(embedder: Embedder, settings: Settings, tokens: int) -> CostEstimate:
    """Return the cost of embedding this many tokens."""
    price = price_of(embedder, settings)
    provider, model = _names(embedder)
    return CostEstimate(
        provider=provider,
        model=model,
        tokens=tokens,
        usd=None if price.usd_per_million is None else price.usd_per_million * tokens / _MILLION,
        batch_usd=None if price.batch_usd_per_million is None else price.batch_usd_per_million * tokens / _MILLION,
        basis=price.basis,
    )


def _names(embedder: Embedder) -> tuple[str, str]:
    """Return provider and model, without a call for the identity of an unknown model."""
    if isinstance(embedder, ProbedEmbedder):
        return embedder.provider, embedder.model
    return embedder.identity.provider, embedder.identity.model


def _own_price(name: str, prices: Mapping[str, str]) -> float | None:
    written = prices.get(name)
    if written is None:
        return None
    try:
        price = float(written)
    except ValueError:
        price = -1.0
    if not 0 <= price < float("inf"):
        raise SettingsError(
            f"cost.prices: the price of {name} must be in dollars per million tokens, got {written!r}",
            hint=f'for example "{name}" = "0.02"',
        )
    return price
