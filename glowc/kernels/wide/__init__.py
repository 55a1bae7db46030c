"""Kernels for x86-64, whose C runs everywhere (runtime_c/wide/glow_wide.h)."""
