"""Calls to a provider over HTTP: requests come in, checked answers or one kind of failure go out."""
