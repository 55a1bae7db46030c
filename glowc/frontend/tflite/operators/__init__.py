"""What each operator of TensorFlow Lite is as nodes: the modules of this folder name their handlers by built-in."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping

from glowc.frontend.tflite.net import COMPLEX, Net
from glowc.frontend.tflite.operators.spectra import RESHAPES
from glowc.frontend.tflite.reader import Operator

Handler = Callable[[Operator, Net], None]


def _found() -> Mapping[str, Handler]:
    handlers: dict[str, Handler] = {}
    for info in sorted(pkgutil.iter_modules(__path__), key=lambda m: m.name):
        handlers |= getattr(importlib.import_module(f"{__name__}.{info.name}"), "HANDLERS", {})
    return handlers


HANDLERS: Mapping[str, Handler] = _found()


def handler_of(operator: Operator, net: Net) -> Handler | None:
    """Return the handler of an operator; a reshape of complex numbers has one of its own."""
    complex_ = any(net.graph.tensors[i].kind == COMPLEX for i in (*operator.inputs, *operator.outputs) if i >= 0)
    return (RESHAPES if complex_ else {}).get(operator.code) or HANDLERS.get(operator.code)
