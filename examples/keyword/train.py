"""Synthesised words -> a trained keyword network: keyword_fp32.onnx, with calibration and test data.

Four steps, each a function: `examples` makes words of espeak-ng into features, `train` fits the float network, `export`
writes it as float ONNX with the batch normalisation folded in, `save_data` keeps some examples for `glowc quantize` and
`glowc eval`. Everything is seeded.

Run it with `pip install -e '.[train]'` and `python examples/keyword/train.py`; see README.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import onnx
import torch
from features import features
from onnx import TensorProto, helper, numpy_helper
from speech import CLASSES, OTHERS, UNHEARD_OTHERS, UNHEARD_VOICES, VOICES, WORDS, second, spoken
from torch import nn
from torch.nn import functional

HERE = Path(__file__).resolve().parent
SEED = 3
CHANNELS, BLOCKS = 64, 4
SPOKEN, COPIES = 350, 2  # of each word; each spoken word is heard with several noises and shifts
OTHER_SHARE = 3  # times as many of all other words together as of one word
TEST_SPOKEN = 40
CALIBRATION = 128
EPOCHS, BATCH, RATE = 15, 64, 0.004
BYTE_SCALE = 1 / 64  # training sees bytes times this; the first layer's weights take it up
OPSET, IR_VERSION = 17, 8


class ConvBn(nn.Module):
    """Convolution and batch normalisation; `export` writes the two as one Conv."""

    def __init__(self, in_c: int, out_c: int, kernel: tuple[int, int], stride: int = 1, groups: int = 1) -> None:
        super().__init__()
        self.pads = [(kernel[0] - 1) // 2, (kernel[1] - 1) // 2, kernel[0] // 2, kernel[1] // 2]
        self.conv = nn.Conv2d(in_c, out_c, kernel, stride, groups=groups, bias=False)
        self.bn = nn.BatchNorm2d(out_c)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        top, left, bottom, right = self.pads
        return functional.relu(self.bn(self.conv(functional.pad(x, (left, right, top, bottom)))))

    def folded(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the weights and the bias of the one convolution that equals both."""
        bn = self.bn
        gain = bn.weight / torch.sqrt(bn.running_var + bn.eps)
        weight = self.conv.weight * gain[:, None, None, None]
        return weight.detach().numpy(), (bn.bias - bn.running_mean * gain).detach().numpy()


class KeywordNet(nn.Module):
    """49 x 10 features -> a logit for each class: a convolution, depthwise-separable blocks, a fully connected layer.

    The shape of the small DS-CNN of Zhang et al., "Hello Edge: Keyword Spotting on Microcontrollers", 2017.
    """

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleDict({"stem": ConvBn(1, CHANNELS, (10, 4), 2)})
        for i in range(1, BLOCKS + 1):
            self.layers[f"depthwise{i}"] = ConvBn(CHANNELS, CHANNELS, (3, 3), groups=CHANNELS)
            self.layers[f"pointwise{i}"] = ConvBn(CHANNELS, CHANNELS, (1, 1))
        self.classifier = nn.Linear(CHANNELS, len(CLASSES))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers.values():
            x = layer(x)
        return self.classifier(functional.dropout(x.mean(dim=(2, 3)), 0.2, self.training))


