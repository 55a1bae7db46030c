"""`python -m glowc`: the command line."""

from glowc.app.cli import main

if __name__ == "__main__":
    main()
