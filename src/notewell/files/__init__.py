"""Writes files safely, and names the steps that can fail."""
