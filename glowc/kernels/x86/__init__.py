"""Kernels for x86-64, whose C runs everywhere (runtime_c/x86/glow_x86.h)."""
