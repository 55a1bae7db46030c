"""What a float network computes on sample data: range and histogram of every value, range of every channel.

The file is YAML whose values are JSON, so that any YAML reader understands it and none is needed here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from glowc.errors import ProfileError
from glowc.paths import full_version
from glowc.quant.engine import Engine, run_net
from glowc.quant.net import Net, graph_hash

BINS = 2048
_CHANNELS = {"Conv": 1, "ConvTranspose": 1, "Gemm": 1}  # axis of the result that counts channels
_FOLLOW = frozenset({"Relu", "Clip"})
Array = np.ndarray


@dataclass(frozen=True, slots=True)
class Stats:
    """Values of one tensor: range, `BINS` counts over that range, ranges of its channels where a layer has such."""

    low: float
    high: float
    histogram: Array
    channels: Array | None = None  # [2][channels]: lowest, highest

    @property
    def edges(self) -> Array:
        """The ends of the bins."""
        return np.linspace(self.low, self.high, len(self.histogram) + 1)

    @property
    def centres(self) -> Array:
        """The middle of each bin."""
        edges = self.edges
        return np.asarray((edges[1:] + edges[:-1]) / 2)

    def with_values(self, values: Array, channel_axis: int | None) -> Stats:
        """Return the statistics of these and further values; a range that grows moves the counts to new bins."""
        low, high = min(self.low, float(values.min())), max(self.high, float(values.max()))
        counts = moved(self, low, high) + _counts(values, low, high)
        return Stats(low, high, counts, _channels(values, channel_axis, self.channels))


def stats_of(values: Array, channel_axis: int | None = None) -> Stats:
    """Return the statistics of the first values of a tensor."""
    low, high = float(values.min()), float(values.max())
    return Stats(low, high, _counts(values, low, high), _channels(values, channel_axis, None))


def moved(stats: Stats, low: float, high: float) -> Array:
    """Return the counts in bins over another, wider range: each goes where the middle of its bin lies."""
    if (low, high) == (stats.low, stats.high):
        return stats.histogram
    return histogram(stats.centres, (low, high), weights=stats.histogram)


def merged(several: Iterable[Stats]) -> Stats:
    """Return the statistics of tensors that share a quantisation."""
    known = list(several)
    low, high = min(s.low for s in known), max(s.high for s in known)
    return Stats(low, high, np.sum([moved(s, low, high) for s in known], axis=0))


def _counts(values: Array, low: float, high: float) -> Array:
    if low == high:
        counts = np.zeros(BINS)
        counts[BINS // 2] = values.size
        return counts
    return histogram(values, (low, high)).astype(np.float64)


def histogram(values: Array, span: tuple[float, float], bins: int = BINS, weights: Array | None = None) -> Array:
    """Return numpy.histogram's counts, also over a range of fewer floats than bins, of which it makes none."""
    try:
        return np.histogram(values, bins, span, weights=weights)[0]
    except ValueError:  # the steps of the elements' type are larger than a bin
        place = (values.astype(np.float64).reshape(-1) - span[0]) / (span[1] - span[0]) * bins
        whole = np.clip(place, 0, bins - 1).astype(np.int64)
        return np.bincount(whole, None if weights is None else weights.reshape(-1), bins)


def _channels(values: Array, axis: int | None, before: Array | None) -> Array | None:
    if axis is None:
        return None
    lines = np.moveaxis(values, axis, 0).reshape(values.shape[axis], -1)
    found = np.stack([lines.min(axis=1), lines.max(axis=1)])
    return found if before is None else np.stack([np.minimum(found[0], before[0]), np.maximum(found[1], before[1])])


@dataclass(frozen=True, slots=True)
class Profile:
    """Statistics of every float value of the network with this hash."""

    graph_hash: str
    samples: int
    tensors: Mapping[str, Stats]
    version: str = field(default_factory=full_version)


@dataclass(slots=True)
class Profiler:
    """Gathers a profile sample by sample; what was gathered is a profile at any time."""

    net: Net
    engine: Engine
    samples: int = 0
    tensors: dict[str, Stats] = field(default_factory=dict)

    def add(self, sample: Mapping[str, Array]) -> dict[str, Array]:
        """Run one sample and return its values.

        Nothing of it is kept when a value is not a number. Raises InputError naming that value.
        """
        axes = channel_axes(self.net)
        values = run_net(self.engine, self.net, {name: array[None] for name, array in sample.items()})
        floats = {n: a[0] for n, a in values.items() if a.dtype == np.float32 and a.size}
        for name, array in floats.items():
            self._check_finite(name, array)
        for name, array in floats.items():
            known, axis = self.tensors.get(name), axes.get(name)
            self.tensors[name] = stats_of(array, axis) if known is None else known.with_values(array, axis)
        self.samples += 1
        return {name: array[0] for name, array in values.items()}

    def _check_finite(self, name: str, array: Array) -> None:
        if np.isfinite(array).all():
            return
        what = "not a number" if np.isnan(array).any() else "infinite"
        given = name in {port.name for port in self.net.inputs}
        raise ProfileError(
            f"sample {self.samples}: {'input' if given else 'value'} {name!r} is {what} "
            f"in {np.count_nonzero(~np.isfinite(array)):,} of {array.size:,} elements",
            hint="look at this sample of the data"
            if given
            else "the float model itself computes this; see that sample",
        )

    def profile(self) -> Profile:
        """Return the profile of all samples so far. Raises InputError when there was none."""
        if not self.samples:
            raise ProfileError("no sample was profiled", hint="give data with at least one sample")
        return Profile(graph_hash(self.net), self.samples, dict(self.tensors))


