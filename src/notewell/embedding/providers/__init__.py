"""Embedders behind an HTTP API: texts come in, requests go out, checked unit vectors come back."""
