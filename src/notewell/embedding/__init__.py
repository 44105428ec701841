"""Turns text into unit vectors, on this machine or through a provider."""
