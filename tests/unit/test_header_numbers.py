"""Numbers of runtime_c as Python reads them: from enums and from macros that assembly prints, else an error."""

from __future__ import annotations

import pytest

from glowc.errors import InternalError
from glowc.kernels.common.header_numbers import header_number


@pytest.mark.parametrize(
    ("header", "name", "value"),
    [
        ("glow_mve_dot.h", "GLOW_MVE_SEGMENTS", 7),  # alone in its enum
        ("glow_mve_run.h", "GLOW_MVE_RUN_MOST", 48),  # after another one
        ("glow_mve_dot.h", "GLOW_MVE_STEP_BYTES", 16),  # a macro
        ("glow_mve_dot.h", "GLOW_MVE_FEW", 5),  # with a comment after it
    ],
)
def test_number_is_that_of_the_header(header: str, name: str, value: int) -> None:
    assert header_number(header, name) == value


def test_number_that_no_header_has_is_a_bug_of_glowc() -> None:
    with pytest.raises(InternalError, match=r"glow_mve_dot\.h of runtime_c has no number GLOW_MVE_NOTHING"):
        header_number("glow_mve_dot.h", "GLOW_MVE_NOTHING")


def test_expressions_and_hexadecimal_bits_are_no_numbers() -> None:
    for header, name in (("glow_mve_dot.h", "GLOW_MVE_NEXT"), ("glow_thumb_base.h", "GLOW_THUMB_LEAST")):
        with pytest.raises(InternalError):
            header_number(header, name)
