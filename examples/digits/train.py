"""Scanned digits -> a trained CNN -> digits_fp32.onnx -> digits.onnx (int8), with calibration and test images.

Four steps, each a function: `load` splits scikit-learn's digits, `train` fits the float network, `export` writes it
as float ONNX with the batch normalisation folded in, `quantise` is `glowc quantize` on 128 of the training images.
Everything is seeded.

Run it with `pip install -e '.[train]'` and `python examples/digits/train.py`; see README.md.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import torch
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.nn import functional

HERE = Path(__file__).resolve().parent
SEED = 7
TEST_IMAGES = 360
CALIBRATION_IMAGES = 128
EPOCHS = 90
BATCH = 32
OPSET = 17
IR_VERSION = 8
INPUT_SCALE = 1.0 / 16.0  # a scanned pixel is 0..16: as int8 it stays the number it is


class ConvBn(nn.Module):
    """Convolution (same padding) and batch normalisation; `export` writes the two as one Conv."""

    def __init__(self, in_c: int, out_c: int, kernel: int, groups: int = 1) -> None:
        super().__init__()
        self.conv = nn.Conv2d(in_c, out_c, kernel, padding=kernel // 2, groups=groups, bias=False)
        self.bn = nn.BatchNorm2d(out_c)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.bn(self.conv(x))

    def folded(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the weights and the bias of the one convolution that equals both."""
        bn = self.bn
        gain = bn.weight / torch.sqrt(bn.running_var + bn.eps)
        weight = self.conv.weight * gain[:, None, None, None]
        bias = bn.bias - bn.running_mean * gain
        return weight.detach().numpy(), bias.detach().numpy()


class DigitsNet(nn.Module):
    """8x8 grey -> 10 logits: a stem, a depthwise-separable block, a residual block, a head."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = ConvBn(1, 8, 3)
        self.depthwise = ConvBn(8, 8, 3, groups=8)
        self.pointwise = ConvBn(8, 16, 1)
        self.residual = ConvBn(16, 16, 3)
        self.wide = ConvBn(16, 32, 3)
        self.classifier = nn.Linear(32, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = functional.relu(self.stem(x))
        x = functional.relu(self.depthwise(x))
        x = functional.relu(self.pointwise(x))
        x = functional.max_pool2d(x, 2)
        x = functional.relu(x + self.residual(x))
        x = functional.relu(self.wide(x))
        return self.classifier(x.mean(dim=(2, 3)))


def load() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return train images, train labels, test images, test labels; a pixel is an integer 0..16."""
    images, labels = load_digits(return_X_y=True)
    images = images.astype(np.int8).reshape(-1, 1, 8, 8)
    split = train_test_split(images, labels, test_size=TEST_IMAGES, stratify=labels, random_state=SEED)
    train_x, test_x, train_y, test_y = split
    return train_x, train_y.astype(np.int64), test_x, test_y.astype(np.int64)


def real(images: np.ndarray) -> np.ndarray:
    """Return what the float network reads: pixels from 0 (paper) to 1 (ink)."""
    return images.astype(np.float32) * np.float32(INPUT_SCALE)


