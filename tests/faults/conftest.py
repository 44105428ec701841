"""The stage that the tests of failures share."""

from faults.stages import stage

__all__ = ["stage"]
