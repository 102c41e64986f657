"""`python -m driftvote` is the `driftvote` command."""

from driftvote.cli import main

main()
