"""Operators are registered before a test of one module calls it by itself."""

from glowc.ops.registry import all_ops

all_ops()
