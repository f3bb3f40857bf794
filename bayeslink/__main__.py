"""`python -m bayeslink` is the command line."""

from bayeslink.cli import main

main()
