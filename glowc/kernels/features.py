"""What the instructions of a call grow with, and what a call takes, roughly, where nothing was measured."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, fields

from glowc.graph.scope import once
from glowc.kernels.tile_features import TILE_FEATURES, TILE_WORK, inside, tile_features
from glowc.program.ir import Access, Instr

FEATURES = (
    "call", "outputs", "inputs", "macs", "pixels", "rows", "blocks", "products", "vectors", "strips", "taps",
    "visits", "kernel_rows", "steps", "padding", "edges", "tiles", "tile_products", "tile_inputs", "turned_weights",
    "quads", "quad_products", "weights", "macs_8k", "macs_16k", "macs_32k", "patch", "block_taps", "edge_blocks",
    "edge_patch", "strided_blocks", "tail", "tail_taps", "inside", "middle", "border",
    "spill_8k", "spill_16k", "spill_32k", "pairs", "pair_products", "spans_again_8k", "spans_again_16k",
    "spans_again_32k", "twos_again_8k", "twos_again_16k", "twos_again_32k", "turns_again_8k", "turns_again_16k",
    "turns_again_32k", "window_insns", "window_cycles", "plane_insns", "plane_calls", "passes", "reread", "real_sums",
    "lone_sums", "long_ends", "window_runs", "tie_sums", *TILE_FEATURES,
)  # fmt: skip

WORK = TILE_WORK | {
    "macs",
    "products",
    "steps",
    "visits",
    "tile_products",
    "quad_products",
    "pair_products",
    "window_insns",
    "window_cycles",
}
"""Those that count multiply-accumulates, one by one or in groups."""

OF_PLAN = ("window_insns", "window_cycles", "plane_insns", "plane_calls")
"""Those of plans that count what their loops take (`Plan.work`): costs are fitted to them, calls and weights alone."""

OF_PASSES = (
    "call", "outputs", "rows", "pixels", "edges", "patch", "edge_patch", "window_runs", "quads", "quad_products",
    "passes", "reread", "shifted_tiles", "shifted_patch",
)  # fmt: skip
"""Those that costs of plans with `passes` are fitted to."""

_WEIGHTS = ("weights", "w", "r")  # roles; the last ones of recurrent layers
_CACHES = {"8k": 8 << 10, "16k": 16 << 10, "32k": 32 << 10}
_WAYS = 4  # of a cache


@dataclass(frozen=True, slots=True)
class Image:
    """The outputs of a spatial kernel, and the window of each."""

    batch: int
    out_h: int
    out_w: int
    k_h: int
    k_w: int

    @staticmethod
    def of(p: Mapping[str, int]) -> Image | None:
        """Return that of parameters, None where they are of no image."""
        if "out_h" not in p or "out_w" not in p:
            return None
        return Image(p.get("batch", 1), p["out_h"], p["out_w"], p.get("k_h", 1), p.get("k_w", 1))

    @property
    def rows(self) -> int:
        """Rows of all images."""
        return self.batch * self.out_h

    @property
    def pixels(self) -> int:
        """Pixels of all images."""
        return self.rows * self.out_w


def numbers(instr: Instr) -> dict[str, int]:
    """Return the parameters of an instruction that are whole numbers."""
    return {key: int(v) for key, v in instr.params.items() if isinstance(v, int) and not isinstance(v, bool)}


def work_of(instr: Instr) -> Hashable:
    """Return what features follow from: equal for layers that differ in constants and names."""
    operands = tuple((o.role, o.access.value, o.type.shape, o.type.dtype.bits) for o in instr.operands)
    return instr.kernel, tuple(instr.params.items()), operands, instr.rows, instr.macs, instr.plan


@once(work_of)
def features(instr: Instr) -> Mapping[str, float]:
    """Return what the instructions of a call may grow with.

    outputs, inputs: elements; pixels, rows: of the output; blocks, vectors: groups of 4 and of 16 output channels
    of all pixels, or of elements of a row; products: of a block with four inputs; strips: three pixels of a block;
    taps, kernel_rows: of the windows of all pixels; visits: taps of all outputs; steps: groups of 16 inputs over
    all sums; padding: multiply-accumulates beside the input; edges: pixels whose window is not whole; tiles: 2x4
    pixels of four output channels; tile_products, tile_inputs: input channels of tiles, and of 2x4 pixels in each
    pass of a plan that has
    `channels`; turned_weights: weights that such a plan transforms, by their windows; quads, quad_products: four pixels
    or rows of two output channels, and their inputs; patch: inputs of the windows of all pixels, edge_patch of those
    that are not whole; block_taps: taps of blocks, edge_blocks: blocks whose window is not whole, strided_blocks: those
    of layers with a stride; tail: channels beyond whole groups of four, of all pixels, or elements of a row beyond
    groups of 16, and tail_taps their taps;
    weights: bytes; macs_8k ...: multiply-accumulates with weights
    that take more than that, so that a cache does not keep them from one pixel to the next, unless the plan reads them
    in parts for all pixels; spill_8k ...: bytes that
    miss such a cache when four pixels at a time go through all weights: those of sets with more lines than ways, none
    of which is there when its turn comes; spans_again_8k, twos_again_8k ...: those that all spans or
    twos of glowc.kernels.tile_features after the first one miss, turns_again_8k ... those of steps of a recurrence;
    inside: those that lie in the input; middle: those of pixels whose window is whole, border: of the other ones;
    pairs, pair_products: two adjacent pixels of a row of four output channels, and their inputs. window_insns,
    plane_insns: of depthwise windows the instructions of rows of outputs, and of planes, window_cycles: of the former
    in an order for a core;
    plane_calls: those of all calls around these; passes: of pairs of channels over the pixels that a
    plan collects, reread: the bytes of weights that these read from flash;
    real_sums: sums of plans that divide floats for each, lone_sums: those by one vector at a time;
    long_ends: outputs of plans that end in products of 64 bits; window_runs: adjacent inputs under windows that are
    collected one after the other; tie_sums: of averages so near to a tie that floats are added up in software. With
    them come those of glowc.kernels.tile_features.
    """
    p = numbers(instr)
    image, channels = Image.of(p), p.get("out_c", 0)
    out = sum(o.type.elements for o in instr.operands if o.access is not Access.IN and o.role != "scratch")
    out = max(out, image.pixels * channels if image is not None else 0)  # a ring has some of them
    found = {"call": 1.0, "outputs": float(out), "inputs": float(_inputs(instr)), "macs": float(instr.macs)}
    if instr.macs and out:
        depth, last = instr.macs / out, p.get("out_n", p.get("out_c", p.get("n", out)))
        groups = {n: float(out // last * math.ceil(last / n)) for n in (4, 16)}
        found |= {"steps": float(out * math.ceil(depth / 16)), "blocks": groups[4], "vectors": groups[16]}
        found["products"] = groups[4] * math.ceil(depth / 4)
        found["quads"] = float(math.ceil(out / last / 4) * math.ceil(last / 2))
        found["quad_products"] = found["quads"] * depth
        tiled = tile_features(instr, p, float(out))
        found |= tiled | _weights(instr, math.ceil(out / last / 4), tiled)
        if "seq" in p:
            found |= _turns(found["weights"], p)
    found["rows"] = _rows(p)
    if image is None:
        length = p.get("n", p.get(f"d{p.get('rank', 0) - 1}", 0))
        found |= instr.plan.work(instr)
        return found if instr.macs else found | _row_features(found["rows"], length)
    pixels, rows = image.pixels, image.rows
    blocks = math.ceil(channels / 4)
    found |= {"pixels": pixels, "rows": rows, "blocks": pixels * blocks, "vectors": pixels * math.ceil(channels / 16)}
    found["strips"] = rows * math.ceil(image.out_w / 3) * blocks
    found["pairs"] = rows * math.ceil(image.out_w / 2) * blocks
    found["pair_products"] = found["pairs"] * instr.macs / max(out, 1)
    tiles, inputs = image.batch * math.ceil(image.out_h / 2) * math.ceil(image.out_w / 4), p.get("in_c", 0)
    found |= {"tiles": tiles * blocks, "tile_products": tiles * blocks * inputs}
    found["tile_inputs"] = tiles * inputs
    found |= instr.plan.work(instr)
    if "k_h" in p and "k_w" in p:
        found |= {"taps": pixels * image.k_h * image.k_w, "kernel_rows": pixels * image.k_h}
        found["visits"] = float(out * image.k_h * image.k_w)
        high, wide = _window(p, "h"), _window(p, "w")
        share = high[0] * wide[0]
        found |= {"padding": instr.macs * (1 - share), "edges": pixels * (1 - high[1] * wide[1])}
        found |= {"inside": instr.macs * share, "middle": instr.macs * high[1] * wide[1]}
        found["border"] = instr.macs - found["middle"]
        found |= _window_features(instr, p, found)
        if instr.macs and out:
            per_row = math.ceil(instr.macs / out / image.k_h / 16)
            found["steps"] = out * image.k_h * per_row
    return found


def _window_features(instr: Instr, p: Mapping[str, int], found: Mapping[str, float]) -> dict[str, float]:
    taps, pixels, channels = p["k_h"] * p["k_w"], found["pixels"], p.get("out_c", 0)
    depth, edge = instr.macs / max(found["outputs"], 1), found["edges"] / max(pixels, 1)
    blocks, tail = found["blocks"], pixels * (channels % 4)
    return {
        "patch": pixels * depth, "edge_patch": found["edges"] * depth, "block_taps": blocks * taps,
        "edge_blocks": blocks * edge, "strided_blocks": blocks if p.get("stride_h", 1) > 1 else 0.0,
        "tail": float(tail), "tail_taps": float(tail * taps),
    }  # fmt: skip


def _weights(instr: Instr, rounds: int, tiles: Mapping[str, float]) -> dict[str, float]:
    size = sum(o.type.size_bytes for o in instr.operands if o.role in _WEIGHTS)
    found = {"weights": float(size)}
    for name, most in _CACHES.items():
        if size > most and not instr.plan.reads_weights_once:
            share = min(_WAYS * (size - most) / most, 1.0)
            found |= {f"macs_{name}": float(instr.macs), f"spill_{name}": rounds * size * share}
            again = {what: max(tiles.get(what, 1) - 1, 0) * size * share for what in ("spans", "twos")}
            found |= {f"{what}_again_{name}": missed for what, missed in again.items()}
    return found


def _turns(size: float, p: Mapping[str, int]) -> dict[str, float]:
    """Return the bytes of weights that steps of a recurrence after the first one miss: directions run one by one."""
    each, steps = size / p.get("dirs", 1), p["seq"] * p.get("batch", 1)
    shares = {name: min(_WAYS * (each - most) / most, 1.0) for name, most in _CACHES.items() if each > most}
    return {f"turns_again_{name}": (steps - 1) * size * share for name, share in shares.items()}


def _row_features(rows: float, n: int) -> dict[str, float]:
    """Return those of rows of n: groups of 16 elements, those beyond, and elements of four rows at a time."""
    return {"vectors": rows * math.ceil(n / 16), "tail": rows * (n % 16), "quads": math.ceil(rows / 4) * n}


def _rows(p: Mapping[str, int]) -> float:
    """Return the rows of a kernel without an image: of a matrix, of a tensor that is copied, steps of a recurrence."""
    if "rank" in p:
        return float(math.prod(p.get(f"d{axis}", 1) for axis in range(p["rank"] - 1)))
    if "seq" in p:
        return float(p["seq"] * p.get("batch", 1) * p.get("dirs", 1))
    product = p.get("batch_0", 1) * p.get("batch_1", 1) * p["m"] if "m" in p else int("out_n" in p)
    return float(p.get("rows", p.get("outer", p.get("index_n", product))))


def _inputs(instr: Instr) -> int:
    """Return the elements of the first input, of the larger one where they are combined element by element."""
    sizes = [o.type.elements for o in instr.operands if o.access is not Access.OUT]
    return max(sizes[: 2 if "rank" in instr.params else 1], default=0)


def _window(p: Mapping[str, int], axis: str) -> tuple[float, float]:
    """Return the share of taps that lie inside the input, and of outputs all of whose taps do, along "h" or "w"."""
    taps, count, kernel = inside(p, axis), p[f"out_{axis}"], p[f"k_{axis}"]
    return int(taps.sum()) / max(count * kernel, 1), int((taps == kernel).sum()) / max(count, 1)


@dataclass(frozen=True, slots=True)
class Stated:
    """What a call takes, roughly: instructions for each of the features that the fields are called by."""

    macs: float = 0.0
    outputs: float = 0.0
    inputs: float = 0.0
    tiles: float = 0.0
    tile_products: float = 0.0
    tile_inputs: float = 0.0
    turned_weights: float = 0.0

    def insns(self, instr: Instr) -> float:
        """Return the instructions of a call."""
        found = features(instr)
        return sum(float(getattr(self, field.name)) * found.get(field.name, 0.0) for field in fields(self))
