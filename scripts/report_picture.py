"""Draws docs/report.png, the top of the page of `glowc report` for the example digits: `make report-picture`.

The picture holds a hash of the files that the page is made of; tests/unit/test_report_page.py says when it is stale.
Needs chromium, and pillow to keep the file small.
"""

from __future__ import annotations

import hashlib
import io
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image, PngImagePlugin

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "report.png"
WIDTH, HEIGHT, COLORS = 1160, 720, 256
KEY = "page"


def page_hash() -> str:
    """Return the hash of the templates of the page."""
    texts = (path.read_bytes() for path in sorted((ROOT / "templates" / "report").iterdir()))
    return hashlib.sha256(b"\0".join(texts)).hexdigest()[:16]


def main() -> None:
    """Write the picture."""
    with tempfile.TemporaryDirectory() as folder:
        page, shot = Path(folder) / "digits.html", Path(folder) / "shot.png"
        report = ["report", str(ROOT / "examples/digits/digits.onnx"), "--chip", "stm32l4r5", "-o", str(page), "-q"]
        subprocess.run([sys.executable, "-m", "glowc", *report], cwd=ROOT, check=True)
        browser = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                   f"--user-data-dir={folder}/profile", f"--window-size={WIDTH},{HEIGHT}",
                   f"--screenshot={shot}", page.as_uri()]  # fmt: skip
        subprocess.run(browser, check=True, capture_output=True, timeout=120)
        image = Image.open(io.BytesIO(shot.read_bytes())).convert("RGB").quantize(COLORS)
    note = PngImagePlugin.PngInfo()
    note.add_text(KEY, page_hash())
    image.save(PICTURE, optimize=True, pnginfo=note)


if __name__ == "__main__":
    main()
