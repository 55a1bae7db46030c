"""Cycles of a program on a chip: recorded under QEMU, judged by the rules of its core and its memories."""
