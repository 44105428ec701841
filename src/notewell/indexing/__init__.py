"""The only write path: files in, an up-to-date store out."""