def examples(
    count: int, copies: int, voices: Sequence[str], others: Sequence[str], rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Return features uint8 [N,1,1,49,10] and classes int64 [N] in a random order: each word `count` times."""
    heard: list[tuple[np.ndarray, int]] = []
    for label, words in enumerate(((), others, *((word,) for word in WORDS))):
        for _ in range((OTHER_SHARE if words is others else 1) * count):
            word = spoken(rng.choice(words), voices, rng) if words else np.zeros(0)
            heard += [(features(second(word, rng)), label) for _ in range(copies)]
    order = rng.permutation(len(heard))
    found, labels = zip(*(heard[i] for i in order), strict=True)
    return np.stack(found)[:, None, None], np.array(labels, np.int64)


def real(x: np.ndarray) -> torch.Tensor:
    """Return what training sees of features: float [N,1,49,10]."""
    found = torch.from_numpy(x[:, 0].astype(np.float32) * BYTE_SCALE)
    return found.contiguous(memory_format=torch.channels_last)


def train(x: np.ndarray, y: np.ndarray) -> KeywordNet:
    """Fit the float network with Adam and a one-cycle learning rate."""
    torch.manual_seed(SEED)
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(1)
    inputs, labels = real(x), torch.from_numpy(y)
    net = KeywordNet().to(memory_format=torch.channels_last)
    optimizer = torch.optim.AdamW(net.parameters(), weight_decay=0.01)
    steps = EPOCHS * -(-len(x) // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total_steps=steps, pct_start=0.2)
    for epoch in range(EPOCHS):
        total = 0.0
        for chosen in torch.randperm(len(x)).split(BATCH):
            loss = functional.cross_entropy(net(inputs[chosen]), labels[chosen], label_smoothing=0.05)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item() * len(chosen)
        print(f"epoch {epoch + 1:2d}  loss {total / len(x):.4f}", flush=True)
    return net.eval()


def parts(net: KeywordNet) -> Iterator[tuple[onnx.NodeProto, dict[str, np.ndarray]]]:
    """Yield the nodes of the float ONNX network, each with its constants."""
    value = "features"
    for name, layer in net.layers.items():
        weight, bias = layer.folded()
        weight = weight * np.float32(BYTE_SCALE) if name == "stem" else weight
        consts = {f"{name}_weight": weight, f"{name}_bias": bias}
        conv = layer.conv
        attrs = {"pads": layer.pads, "strides": list(conv.stride), "group": conv.groups}
        yield helper.make_node("Conv", [value, *consts], [f"{name}_out"], name, **attrs), consts
        value = f"{name}_relu_out"
        yield helper.make_node("Relu", [f"{name}_out"], [value], f"{name}_relu"), {}
    yield helper.make_node("GlobalAveragePool", [value], ["average_out"], "average"), {}
    yield helper.make_node("Flatten", ["average_out"], ["flatten_out"], "flatten"), {}
    weight, bias = (p.detach().numpy() for p in (net.classifier.weight, net.classifier.bias))
    consts = {"classifier_weight": weight, "classifier_bias": bias}
    yield helper.make_node("Gemm", ["flatten_out", *consts], ["logits"], "classifier", transB=1), consts


def export(net: KeywordNet) -> onnx.ModelProto:
    """Return the network as float ONNX; its input is the features as they are, 0 to 255."""
    nodes, consts = zip(*parts(net), strict=True)
    tensors = [numpy_helper.from_array(np.ascontiguousarray(array), name) for c in consts for name, array in c.items()]
    given = helper.make_tensor_value_info("features", TensorProto.FLOAT, [1, 1, 49, 10])
    found = helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, len(CLASSES)])
    graph = helper.make_graph(nodes, "keyword", [given], [found], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="glowc")
    model.ir_version = IR_VERSION
    onnx.checker.check_model(model, full_check=True)
    return model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", type=Path, default=HERE, help="folder to write to")
    folder: Path = parser.parse_args().output
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(SEED)
    test_x, test_y = examples(TEST_SPOKEN, 1, UNHEARD_VOICES, UNHEARD_OTHERS, rng)
    x, y = examples(SPOKEN, COPIES, VOICES, OTHERS, rng)
    net = train(x, y)
    onnx.save(export(net), folder / "keyword_fp32.onnx")
    (folder / "classes.txt").write_text("\n".join((*CLASSES, "")), encoding="utf-8", newline="\n")
    np.savez_compressed(folder / "keyword_calibration.npz", features=x[:CALIBRATION])
    np.savez_compressed(folder / "keyword_test.npz", features=test_x, label=test_y)
    with torch.no_grad():
        guessed = net(real(test_x)).argmax(dim=1).numpy()
    print(f"{len(x)} training examples; {(guessed == test_y).mean():.2%} of {len(test_y)} test examples right")


if __name__ == "__main__":
    main()
