"""How sums in registers become codes: endings of products on Thumb-2 with DSP, built by calls.

Sums come as those of even channels, dual ones 256 times the sum plus the odd channel's, and those of odd ones.
"""
