"""Gates of LSTM and GRU layers of codes on A64: of one cell of an LSTM, of two of a GRU at a time.

Of a GRU that resets first four gates at a time, as of an LSTM: (update, reset) of two cells, then new of four. The
stream has for each of these, first for the inputs and then for the state: per 16 codes 16 weights of each gate, then
those of the codes that are left; then biases and scales. An LSTM has (input, output, forget, cell) of the inputs, the
same of the state. Of a GRU's two cells there are (update, reset, new) of both; biases and scales are (update, reset)
of both of the inputs, the same of the state, and new of the inputs and of the state of both. No weight is -128, so
that two products fit int16. Codes are whole blocks, zeros at the end: what is read beside the weights of those that
are left is in the stream, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from glowc.asm.insn import Insn
from glowc.kernels.common.assembly import all_ins
from glowc.kernels.simd.a64_step import Insns, added, made, operand, printed, vector

Steps = tuple[int, int, int, int]
_FROM, _STREAM, _GATES = operand("from"), operand("stream"), operand("gates")
_PRODUCTS = (28, 29, 30, 31, 1, 8)


def gates(count: int, own: Steps, past: Steps) -> Iterator[str]:
    """Yield the assembly of all cells, of so many gates at a time: four, or six."""
    yield from all_ins("5: mov %[from], %[codes]")
    yield from _sums("1", range(16, 16 + count), *own)
    yield from _sums("2", range(22, 22 + count), *past)
    yield from printed(_end(count))
    yield from all_ins("subs %w[count], %w[count], #1", "b.ne 5b")


def _sums(label: str, to: Sequence[int], whole: int, blocks: int, times: int, more: int) -> Iterator[str]:
    """Sums over inputs, or the state: a `whole` block, so many blocks so many `times`, then `more` codes, if any."""
    yield from printed(_block(to, 0 if whole else more, "saddlp"))
    if times > 1:
        yield from all_ins(f"mov %w[times], #{times}", f"{label}:")
    if times:
        yield from printed(insn for _ in range(blocks) for insn in _block(to, 0, "sadalp"))
    if times > 1:
        yield from all_ins("subs %w[times], %w[times], #1", f"b.ne {label}b")
    if whole and more:
        yield from printed(_block(to, more, "sadalp"))


def _block(to: Sequence[int], more: int, op: str) -> Insns:
    """Products of 16 codes, or the last ones, step by step of all gates, so that none waits for its own result."""
    weights = range(2, 2 + len(to))
    yield Insn("ldr_q_moving", (vector(0), _FROM), (_FROM,), (16,), "codes")
    yield from (Insn("ldur_q", (vector(w),), (_STREAM,), (more * k,), "stream") for k, w in enumerate(weights) if more)
    yield from () if more else _pairs_loaded(len(to))
    yield Insn("add", (_STREAM,), (_STREAM,), ((more or 16) * len(to),))
    products = tuple(zip(_PRODUCTS, weights, to, strict=False))
    yield from (made("smull", product, w, 0) for product, w, _ in products)
    yield from (added("smlal2", product, w, 0) for product, w, _ in products if not 0 < more <= 8)
    for product, _, total in products:
        yield made(op, total, product) if op == "saddlp" else added(op, total, product)


def _pairs_loaded(count: int) -> Insns:
    for k in range(0, count, 2):
        yield Insn("ldp_q", (vector(2 + k), vector(3 + k)), (_STREAM,), (16 * k,), "stream")


def _end(count: int) -> Insns:
    yield from _pairs_loaded(count)
    yield Insn("add", (_STREAM,), (_STREAM,), (16 * count,))
    a, b, c, d = (16, 17, 18, 19) if count == 4 else (16, 17, 19, 20)
    pairs = ((a, b), (c, d), (a + 6, b + 6), (c + 6, d + 6), (a, c), (a + 6, c + 6))
    yield from (made("addp", to, to, other) for to, other in pairs)
    news = () if count == 4 else ((18, 24), (21, 27))
    yield from (made("addp", to, to, other) for to, other in news)
    yield from (made("add_s32", 16, 16, 2), made("add_s32", 22, 22, 3))
    yield from (made("addp", 18, 18, 21) for _ in news[:1])
    yield from (made("scvtf", 16, 16), made("scvtf", 22, 22))
    yield from (made("add_s32", 18, 18, 4) for _ in news[:1])
    scale = 4 if count == 4 else 5
    yield from (made("fmul", 16, 16, scale), made("fmul", 22, 22, scale + 1))
    yield from (insn for _ in news[:1] for insn in (made("scvtf", 18, 18), made("fmul", 18, 18, 7)))
    yield from (made("fadd", 16, 16, 22), made("fcvtns", 16, 16), made("sqxtn_s32", 16, 16))
    if count == 6:
        yield from (made("fcvtns", 18, 18), made("sqxtn_s32", 18, 18), made("zip1_s32", 16, 16, 18))
    yield Insn(
        "str_d_moving" if count == 4 else "str_q_moving", (_GATES,), (vector(16), _GATES), (8 if count == 4 else 16,)
    )
