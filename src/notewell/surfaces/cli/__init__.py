"""The `notewell` command."""
