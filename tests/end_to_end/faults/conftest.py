"""The stage that the tests of failures share."""

from tests.end_to_end.faults.stages import stage

__all__ = ["stage"]
