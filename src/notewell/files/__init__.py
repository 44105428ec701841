"""Writes, walks and guards files on disk."""
