"""Where documents come from: the notes of a workspace, and transcripts of past conversations."""
