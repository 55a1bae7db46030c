"""When a browser first paints pages of `glowc report`, their size and console errors: part of `make test-report`.

    python scripts/report_paint.py [MODEL...]

Without models: MobileNetV2 (1.0, 224 x 224, random weights), and MLPerf Tiny's visual wake words where ../shared/models
is. Milliseconds are those that the browser reports since the navigation began; they depend on the machine, so they are
only printed. The status is 1 for a page of over 2 MB, or one with an error on the console.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import TypedDict

import numpy as np
import onnx
from onnx import TensorProto, helper

ROOT = Path(__file__).resolve().parent.parent
VWW = ROOT.parent / "shared" / "models" / "mlperf_vww_mobilenetv1" / "model.onnx"
MOST_BYTES = 2_000_000
BLOCKS = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
"""Of MobileNetV2 (Sandler et al. 2018, table 2): expansion, channels, repeats, stride of the first."""

PROBE = """
<script>
addEventListener("load", () => setTimeout(() => {
  const paint = Object.fromEntries(performance.getEntriesByType("paint").map((e) => [e.name, e.startTime]));
  const load = performance.getEntriesByType("navigation")[0].loadEventEnd;
  fetch("/times", {method: "POST", body: JSON.stringify({paint: paint["first-contentful-paint"] ?? null, load})});
}, 500));
</script>
"""


class Times(TypedDict):
    """Milliseconds since the navigation began; `paint` is null when nothing was painted."""

    paint: float | None
    load: float


def mobilenet_v2(path: Path) -> None:
    """Write the network as ONNX, float32, channels first."""
    rng, nodes, consts = np.random.default_rng(0), list[onnx.NodeProto](), list[onnx.TensorProto]()

    def conv(x: str, in_c: int, out_c: int, k: int = 1, stride: int = 1, groups: int = 1, clip: bool = True) -> str:
        name = f"conv{len(consts)}"
        weights = rng.normal(0, (2 / (k * k * in_c / groups)) ** 0.5, (out_c, in_c // groups, k, k))
        consts.append(helper.make_tensor(f"{name}_w", TensorProto.FLOAT, weights.shape, weights.astype(np.float32)))
        attrs = {"strides": [stride] * 2, "pads": [k // 2] * 4, "group": groups}
        nodes.append(helper.make_node("Conv", [x, f"{name}_w"], [name], name=name, **attrs))
        if clip:
            nodes.append(helper.make_node("Clip", [name, "low", "high"], [f"{name}_6"], name=f"{name}/relu6"))
        return f"{name}_6" if clip else name

    x, channels = conv("image", 3, 32, 3, 2), 32
    for expand, out_c, repeats, first in BLOCKS:
        for stride in (first, *[1] * (repeats - 1)):
            wide = expand * channels
            y = conv(x, channels, wide) if expand > 1 else x
            y = conv(conv(y, wide, wide, 3, stride, wide), wide, out_c, clip=False)
            if stride == 1 and channels == out_c:
                nodes.append(helper.make_node("Add", [x, y], [f"{y}_sum"], name=f"{y}/add"))
                y = f"{y}_sum"
            x, channels = y, out_c
    nodes.append(helper.make_node("GlobalAveragePool", [conv(x, 320, 1280)], ["pooled"], name="pool"))
    nodes.append(helper.make_node("Flatten", [conv("pooled", 1280, 1000, clip=False)], ["scores"], name="flatten"))
    consts += [helper.make_tensor(n, TensorProto.FLOAT, (), [v]) for n, v in (("low", 0.0), ("high", 6.0))]
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, (1, 3, 224, 224))
    scores = helper.make_tensor_value_info("scores", TensorProto.FLOAT, (1, 1000))
    graph = helper.make_graph(nodes, "mobilenet_v2", [image], [scores], consts)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


@contextmanager
def served(page: bytes) -> Iterator[tuple[str, Queue[Times]]]:
    """Yield the address of a page, and what is sent back."""
    times: Queue[Times] = Queue()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/" else 204)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(page if self.path == "/" else b"")

        def do_POST(self) -> None:
            times.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/", times
        server.shutdown()


def painted(page: str, folder: Path) -> tuple[Times, list[str]]:
    """Return the times of a page in a fresh browser, and what it says on its console."""
    free = re.sub(r"<meta http-equiv[^>]*>", "", page)  # its policy lets no probe run
    log = folder / "log"
    with served(free.replace("</body>", f"{PROBE}</body>").encode()) as (address, times), log.open("w") as file:
        argv = ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
                "--enable-logging=stderr", f"--user-data-dir={folder / 'profile'}", address]  # fmt: skip
        with subprocess.Popen(argv, stdout=file, stderr=file) as browser:
            try:
                found = times.get(timeout=60)
            finally:
                browser.terminate()
    return found, [line for line in log.read_text().splitlines() if "CONSOLE" in line]


def show(model: Path, folder: Path) -> bool:
    """Print the line of one model; return whether its page is as it should be."""
    page = folder / "page.html"
    argv = [
        sys.executable,
        "-m",
        "glowc",
        "report",
        model,
        "--board",
        "linux-aarch64",
        "-o",
        page,
        "-q",
        "--no-measure",
    ]
    subprocess.run([str(a) for a in argv], check=True, cwd=ROOT)
    times, console = painted(page.read_text(encoding="utf-8"), folder)
    size, name = page.stat().st_size, model.parent.name if model.stem == "model" else model.stem
    paint = "nothing painted" if times["paint"] is None else f"first contentful paint {times['paint']:.0f} ms"
    print(f"{name}: {paint}, loaded {times['load']:.0f} ms, {size:,} bytes", *console, sep="\n")
    return times["paint"] is not None and not console and size <= MOST_BYTES


def main() -> int:
    """Print a line for each page."""
    with tempfile.TemporaryDirectory(prefix="glowc-paint-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        models = [Path(text) for text in sys.argv[1:]]
        if not models:
            mobilenet_v2(folder / "mobilenet_v2.onnx")
            models = [folder / "mobilenet_v2.onnx", *([VWW] if VWW.is_file() else [])]
        good = True
        for number, model in enumerate(models):
            work = folder / str(number)
            work.mkdir()
            good &= show(model.resolve(), work)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
