"""A model on a board, over a serial line: docs/WIRE.md."""
