"""Turns text into terms, and takes secrets and recalled passages out of it."""
