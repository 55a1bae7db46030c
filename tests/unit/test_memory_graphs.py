"""Lifetimes of generated networks and of the published ones, used by the other memory tests."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from glowc.memory import Block, Lifetime, Overlap


@dataclass
class Net:
    """Values in order of creation; every value is made by the instruction with its own number."""

    align_choices: tuple[int, ...] = (1,)
    random: Random = field(default_factory=lambda: Random(0))
    sizes: list[int] = field(default_factory=list)
    last_use: list[int] = field(default_factory=list)

    def op(self, inputs: list[int], size: int) -> int:
        """Append one instruction that reads `inputs` and makes a value of `size` bytes."""
        now = len(self.sizes)
        self.sizes.append(size)
        self.last_use.append(now)
        for value in inputs:
            self.last_use[value] = now
        return now

    def blocks(self) -> list[Block]:
        """One block per value: alive from its making up to and including its last use."""
        return [
            Block(f"v{i}", Lifetime(i, self.last_use[i] + 1), size, self.random.choice(self.align_choices))
            for i, size in enumerate(self.sizes)
        ]


def chain(net: Net, x: int) -> int:
    return net.op([x], net.random.randrange(100, 60_000))


def residual(net: Net, x: int) -> int:
    y = net.op([net.op([x], net.random.randrange(100, 60_000))], net.sizes[x])
    return net.op([x, y], net.sizes[x])


def inception(net: Net, x: int) -> int:
    branches = []
    for _ in range(net.random.randrange(2, 5)):
        y = x
        for _ in range(net.random.randrange(1, 4)):
            y = net.op([y], net.random.randrange(100, 30_000))
        branches.append(y)
    return net.op(branches, sum(net.sizes[b] for b in branches))


def dense_block(net: Net, x: int) -> int:
    features = [x]
    growth = net.random.randrange(100, 15_000)
    for _ in range(net.random.randrange(2, 6)):
        features.append(net.op(list(features), growth))
    return net.op(features, net.random.randrange(100, 30_000))


KINDS = {
    "chain": (chain,),
    "residual": (chain, residual),
    "inception": (chain, inception),
    "dense": (chain, dense_block),
    "mixed": (chain, residual, inception, dense_block),
}


def network(kind: str, count: int, seed: int, align_choices: tuple[int, ...] = (1,)) -> list[Block]:
    """About `count` blocks of a network built from stages of one kind."""
    random = Random(seed)
    net = Net(align_choices, random)
    x = net.op([], random.randrange(1_000, 60_000))
    while len(net.sizes) < count:
        x = random.choice(KINDS[kind])(net, x)
    return net.blocks()


def random_blocks(count: int, seed: int, align_choices: tuple[int, ...] = (1,), life: int = 30) -> list[Block]:
    """Unrelated lifetimes and sizes, some of them 0."""
    random = Random(seed)
    blocks = []
    for i in range(count):
        begin = random.randrange(max(1, count))
        lifetime = Lifetime(begin, begin + random.randrange(1, life + 1))
        size = random.choice([0, *(random.randrange(1, 5_000) for _ in range(9))])
        blocks.append(Block(f"r{i}", lifetime, size, random.choice(align_choices)))
    return blocks


def random_overlaps(blocks: list[Block], seed: int, share: float = 0.3) -> list[Overlap]:
    """For some pairs that are alive together: part of the default interval is legal after all."""
    random = Random(seed)
    overlaps = []
    for i, a in enumerate(blocks):
        for b in blocks[i + 1 :]:
            together = a.lifetime.begin < b.lifetime.end and b.lifetime.begin < a.lifetime.end
            if together and random.random() < share:
                low = -random.randrange(a.size_bytes + 1)
                high = random.randrange(b.size_bytes + 1)
                overlaps.append(Overlap(a.name, b.name, low, high))
    return overlaps


@dataclass(frozen=True)
class Layer:
    """A convolution over rows with SAME padding: all that its memory depends on."""

    in_h: int
    in_row: int
    out_h: int
    out_row: int
    k_h: int = 1
    stride_h: int = 1

    @property
    def pad_top(self) -> int:
        return max(0, (self.out_h - 1) * self.stride_h + self.k_h - self.in_h) // 2

    def row_overlap(self, out: str, source: str) -> Overlap:
        """Output rows, written in ascending or descending order, may overwrite dead input rows."""
        rows = range(self.out_h)
        first = [max(0, y * self.stride_h - self.pad_top) for y in rows]
        last = [min(self.in_h, y * self.stride_h - self.pad_top + self.k_h) for y in rows]
        below = max((y + 1) * self.out_row - first[y] * self.in_row for y in rows)
        above = max(last[y] * self.in_row - y * self.out_row for y in rows)
        return Overlap(out, source, -below, above)


def mobilenet_vww() -> list[Layer]:
    """MobileNetV1 0.25 on 96x96x3 (MLPerf Tiny visual wake words), up to the global pooling."""
    layers = [Layer(96, 96 * 3, 48, 48 * 8, 3, 2)]
    h, c = 48, 8
    for out_c, stride in [
        (16, 1),
        (32, 2),
        (32, 1),
        (64, 2),
        (64, 1),
        (128, 2),
        *[(128, 1)] * 5,
        (256, 2),
        (256, 1),
    ]:
        layers.append(Layer(h, h * c, h // stride, h // stride * c, 3, stride))
        h //= stride
        layers.append(Layer(h, h * c, h, h * out_c))
        c = out_c
    return layers


def ds_cnn_kws() -> list[Layer]:
    """DS-CNN on 49x10 (MLPerf Tiny keyword spotting), up to the global pooling."""
    block = [Layer(25, 5 * 64, 25, 5 * 64, 3), Layer(25, 5 * 64, 25, 5 * 64)]
    return [Layer(49, 10, 25, 5 * 64, 10, 2), *block * 4]


def layer_blocks(layers: list[Layer], align: int = 1) -> tuple[list[Block], list[Overlap]]:
    """Input, activations and output of a chain of layers in the arena, with the row overlaps."""
    sizes = [layers[0].in_h * layers[0].in_row, *(layer.out_h * layer.out_row for layer in layers)]
    blocks = [
        Block(f"t{i}", Lifetime(max(0, i - 1), min(i, len(layers) - 1) + 1), size, align)
        for i, size in enumerate(sizes)
    ]
    return blocks, [layer.row_overlap(f"t{i + 1}", f"t{i}") for i, layer in enumerate(layers)]


def test_generator_makes_the_asked_number_of_well_formed_blocks() -> None:
    for kind in KINDS:
        blocks = network(kind, 50, seed=1)
        assert len(blocks) >= 50
        assert all(b.lifetime.begin < b.lifetime.end and b.size_bytes > 0 for b in blocks)


def test_vww_layer_shapes_are_those_of_the_published_model() -> None:
    sizes = [layer.out_h * layer.out_row for layer in mobilenet_vww()]
    assert sizes[:6] == [18_432, 18_432, 36_864, 9_216, 18_432, 18_432]
    assert (len(sizes), sizes[-1]) == (27, 3 * 3 * 256)
