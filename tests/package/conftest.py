"""The checkout's copy and the wheel's environment, once for all tests of this folder."""

from __future__ import annotations

import pytest

from tests.package.installs import Checkout, Install, copied_checkout, installed


@pytest.fixture(scope="session")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    return copied_checkout(tmp_path_factory.mktemp("package"))


@pytest.fixture(scope="session")
def wheel(checkout: Checkout, tmp_path_factory: pytest.TempPathFactory) -> Install:
    return installed("wheel", checkout, tmp_path_factory.mktemp("wheel"))
