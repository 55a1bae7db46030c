"""docs/PRODUCTS.md: each network whose file is there takes no more RAM and constants than the page says."""

from __future__ import annotations

import sys

import pytest

from tests.conftest import ROOT

sys.path.insert(0, str(ROOT / "scripts"))

import products  # of that folder

ROWS = products.rows(products.PAGE.read_text(encoding="utf-8"))


def number(cell: str) -> int:
    """The figure of glowc, without that of others."""
    return int(cell.partition(" ")[0].replace(",", ""))


def test_page_has_each_product() -> None:
    assert list(ROWS) == [product.title for product in products.products()]


@pytest.mark.parametrize("product", products.products(), ids=lambda product: product.title)
def test_product_takes_what_the_page_says(product: products.Product) -> None:
    chip, ram, _, constants, *_ = ROWS[product.title]
    try:
        with product.compiled() as compiled:
            report = compiled.report
    except FileNotFoundError as error:
        pytest.skip(f"not there: {error}")
    assert chip == product.chip
    assert report["arena_bytes"] <= number(ram), "make bench-products"
    assert report["weights_bytes"] <= number(constants), "make bench-products"
