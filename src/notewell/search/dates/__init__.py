"""Reads dates in questions, headings and notes, in eight languages and in digits."""
