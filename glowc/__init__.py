"""glowc: quantised ONNX models to portable C for Cortex-M and Cortex-A."""

__version__ = "0.1.0"