def shifted(images: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Move every image by up to one pixel in each direction, filling with paper."""
    padded = functional.pad(images, (1, 1, 1, 1))
    moved = torch.empty_like(images)
    for i, (dy, dx) in enumerate(torch.randint(0, 3, (len(images), 2), generator=generator).tolist()):
        moved[i] = padded[i, :, dy : dy + 8, dx : dx + 8]
    return moved


def train(images: np.ndarray, labels: np.ndarray) -> DigitsNet:
    """Fit the float network with Adam and a one-cycle learning rate; about 15 seconds on one core."""
    torch.manual_seed(SEED)
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(SEED)
    x = torch.from_numpy(real(images))
    y = torch.from_numpy(labels)
    net = DigitsNet()
    optimizer = torch.optim.AdamW(net.parameters(), weight_decay=0.01)
    steps = -(-len(x) // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.01, total_steps=EPOCHS * steps)
    for epoch in range(EPOCHS):
        total = 0.0
        for chosen in torch.randperm(len(x), generator=generator).split(BATCH):
            logits = net(shifted(x[chosen], generator))
            loss = functional.cross_entropy(logits, y[chosen], label_smoothing=0.05)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item() * len(chosen)
        if epoch % 10 == 9:
            print(f"epoch {epoch + 1:3d}  loss {total / len(x):.4f}")
    return net.eval()


def export(net: DigitsNet) -> onnx.ModelProto:
    """Write the network as float ONNX; node names are the ones glowc shows in reports and errors."""
    nodes: list[onnx.NodeProto] = []
    consts: list[onnx.TensorProto] = []

    def add(op: str, name: str, inputs: Sequence[str], output: str = "", **attrs: object) -> str:
        output = output or f"{name}_out"
        nodes.append(helper.make_node(op, list(inputs), [output], name=name, **attrs))
        return output

    def const(name: str, values: np.ndarray) -> str:
        consts.append(numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name

    def conv(name: str, x: str, layer: ConvBn) -> str:
        weight, bias = layer.folded()
        kernel, pad = weight.shape[-1], weight.shape[-1] // 2
        inputs = (x, const(f"{name}_weight", weight), const(f"{name}_bias", bias))
        attrs = {"kernel_shape": [kernel] * 2, "pads": [pad] * 4, "group": layer.conv.groups}
        return add("Conv", name, inputs, **attrs)

    def relu(x: str) -> str:
        return add("Relu", f"{x.removesuffix('_out')}_relu", [x])

    x = relu(conv("stem", "image", net.stem))
    x = relu(conv("depthwise", x, net.depthwise))
    x = relu(conv("pointwise", x, net.pointwise))
    x = add("MaxPool", "pool", [x], kernel_shape=[2, 2], strides=[2, 2])
    x = relu(add("Add", "residual_add", [x, conv("residual", x, net.residual)]))
    x = relu(conv("wide", x, net.wide))
    x = add("GlobalAveragePool", "average", [x])
    x = add("Flatten", "flatten", [x], axis=1)
    weight = const("classifier_weight", net.classifier.weight.detach().numpy())
    bias = const("classifier_bias", net.classifier.bias.detach().numpy())
    add("Gemm", "classifier", (x, weight, bias), "logits", transB=1)
    graph = helper.make_graph(
        nodes,
        "digits",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 1, 8, 8])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, 10])],
        consts,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="glowc")
    model.ir_version = IR_VERSION
    onnx.checker.check_model(model, full_check=True)
    return model


def quantise(folder: Path) -> onnx.ModelProto:
    """Make digits.onnx of the float network and the calibration images of a folder, as anybody can again."""
    model = folder / "digits.onnx"
    files = [folder / "digits_fp32.onnx", "--data", folder / "digits_calibration.npz", "-o", model]
    subprocess.run([sys.executable, "-m", "glowc", "quantize", *files], check=True)
    return onnx.load(model)


def session(model: onnx.ModelProto) -> ort.InferenceSession:
    """Open the model with onnxruntime's integer kernels, which define the golden bytes."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    # Without this option int8 QDQ silently runs in float on x86 and rounds differently now and then.
    options.add_session_config_entry("session.qdqisint8allowed", "1")
    return ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def infer(model: onnx.ModelProto, images: np.ndarray) -> np.ndarray:
    """Return the model's logits, one inference per image: [N,1,10]."""
    run = session(model).run
    return np.stack([run(["logits"], {"image": image[None]})[0] for image in images])


def accuracy(logits: np.ndarray, labels: np.ndarray) -> float:
    return float((logits.reshape(len(labels), -1).argmax(axis=1) == labels).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", type=Path, default=HERE, help="folder to write to")
    folder: Path = parser.parse_args().output
    folder.mkdir(parents=True, exist_ok=True)
    train_x, train_y, test_x, test_y = load()
    float_model = export(train(train_x, train_y))
    onnx.save(float_model, folder / "digits_fp32.onnx")
    # The leading axis counts samples; each sample has the model's whole shape [1,1,8,8].
    np.savez_compressed(folder / "digits_calibration.npz", image=real(train_x[:CALIBRATION_IMAGES, None]))
    model = quantise(folder)
    float_logits, golden = infer(float_model, real(test_x)), infer(model, test_x)
    np.savez_compressed(folder / "digits_test.npz", image=test_x[:, None], label=test_y, golden=golden)
    print(f"accuracy: float {accuracy(float_logits, test_y):.2%}, int8 {accuracy(golden, test_y):.2%}")


if __name__ == "__main__":
    main()
