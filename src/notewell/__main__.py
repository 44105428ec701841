"""`python -m notewell` is the `notewell` command."""

from notewell.cli.main import main

main()
