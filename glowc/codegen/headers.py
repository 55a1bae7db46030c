"""Which runtime headers include which others, so that a bundle has all that its kernels need."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

INCLUDED: Mapping[str, tuple[str, ...]] = {
    "glow_a32.h": ("glow_window_sums.h",),
    "glow_a32_lane.h": ("glow_a32.h", "glow_lane_rows.h"),
    "glow_a32_single.h": ("glow_a32.h", "glow_neon_single.h"),
    "glow_a64.h": ("glow_window_sums.h",),
    "glow_a64_lane.h": ("glow_a64.h", "glow_lane_rows.h"),
    "glow_a64_lane_q31.h": ("glow_a64_lane.h", "glow_a64_q31.h"),
    "glow_a64_q31.h": ("glow_a64.h",),
    "glow_a64_single.h": ("glow_a64.h", "glow_neon_single.h"),
    "glow_dsp_add.h": ("glow_dsp.h",),
    "glow_dsp_codes.h": ("glow_dsp_round.h", "glow_reach.h"),
    "glow_dsp_codes_q31.h": ("glow_dsp_codes.h", "glow_q31.h"),
    "glow_dsp_dw.h": ("glow_dsp.h",),
    "glow_dsp_dw_q31.h": ("glow_dsp_dw.h", "glow_dsp_q31.h"),
    "glow_dsp_dynamic.h": ("glow_dsp_quad.h",),
    "glow_dsp_fc.h": ("glow_dsp_gemm.h",),
    "glow_dsp_fc_paired.h": ("glow_dsp_fc.h",),
    "glow_dsp_fc_q31.h": ("glow_dsp_fc.h", "glow_dsp_gemm_q31.h"),
    "glow_dsp_gemm.h": ("glow_dsp.h",),
    "glow_dsp_gemm_q31.h": ("glow_dsp_gemm.h", "glow_dsp_q31.h"),
    "glow_dsp_integer.h": ("glow_dsp_round.h", "glow_reach.h"),
    "glow_dsp_paired.h": ("glow_dsp_gemm.h",),
    "glow_dsp_q31.h": ("glow_dsp.h", "glow_q31.h"),
    "glow_dsp_quad.h": ("glow_dsp.h",),
    "glow_dsp_quad_q31.h": ("glow_dsp_q31.h", "glow_dsp_quad.h"),
    "glow_dsp_round.h": ("glow_dsp.h",),
    "glow_dsp_shift.h": ("glow_dsp_quad.h", "glow_dsp_round.h"),
    "glow_dsp_single.h": ("glow_dsp_fc.h",),
    "glow_dsp_sixteen.h": ("glow_dsp_round.h", "glow_reach.h"),
    "glow_dsp_sixteen_q31.h": ("glow_dsp_shift.h", "glow_dsp_sixteen.h", "glow_q31.h"),
    "glow_dsp_small.h": ("glow_dsp.h",),
    "glow_dsp_small_q31.h": ("glow_dsp_q31.h", "glow_dsp_small.h"),
    "glow_dsp_winograd.h": ("glow_dsp.h",),
    "glow_fpu_binary.h": ("glow_fpu.h",),
    "glow_fpu_elementary.h": ("glow_elementary.h",),
    "glow_fpu_pool.h": ("glow_fpu.h", "glow_reach.h"),
    "glow_fpu_row.h": ("glow_fpu.h",),
    "glow_fpu_w8.h": ("glow_fpu.h",),
    "glow_m0.h": ("glow_thumb_base.h", "glow_thumb_plain.h", "glow_thumb.h", "glow_thumb_codes.h", "glow_thumb_pool.h"),
    "glow_m3.h": ("glow_thumb_base.h", "glow_thumb_plain.h", "glow_thumb.h", "glow_thumb_codes.h", "glow_thumb_pool.h"),
    "glow_mve_bilinear.h": ("glow_mve.h",),
    "glow_mve_dot.h": ("glow_mve.h",),
    "glow_mve_dot_q31.h": ("glow_mve_dot.h",),
    "glow_mve_dw.h": ("glow_mve.h",),
    "glow_mve_dw_q31.h": ("glow_mve_dot_q31.h", "glow_mve_dw.h"),
    "glow_mve_dynamic.h": ("glow_mve_f32.h", "glow_mve_matmul.h", "glow_mve_reals.h"),
    "glow_mve_elementwise.h": ("glow_mve.h", "glow_reach.h"),
    "glow_mve_elementary.h": ("glow_elementary.h", "glow_mve.h"),
    "glow_mve_f32.h": ("glow_mve_elementwise.h",),
    "glow_mve_gather.h": ("glow_mve_dot.h", "glow_mve_run.h"),
    "glow_mve_gather_q31.h": ("glow_mve_dot_q31.h", "glow_mve_gather.h"),
    "glow_mve_lines.h": ("glow_mve.h",),
    "glow_mve_matmul.h": ("glow_mve_elementwise.h",),
    "glow_mve_pool_q31.h": ("glow_mve_elementwise.h", "glow_q31.h"),
    "glow_mve_pool.h": ("glow_mve_elementwise.h", "glow_mve_reals.h"),
    "glow_mve_reals.h": ("glow_mve.h",),
    "glow_mve_run.h": ("glow_mve.h",),
    "glow_mve_single.h": ("glow_mve_dot.h", "glow_mve_zero.h"),
    "glow_mve_zero.h": ("glow_mve_gather.h",),
    "glow_neon_bilinear.h": ("glow_neon_codes.h",),
    "glow_neon_codes.h": ("glow_neon.h", "glow_reach.h"),
    "glow_neon_elementary.h": ("glow_elementary.h", "glow_neon_f32.h"),
    "glow_neon_integer.h": ("glow_reach.h",),
    "glow_neon_q31.h": ("glow_neon_codes.h", "glow_q31.h"),
    "glow_q15.h": ("glow_q31.h", "glow_q31_root.h"),
    "glow_q31_root.h": ("glow_q31.h",),
    "glow_thumb.h": ("glow_thumb_plain.h",),
    "glow_thumb_bilinear.h": ("glow_thumb_base.h",),
    "glow_thumb_codes.h": ("glow_thumb_base.h",),
    "glow_thumb_dw.h": ("glow_m3.h", "glow_m0.h"),
    "glow_thumb_move.h": ("glow_thumb_base.h",),
    "glow_thumb_plain.h": ("glow_thumb_base.h", "glow_thumb_rounds.h"),
    "glow_thumb_pool.h": ("glow_thumb_plain.h",),
    "glow_thumb_q31.h": ("glow_m3.h", "glow_m0.h", "glow_q31.h"),
    "glow_thumb_reals.h": ("glow_thumb_base.h",),
    "glow_thumb_wide.h": ("glow_m3.h", "glow_thumb.h"),
}
"""By header, those that it includes, in that order; but for those that are in every bundle."""


def with_included(headers: Iterable[str]) -> list[str]:
    """Return headers and those that they include, sorted."""
    wanted, found = list(headers), set[str]()
    while wanted:
        header = wanted.pop()
        if header not in found:
            found.add(header)
            wanted += INCLUDED.get(header, ())
    return sorted(found)
