"""`python -m glowc`: the command line."""

from glowc.cli import main

if __name__ == "__main__":
    main()
