"""Operators of TensorFlow Lite Micro's signal library, whose options are flexbuffers; what they remember are states.

Frames, delays and stacks are slices of a state that the input was appended to. While a Framer or Stacker has too little
its second output is false, and the first one holds what the runtime leaves unsaid.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from glowc.frontend.problems import NodeError
from glowc.frontend.tflite.net import Net, Variable
from glowc.frontend.tflite.operators.flexible import whole_option as _option
from glowc.frontend.tflite.reader import Operator
from glowc.graph.types import DType, TensorType, type_of

_CYCLES_OF_SLOTS = {25: 2}  # of a circular buffer that does not say


def _single(net: Net, operator: Operator, op: str, inputs: Sequence[str], **attrs: int) -> str:
    return net.emit(op, inputs, attrs, out=operator.outputs[0])


def _x(operator: Operator, net: Net) -> str:
    return net.value(operator.inputs[0])


def window(operator: Operator, net: Net) -> None:
    """SignalWindow."""
    inputs = [net.value(i) for i in operator.inputs[:2]]
    _single(net, operator, "SignalWindow", inputs, shift=_option(operator, "shift", 0, 31))


def transform(operator: Operator, net: Net) -> None:
    """SignalRfft, SignalIrfft."""
    length = _option(operator, "fft_length", 2)
    _single(net, operator, operator.code, (_x(operator, net),), fft_length=length)


def auto_scale(operator: Operator, net: Net) -> None:
    """SignalFftAutoScale: the samples moved up, and by how many bits."""
    bits = net.emit("SignalScaleBits", (_x(operator, net),), out=operator.outputs[1])
    _single(net, operator, "SignalScale", (_x(operator, net), bits))


def energy(operator: Operator, net: Net) -> None:
    """SignalEnergy."""
    start, end = _option(operator, "start_index"), _option(operator, "end_index")
    _single(net, operator, "SignalEnergy", (_x(operator, net),), start=start, end=end)


def filter_bank(operator: Operator, net: Net) -> None:
    """SignalFilterBank: its tables are constants, which must stay inside of each other."""
    channels = _option(operator, "num_channels", 1)
    tables = [net.need(i, "a table of the filter bank").reshape(-1).astype(np.int64) for i in operator.inputs[1:6]]
    weights, _, starts, weight_starts, widths = tables
    many = min(t.size for t in tables[2:])
    if many < channels + 1 or min(t.min(initial=0) for t in tables[2:]) < 0:
        raise NodeError(f"its tables are of {many} stretches; {channels} channels need {channels + 1}")
    ends = (starts + widths)[: channels + 1].max(), (weight_starts + widths)[: channels + 1].max()
    energies = net.type(operator.inputs[0]).elements
    if ends[0] > energies or ends[1] > weights.size:
        raise NodeError(f"its tables lead to energy {ends[0]} of {energies} or weight {ends[1]} of {weights.size}")
    _single(net, operator, "SignalFilterBank", [net.value(i) for i in operator.inputs[:6]], channels=channels)


def square_root(operator: Operator, net: Net) -> None:
    """SignalFilterBankSquareRoot."""
    _single(net, operator, "SignalSquareRoot", [net.value(i) for i in operator.inputs[:2]])


def spectral_subtraction(operator: Operator, net: Net) -> None:
    """SignalFilterBankSpectralSubtraction: the signal without its noise, and the estimate, which is a state."""
    bits = {
        "smoothing_bits": _option(operator, "smoothing_bits", 0, 31),
        "bits": _option(operator, "spectral_subtraction_bits", 0, 31),
    }
    factors = {
        key: _option(operator, name)
        for key, name in (
            ("smoothing", "smoothing"), ("one_minus", "one_minus_smoothing"),
            ("odd_smoothing", "alternate_smoothing"), ("odd_one_minus", "alternate_one_minus_smoothing"),
            ("clamping", "clamping"),
        )
    }  # fmt: skip
    type_ = net.type(operator.inputs[0])
    state = _state(net, operator, "noise", np.zeros(type_.shape, type_.dtype.numpy))
    state.now = net.emit("SignalNoise", (_x(operator, net), state.value), {**bits, **factors}, out=operator.outputs[1])
    least = _option(operator, "min_signal_remaining")
    _single(net, operator, "SignalSubtractNoise", (_x(operator, net), state.now), **bits, min_remaining=least)


def pcan(operator: Operator, net: Net) -> None:
    """SignalPCAN: signal, noise, table of gains."""
    inputs = [net.value(i) for i in operator.inputs[:3]]
    _single(net, operator, "SignalPcan", inputs, shift=_option(operator, "snr_shift", 0, 63))


def logarithm(operator: Operator, net: Net) -> None:
    """SignalFilterBankLog."""
    bits, scale = _option(operator, "input_correction_bits", 0, 31), _option(operator, "output_scale", -(1 << 31))
    _single(net, operator, "SignalLog", (_x(operator, net),), correction_bits=bits, scale=scale)


def _state(net: Net, operator: Operator, what: str, initial: np.ndarray, type_: TensorType | None = None) -> Variable:
    """Return something that an operator remembers, with the value that is there before the first call."""
    value = net.fresh(f"{net.tensor(operator.outputs[0]).name}.{what}")
    net.types[value] = type_ or type_of(initial)
    variable = Variable(initial, value, value)
    net.variables[f"{operator.label} {what}"] = variable
    return variable


def _appended(net: Net, operator: Operator, what: str, remembered: int, axis: int) -> str:
    """Return the input behind the last `remembered` elements along an axis; the state becomes the end of both."""
    type_ = net.type(operator.inputs[0])
    if not remembered:
        return _x(operator, net)
    shape = tuple(remembered if i == axis else d for i, d in enumerate(type_.shape))
    kept = TensorType(shape, type_.dtype, type_.quant)
    state = _state(net, operator, what, np.zeros(shape, type_.dtype.numpy), kept)
    whole = kept.with_shape([d + (remembered if i == axis else 0) for i, d in enumerate(type_.shape)])
    joined = net.emit("Concat", (state.value, _x(operator, net)), {"axis": axis}, type_=whole)
    state.now = _cut(net, joined, type_.shape[axis], whole.shape[axis], axis)
    return joined


def _cut(net: Net, value: str, start: int, end: int, axis: int, out: int | None = None) -> str:
    """Return the elements [start, end) along an axis."""
    attrs = {"starts": (start,), "ends": (end,), "axes": (axis,), "steps": (1,)}
    if out is not None:
        return net.emit("Slice", (value,), attrs, out=out)
    type_ = net.types[value]
    shape = [end - start if i == axis else d for i, d in enumerate(type_.shape)]
    return net.emit("Slice", (value,), attrs, type_=type_.with_shape(shape))


def delay(operator: Operator, net: Net) -> None:
    """SignalDelay: the input of so many samples before."""
    type_ = net.type(operator.inputs[0])
    axis = type_.rank - 1
    joined = _appended(net, operator, "delayed", _option(operator, "delay_length"), axis)
    _cut(net, joined, 0, type_.shape[axis], axis, operator.outputs[0])


def circular_buffer(operator: Operator, net: Net) -> None:
    """CIRCULAR_BUFFER: the last inputs. What follows it runs every time; with cycles it would not, and is refused."""
    out = net.type(operator.outputs[0])
    slots = out.shape[1] if out.rank == 4 else 0
    cycles = _option(operator, "cycles_max") if operator.custom else _CYCLES_OF_SLOTS.get(slots, 1)
    if net.type(operator.inputs[0]).shape[1:2] != (1,) or slots < 1:
        raise NodeError(f"the buffer is {out}; one row of it is added at a time")
    read = {i for op in net.graph.operators for i in op.inputs}
    if cycles > 1 and operator.outputs[0] in read:
        raise NodeError(f"cycles_max is {cycles}: the operators behind it would run every {cycles} calls only")
    joined = _appended(net, operator, "rows", slots, 1)
    _cut(net, joined, 1, slots + 1, 1, operator.outputs[0])


def framer(operator: Operator, net: Net) -> None:
    """SignalFramer: frames that begin `step` samples apart, of all samples so far; whether they are whole."""
    x, out = net.type(operator.inputs[0]), net.type(operator.outputs[0])
    size, step = _option(operator, "frame_size", 1), _option(operator, "frame_step", 1)
    prefill = _option(operator, "prefill", 0, 1)
    axis = x.rank - 1
    count = x.shape[axis] // step
    if x.shape[axis] % step or out.shape != (*x.shape[:-1], count, size) or (prefill and size < step):
        raise NodeError(f"frames of {size} every {step} samples of {x} are not {out}")
    late = -(-max(size - step, 0) // step)  # frames that lack samples
    remembered = size - step if prefill else late * step
    joined = _appended(net, operator, "samples", remembered, axis)
    parts = [_cut(net, joined, f * step, f * step + size, axis) for f in range(count)]
    frames = [net.reshaped(part, (*x.shape[:-1], 1, size)) for part in parts]
    net.emit("Concat", frames, {"axis": axis}, out=operator.outputs[0])
    _valid(net, operator, 0 if prefill else -(-late // count), 1)


def stacker(operator: Operator, net: Net) -> None:
    """SignalStacker: an input between those before and after it, every `step` calls; whether this is such a call."""
    left, right = (_option(operator, f"stacker_{side}_context") for side in ("left", "right"))
    step, width = _option(operator, "stacker_step", 1), _option(operator, "num_channels", 1)
    x, rows = net.type(operator.inputs[0]), left + right
    if x.elements != width or step > rows + 1:
        raise NodeError(f"{width} channels every {step} of {rows + 1} calls, inputs {x}")
    row = net.reshaped(_x(operator, net), (1, width))
    joined = row
    if rows:
        state = _state(net, operator, "rows", np.zeros((rows, width), x.dtype.numpy))
        before = state.value
        if left:
            first = _state(net, operator, "first", np.ones(1, bool))
            filled = net.emit("Expand", (row,), {"shape": (rows, width)})
            before = net.emit("Where", (first.value, filled, before))
            first.now = net.add_const("later", np.zeros(1, bool))
        joined = net.emit("Concat", (before, row), {"axis": 0})
        state.now = _cut(net, joined, 1, rows + 1, 0)
    attrs = {"shape": net.type(operator.outputs[0]).shape}
    net.emit("Reshape", (joined,), attrs, out=operator.outputs[0])
    _valid(net, operator, right, step)


def _valid(net: Net, operator: Operator, late: int, every: int) -> None:
    """Let the second output be true at call `late` (counted from 0) and every so many calls from there on."""
    if len(operator.outputs) < 2:
        return
    if every == 1 and not late:
        net.define(
            operator.outputs[1], net.add_const("valid", np.array(True).reshape(net.type(operator.outputs[1]).shape))
        )
        return
    state = _state(net, operator, "calls_to_wait", np.array(late, np.int32))
    zero, one = (net.add_const("count", np.array(n, np.int32)) for n in (0, 1))
    due = net.emit("Equal", (state.value, zero))
    again = net.add_const("count", np.array(every - 1, np.int32))
    state.now = net.emit("Where", (due, again, net.emit("Sub", (state.value, one))))
    net.emit("Reshape", (due,), {"shape": net.type(operator.outputs[1]).shape}, out=operator.outputs[1])


def overlap_add(operator: Operator, net: Net) -> None:
    """SignalOverlapAdd: frames that begin `step` samples apart, added up; the sums that lack frames are kept."""
    x, step = net.type(operator.inputs[0]), _option(operator, "frame_step", 1)
    if x.rank < 2 or step > x.shape[-1] or x.dtype not in (DType.S16, DType.F32):
        raise NodeError(f"frames {x} every {step} samples")
    rest, done = x.shape[-1] - step, x.shape[-2] * step
    tail = np.zeros((*x.shape[:-2], rest), x.dtype.numpy)
    axis = x.rank - 2
    if not rest:
        net.emit(
            "Reshape", (_x(operator, net),), {"shape": net.type(operator.outputs[0]).shape}, out=operator.outputs[0]
        )
        return
    state = _state(net, operator, "tail", tail)
    line = net.emit("OverlapAdd", (_x(operator, net), state.value), {"step": step})
    _cut(net, line, 0, done, axis, operator.outputs[0])
    state.now = _cut(net, line, done, done + rest, axis)


HANDLERS: dict[str, Callable[[Operator, Net], None]] = {
    "SignalWindow": window, "SignalRfft": transform, "SignalIrfft": transform, "SignalFftAutoScale": auto_scale,
    "SignalEnergy": energy, "SignalFilterBank": filter_bank, "SignalFilterBankSquareRoot": square_root,
    "SignalFilterBankSpectralSubtraction": spectral_subtraction, "SignalPCAN": pcan, "SignalFilterBankLog": logarithm,
    "SignalDelay": delay, "CIRCULAR_BUFFER": circular_buffer, "SignalFramer": framer, "SignalStacker": stacker,
    "SignalOverlapAdd": overlap_add,
}  # fmt: skip