def channel_axes(net: Net) -> dict[str, int]:
    """Return the axis of channels of what layers with weights, and activations after them, compute."""
    axes = {node.output[0]: _CHANNELS[node.op_type] for node in net.nodes if node.op_type in _CHANNELS}
    for node in net.nodes:
        if node.op_type in _FOLLOW and node.input[0] in axes:
            axes[node.output[0]] = axes[node.input[0]]
    return axes


def profile_net(
    net: Net, engine: Engine, samples: Iterable[Mapping[str, Array]], progress: Callable[[int], None] = lambda _: None
) -> Profile:
    """Return the profile of a network on samples; `progress` hears the number of each."""
    profiler = Profiler(net, engine)
    for sample in samples:
        profiler.add(sample)
        progress(profiler.samples)
    return profiler.profile()


def profile_text(profile: Profile) -> str:
    """Return the file of a profile."""
    lines = [
        f"glowc_version: {json.dumps(profile.version)}", f"graph_hash: {json.dumps(profile.graph_hash)}",
        f"samples: {profile.samples}", "tensors:",
    ]  # fmt: skip
    for name in sorted(profile.tensors):
        lines.append(f"  {json.dumps(name)}: {json.dumps(_entry(profile.tensors[name]))}")
    return "\n".join(lines) + "\n"


def _entry(stats: Stats) -> dict[str, float | list[float]]:
    entry: dict[str, float | list[float]] = {"min": stats.low, "max": stats.high}
    if stats.channels is not None:
        entry["channel_min"], entry["channel_max"] = (np.asarray(c, np.float64).tolist() for c in stats.channels)
    return {**entry, "histogram": [int(c) for c in stats.histogram]}


def read_profile(path: Path) -> Profile:
    """Read a profile. Raises InputError that says what is wrong with the file."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise ProfileError(
            f"cannot read profile {path}: {reason}", hint="glowc profile MODEL --data ... -o p.yaml"
        ) from None
    try:
        return _parsed(text)
    except (ValueError, KeyError, TypeError) as error:
        hint = "write it again with glowc profile"
        raise ProfileError(f"{path} is no profile", details=[f"{type(error).__name__}: {error}"], hint=hint) from error


def _parsed(text: str) -> Profile:
    head: dict[str, str] = {}
    tensors: dict[str, Stats] = {}
    for line in text.splitlines():
        if line.startswith("  "):
            name, end = json.JSONDecoder().raw_decode(line.strip())
            tensors[name] = _stats(json.loads(line.strip()[end:].lstrip(": ")))
        elif line.strip() and not line.startswith("#"):
            key, _, value = line.partition(":")
            head[key] = value.strip()
    return Profile(json.loads(head["graph_hash"]), int(head["samples"]), tensors, json.loads(head["glowc_version"]))


def _stats(entry: Mapping[str, list[float]]) -> Stats:
    channels = np.array([entry["channel_min"], entry["channel_max"]]) if "channel_min" in entry else None
    histogram = np.array(entry["histogram"], np.float64)
    low, high = float(entry["min"]), float(entry["max"])  # type: ignore[arg-type]
    if not (np.isfinite(low) and np.isfinite(high) and low <= high and len(histogram)):
        raise ValueError(f"a range from {low} to {high} in {len(histogram)} bins")
    return Stats(low, high, histogram, channels)


def check_profile(profile: Profile, net: Net, path: Path) -> None:
    """Raise InputError, with what differs, when a profile is not of this network."""
    if profile.graph_hash == graph_hash(net):
        return
    details = [f"the profile is of {profile.graph_hash}, the model is {graph_hash(net)}"]
    names = {*(p.name for p in net.inputs), *(n for node in net.nodes for n in node.output)}
    strange = sorted(set(profile.tensors) - names)
    if strange:
        details.append(f"the model has no value {', '.join(map(repr, strange[:5]))}")
    if profile.version != full_version():
        details.append(f"the profile was written by glowc {profile.version}, this is {full_version()}")
    open_sizes = [port.name for port in net.inputs if port.free]
    if open_sizes:
        details.append(f"the model leaves sizes of {', '.join(open_sizes)} open: --input-shape as with glowc profile")
    raise ProfileError(
        f"{path} is the profile of another graph",
        details=details,
        hint="profile this model again; of a model trained again, --like OLD_INT8.onnx keeps the ranges",
    )
