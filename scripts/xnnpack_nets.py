"""Write known networks with random weights as .tflite files in float and int8, for scripts/bench_xnnpack.py.

    scripts/xnnpack_nets.py FOLDER

Needs TensorFlow, which glowc's environment does not have: run it in one with `pip install tensorflow-cpu`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf
from keras import layers

_IMAGE = (1, 224, 224, 3)
_LITE0 = (  # factor, channels, blocks, stride, kernel: EfficientNet-B0's table without squeeze and excitation
    (1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3), (6, 112, 3, 1, 5), (6, 192, 4, 2, 5),
    (6, 320, 1, 1, 3),
)  # fmt: skip


def mobilenet_v2() -> Any:
    """MobileNetV2 1.0 for 224x224 pixels (Sandler et al. 2018)."""
    return keras.applications.MobileNetV2(input_tensor=keras.Input(batch_shape=_IMAGE), weights=None)


def resnet50() -> Any:
    """ResNet-50 for 224x224 pixels (He et al. 2015, with the strides in the first layers of 1x1)."""
    return keras.applications.ResNet50(input_tensor=keras.Input(batch_shape=_IMAGE), weights=None)


def _conv(x: Any, channels: int, k: int, stride: int = 1) -> Any:
    return layers.ReLU(6)(layers.Conv2D(channels, k, stride, padding="same")(x))


def _inverted(x: Any, factor: int, channels: int, stride: int, k: int) -> Any:
    begin = x
    if factor > 1:
        x = _conv(x, factor * x.shape[-1], 1)
    x = layers.ReLU(6)(layers.DepthwiseConv2D(k, stride, padding="same")(x))
    x = layers.Conv2D(channels, 1)(x)
    return layers.add([begin, x]) if x.shape == begin.shape else x


def efficientnet_lite0() -> Any:
    """EfficientNet-lite0 for 224x224 pixels, batch normalizations folded."""
    image = keras.Input(batch_shape=_IMAGE)
    x = _conv(image, 32, 3, 2)
    for factor, channels, blocks, stride, k in _LITE0:
        for block in range(blocks):
            x = _inverted(x, factor, channels, 1 if block else stride, k)
    x = layers.GlobalAveragePooling2D()(_conv(x, 1280, 1))
    return keras.Model(image, layers.Dense(1000, "softmax")(x))


def bert_mini() -> Any:
    """BERT-mini after its embeddings: 128 tokens, 4 layers of 256 channels and 4 heads (Turc et al. 2019)."""
    tokens = x = keras.Input(batch_shape=(1, 128, 256))
    for _ in range(4):
        x = layers.LayerNormalization()(layers.add([x, layers.MultiHeadAttention(4, 64)(x, x)]))
        y = layers.Dense(256)(layers.Dense(1024, "gelu")(x))
        x = layers.LayerNormalization()(layers.add([x, y]))
    return keras.Model(tokens, x)


def _converted(net: Any, integer: bool) -> bytes:
    (port,) = net.inputs

    def samples() -> Iterator[list[tf.Tensor]]:
        for seed in range(2):
            yield [tf.random.stateless_normal(port.shape, (seed, 0))]

    converter = tf.lite.TFLiteConverter.from_keras_model(net)
    if integer:
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        converter.representative_dataset = samples
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
        converter.inference_input_type = converter.inference_output_type = tf.int8
    return bytes(converter.convert())


NETS: tuple[Callable[[], Any], ...] = (mobilenet_v2, resnet50, efficientnet_lite0, bert_mini)


def main() -> None:
    """Write two files for each network."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for make in NETS:
        keras.utils.set_random_seed(0)
        net = make()
        for kind in ("int8", "fp32"):
            (folder / f"{make.__name__}_{kind}.tflite").write_bytes(_converted(net, kind == "int8"))


if __name__ == "__main__":
    main()
