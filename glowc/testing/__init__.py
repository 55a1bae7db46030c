"""Regression tests of models on emulated boards, in pytest: the fixture `glowc_board` (docs/REGRESSION.md)."""
