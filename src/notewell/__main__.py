"""`python -m notewell` is the `notewell` command."""

from notewell.surfaces.cli.main import main

main()
