"""Forgetting: what to forget in, files, index, caches and logs without a trace of it out."""

from notewell.memory.forgetting.run import forget_in

__all__ = ["forget_in"]
