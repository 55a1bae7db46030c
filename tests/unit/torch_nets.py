"""Networks as people write them in PyTorch, and examples of their inputs; for tests with PyTorch installed."""

from __future__ import annotations

import torch
from torch import nn


def _conv(in_c: int, out_c: int, kernel: int = 3, stride: int = 1, groups: int = 1) -> nn.Sequential:
    conv = nn.Conv2d(in_c, out_c, kernel, stride, kernel // 2, groups=groups, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(out_c))


class Residual(nn.Module):
    """The basic block of a ResNet, with a projection."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.short = _conv(3, 8, stride=2), _conv(8, 8), _conv(3, 8, 1, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.second(torch.relu(self.first(x))) + self.short(x))


class Mobile(nn.Module):
    """An inverted residual with squeeze and excitation, as in MobileNetV3."""

    def __init__(self) -> None:
        super().__init__()
        self.expand, self.depth, self.project = _conv(8, 24, 1), _conv(24, 24, groups=24), _conv(24, 8, 1)
        self.squeeze, self.excite = nn.Conv2d(24, 6, 1), nn.Conv2d(6, 24, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = nn.functional.hardswish(self.depth(nn.functional.hardswish(self.expand(x))))
        scale = nn.functional.adaptive_avg_pool2d(y, 1)
        scale = nn.functional.hardsigmoid(self.excite(torch.relu(self.squeeze(scale))))
        return x + self.project(y * scale)


class Recurrent(nn.Module):
    """A recurrent layer and a classifier of its last step."""

    def __init__(self, kind: type[nn.LSTM | nn.GRU], two_ways: bool = False) -> None:
        super().__init__()
        self.layer = kind(6, 8, batch_first=True, bidirectional=two_ways)
        self.head = nn.Linear(16 if two_ways else 8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.layer(x)[0][:, -1])


class Temporal(nn.Module):
    """A TCN: causal dilated convolutions with residuals."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Conv1d(4, 4, 3, dilation=d) for d in (1, 2, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = x + torch.relu(layer(nn.functional.pad(x, (2 * layer.dilation[0], 0))))
        return x


class Upsampling(nn.Module):
    """A small U-Net: down, up, joined."""

    def __init__(self) -> None:
        super().__init__()
        self.down, self.up, self.last = nn.Conv2d(2, 4, 3, 2, 1), nn.ConvTranspose2d(4, 2, 2, 2), nn.Conv2d(4, 1, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(self.last(torch.cat([x, self.up(torch.relu(self.down(x)))], 1)))


class Cell(nn.Module):
    """A GRU that keeps its state in a buffer; the first state is not zero."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.head = nn.GRUCell(4, 8), nn.Linear(8, 2)
        self.register_buffer("h", torch.linspace(-1, 1, 8)[None])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.h.copy_(self.cell(x, self.h))
        return self.head(self.h)


class Streamed(nn.Module):
    """An LSTM over two steps of a call; its states are buffers that get new tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.LSTM(4, 6, batch_first=True)
        self.register_buffer("h", torch.zeros(1, 1, 6))
        self.register_buffer("c", torch.zeros(1, 1, 6))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y, (self.h, self.c) = self.layer(x, (self.h, self.c))
        return y


class Window(nn.Module):
    """A convolution over the last steps, which are kept."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Conv1d(3, 2, 8)
        self.register_buffer("steps", torch.zeros(1, 3, 8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.steps = torch.cat([self.steps[:, :, 1:], x], 2)
        return self.layer(self.steps)


class Cached(nn.Module):
    """Attention of a token to those before it, whose keys and values are kept; the position is kept, too."""

    def __init__(self, steps: int = 12, width: int = 8) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.register_buffer("keys", torch.zeros(1, steps, width))
        self.register_buffer("values", torch.zeros(1, steps, width))
        self.register_buffer("position", torch.zeros(1, dtype=torch.int64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.keys.index_copy_(1, self.position, self.key(x))
        self.values.index_copy_(1, self.position, self.value(x))
        later = torch.arange(self.keys.shape[1]) > self.position
        scores = (self.query(x) @ self.keys.transpose(1, 2)).masked_fill(later, float("-inf"))
        self.position.add_(1)
        return scores.softmax(-1) @ self.values


class Passed(nn.Module):
    """A GRU cell whose state is an argument and a result."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(4, 8)

    def forward(self, x: torch.Tensor, hidden: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        hidden = self.cell(x, hidden)
        return hidden.sum(1), hidden


def _perceptron() -> nn.Module:
    return nn.Sequential(nn.Linear(10, 16), nn.LayerNorm(16), nn.GELU(), nn.Dropout(), nn.Linear(16, 3), nn.Softmax(-1))


def _keyword() -> nn.Module:
    layers = (_conv(1, 8, stride=2), nn.ReLU(), _conv(8, 8, groups=8), nn.ReLU6(), _conv(8, 12, 1), nn.SiLU())
    return nn.Sequential(*layers, nn.AvgPool2d(2), nn.Flatten(), nn.Linear(12 * 4 * 4, 5))


def _encoder() -> nn.Module:
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2, enable_nested_tensor=False)


PLAIN = {
    "residual": (Residual, (1, 3, 12, 12)),
    "mobile": (Mobile, (1, 8, 10, 10)),
    "lstm": (lambda: Recurrent(nn.LSTM), (1, 7, 6)),
    "lstm_two_ways": (lambda: Recurrent(nn.LSTM, True), (1, 7, 6)),
    "gru": (lambda: Recurrent(nn.GRU), (1, 7, 6)),
    "tcn": (Temporal, (1, 4, 16)),
    "encoder": (_encoder, (1, 6, 8)),
    "unet": (Upsampling, (1, 2, 8, 8)),
    "perceptron": (_perceptron, (1, 10)),
    "keyword": (_keyword, (1, 1, 16, 16)),
}
STEPPED = {
    "cell": (Cell, (1, 4)),
    "streamed": (Streamed, (1, 2, 4)),
    "window": (Window, (1, 3, 1)),
    "cached": (Cached, (1, 1, 8)),
}


class Quantizable(nn.Module):
    """Convolutions, a depthwise one, additions, poolings and a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.depth, self.point = _conv(3, 8, stride=2), nn.Conv2d(8, 8, 3, 1, 1, groups=8), _conv(8, 8, 1)
        self.head = nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.first(x))
        x = nn.functional.max_pool2d(torch.relu(self.point(torch.relu(self.depth(x))) + x), 2)
        return self.head(torch.flatten(nn.functional.adaptive_avg_pool2d(x, 1), 1))
