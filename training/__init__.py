"""Makes the packaged model `notewell-memory`, one command a step."""
