"""The page of `glowc report`: one file that loads nothing, names that stay text, edges; in a browser where one is."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from typing import Any

import onnx
import pytest

from glowc.machine.page import edges_of, page_of, read_report, render_page
from tests.conftest import ROOT, require_module
from tests.unit.cli_calls import DIGITS, Glowc, refused, save

EVIL = '</script><img src=x onerror="document.title=1">&<!--'


class Parsed(HTMLParser):
    """Tags with their attributes, and the text of scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.raw: list[tuple[str, str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1][0] in ("script", "style") and data.strip():
            self.raw.append((self.tags[-1][0], data))

    @property
    def data(self) -> Any:
        return json.loads(next(text for tag, text in self.raw if tag == "script"))


@pytest.fixture(scope="session")
def page(bundle: Path) -> str:
    report = read_report(bundle)
    return render_page(page_of(report, against=report))


def evil_model() -> Path:
    proto = onnx.load(DIGITS)
    for node in proto.graph.node:
        node.name = f"{node.name}{EVIL}"
        for i, name in enumerate(node.output):
            if name not in {o.name for o in proto.graph.output}:
                for other in proto.graph.node:
                    other.input[:] = [f"{n}{EVIL}" if n == name else n for n in other.input]
                node.output[i] = f"{name}{EVIL}"
    return save(proto, "evil.onnx")


def test_page_needs_nothing_else(page: str) -> None:
    found = Parsed(page)
    loads = [(tag, k) for tag, attrs in found.tags for k in attrs if k in ("src", "href", "srcset", "action")]
    assert loads == []
    assert re.findall(r"url\(|@import|fetch\(|XMLHttp|innerHTML|insertAdjacent|document\.write|eval\(", page) == []
    assert set(re.findall(r"https?://[^\"]+", page)) == {"http://www.w3.org/2000/svg"}
    assert len(page) < 200_000


def test_only_the_pages_own_script_and_style_may_run(page: str) -> None:
    found = Parsed(page)
    policy = next(attrs["content"] for tag, attrs in found.tags if attrs.get("http-equiv"))
    assert policy is not None
    style = next(text for tag, text in found.raw if tag == "style")
    script = found.raw[-1][1]
    for text in (style, script):
        assert base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() in policy


def test_names_of_a_model_stay_text(glowc: Glowc) -> None:
    model = evil_model()
    assert glowc("report", model, "--no-measure").status == 0
    text = Path("report.html").read_text()
    assert "<img" not in text
    assert "<!--" not in text
    found = Parsed(text)
    assert any(EVIL in layer["name"] for layer in found.data["report"]["layers"])
    assert [tag for tag, _ in found.tags].count("script") == 2


def test_what_json_has_no_number_for_is_null(bundle: Path) -> None:
    report = read_report(bundle)
    layer: Any = {"node": "a", "lost_db": float("nan"), "sqnr_db": float("inf")}
    text = render_page(page_of(report, evaluated={"samples": 1, "scores": [], "layers": [layer]}))
    assert Parsed(text).data["evaluated"]["layers"] == [{"node": "a", "lost_db": None, "sqnr_db": None}]
    assert not re.search(r"[:,\[](NaN|-?Infinity)", text[text.index('id="data"') :].partition("</script>")[0])


def test_edges_come_from_the_layer_that_wrote(bundle: Path) -> None:
    report = read_report(bundle)
    edges = edges_of(report["layers"], report["tensors"])
    assert edges[0] == {"source": None, "target": 0, "tensor": report["layers"][0]["reads"][0]}
    assert {e["target"] for e in edges} == set(range(len(report["layers"])))
    assert all(e["source"] is None or e["source"] < e["target"] for e in edges)


def test_edges_of_a_view_come_from_what_is_still_there_of_its_storage() -> None:
    places = {"left": (0, 8), "right": (8, 8), "both": (0, 16), "again": (8, 8)}
    tensors: list[Any] = [
        {"name": n, "storage": "whole", "offset_bytes": at, "size_bytes": size} for n, (at, size) in places.items()
    ]
    steps = (("in", "left"), ("left", "right"), ("right", "again"), ("both", "out"))
    layers: list[Any] = [{"reads": [read], "writes": [write]} for read, write in steps]
    found = [(e["source"], e["target"]) for e in edges_of(layers, tensors)]
    assert found == [(None, 0), (0, 1), (1, 2), (2, 3), (0, 3)]


def test_what_is_no_report_is_refused(glowc: Glowc, bundle: Path) -> None:
    Path("other.json").write_text('{"model": "x", "layers": [{"name": "a"}]}')
    Path("list.json").write_text("[1]")
    Path("text.json").write_text("hello")
    report = json.loads((bundle / "report.json").read_text())
    Path("half.json").write_text(json.dumps({**report, "layers": [{"name": "a"}]}))
    refused(glowc, "report", bundle, "--against", "other.json", says=["other.json is no report", "tensors"])
    refused(glowc, "report", "list.json", says=["list.json is no report"])
    refused(glowc, "report", "text.json", says=["cannot read text.json: it is no JSON"])
    refused(glowc, "report", "half.json", says=["kernel of a layer"])
    Path("tensors.json").write_text(json.dumps({**report, "tensors": [{"name": []}]}))
    refused(glowc, "report", "tensors.json", says=["tensors.json is no report"])
    refused(glowc, "report", bundle / "report.json", "--chip", "stm32l4r5", says=["not measured again: --chip"])
    refused(glowc, "report", bundle, "--eval", "other.json", says=["other.json is no evaluation"])
    refused(glowc, "report", bundle, "-o", "absent/report.html", says=["absent is no folder"])


# Clicks what a reader clicks, and leaves in the document what must hold then.
CLICKS = """
document.querySelectorAll("#canvas .node:not(.port)")[1].dispatchEvent(new MouseEvent("click", {bubbles: true}));
const heads = [...document.querySelectorAll("#layers th")];
heads.find((h) => h.textContent === "MACs").click();
const macs = [...document.querySelectorAll("#layers tbody tr td:nth-child(5)")];
const search = document.querySelector("#graph input");
search.value = "conv";
search.dispatchEvent(new Event("input"));
document.querySelectorAll("button").forEach((b) => b.click());
document.body.dataset.seen = JSON.stringify({
  macs: macs.map((td) => Number(td.textContent.replaceAll(",", ""))),
  chosen: document.querySelectorAll("tr.chosen").length,
  details: document.querySelectorAll("#details dd").length,
  blocks: document.querySelectorAll("#memory .block").length,
  away: document.querySelectorAll(".node.away").length,
});
"""


def test_page_in_a_browser(page: str, bundle: Path, tmp_path: Path) -> None:
    """`make test-report` installs the browser."""
    browser = shutil.which("chromium")
    if browser is None:
        if os.environ.get("GLOWC_REQUIRE_BROWSER") == "1":
            pytest.fail("chromium is not installed")
        pytest.skip("chromium is not installed: make test-report")
    report = read_report(bundle)
    plain, clicked = tmp_path / "plain.html", tmp_path / "clicked.html"
    plain.write_text(page)
    free = re.sub(r"<meta http-equiv[^>]*>", "", page)
    clicked.write_text(free.replace("</body>", f"<script>{CLICKS}</script></body>"))
    for path in (plain, clicked):
        argv = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
                f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", path.as_uri()]  # fmt: skip
        done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=120)
        assert "CONSOLE" not in done.stderr
        assert 'data-ready="yes"' in done.stdout
    seen = json.loads(re.findall(r"data-seen=\"([^\"]*)\"", done.stdout)[0].replace("&quot;", '"'))
    assert seen["macs"] == sorted((layer["macs"] for layer in report["layers"]), reverse=True)
    assert seen["chosen"] == 1
    assert seen["details"] > 5
    assert seen["blocks"] > 2
    assert seen["away"] > 0


def test_picture_is_of_this_page(monkeypatch: pytest.MonkeyPatch) -> None:
    image = require_module("PIL.Image")
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    script = import_module("report_picture")
    with image.open(script.PICTURE) as picture:
        assert picture.text[script.KEY] == script.page_hash(), "make report-picture"
