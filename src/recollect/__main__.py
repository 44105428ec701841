"""`python -m recollect` is the `recollect` command."""

from recollect.surfaces.cli.main import main

main()
