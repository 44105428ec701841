"""The shapes that transcripts come in, one module each: a record in, a message or the reason to leave it out out."""
