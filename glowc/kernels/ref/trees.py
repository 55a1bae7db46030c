"""Forests: the plain walk through tables, and `code`, whose trees are printed as comparisons with constants.

Code takes about 2.5 times the flash of tables and a third of their instructions: it is for `--opt speed`.
Where each leaf is one vote of the same worth, votes are counted in the bits of a word or two, and `sums` are what
counts come to, added one by one as the definition adds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from glowc.kernels.base import PLAIN, UNFIT, KernelVariant, Prepared
from glowc.kernels.features import Stated
from glowc.program.ir import Instr, Plan
from glowc.program.kernel import Arrays

Tree: TypeAlias = "int | tuple[int, float, int, Tree, Tree]"
"""A leaf's number, or feature, threshold, whether NaN goes to the first child, and both children."""

_MOST_SPLITS, _DEEPEST = 20_000, 60  # compilers take 127 levels of blocks
_WORD = 32
_INLINED_SPLITS = 1000
_EITHER = 2  # of `nan`


@dataclass(frozen=True, slots=True, kw_only=True)
class CodePlan(Plan):
    """`trees` as they are printed; `sums` of a class's votes, from 0 to all, where votes are counted.

    The count of class k then lies from bit `fields[k]` on, in as many bits as `mask` has. `inlined` trees are part of
    one function: fewer instructions, but compilers spill registers between many of them.
    """

    trees: tuple[Tree, ...]
    sums: tuple[float, ...] = ()
    targets: tuple[int, ...] = ()
    fields: tuple[int, ...] = ()
    mask: int = 0
    inlined: bool = False

    @property
    def wide(self) -> bool:
        """Whether counts take two words."""
        return self.fields[-1:] >= (_WORD,)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads trees out of the tables of an instruction; shared splits come several times."""

    arrays: Arrays
    either: bool
    low: int

    def tree(self, at: int, base: int, depth: int, left: list[int]) -> Tree | None:
        """Return the tree below a split; None where it is too deep, or there are more splits than are left."""
        left[0] -= 1
        if depth > _DEEPEST or left[0] < 0:
            return None
        feature = int(self.arrays["feature"][at])
        children = []
        for step in self.arrays["child"][2 * at : 2 * at + 2].tolist():
            child = self.tree(at + step, base, depth + 1, left) if step > 0 else base - step
            if child is None:
                return None
            children.append(child)
        low = feature & 1 if self.either else self.low
        if children[0] == children[1]:
            return children[0]
        threshold = self.arrays["threshold"][at].item()
        return (feature >> self.either, threshold, low, children[0], children[1])


def prepare(constants: Arrays, instr: Instr) -> Prepared:
    """Print the trees; the tables that lead to leaves are no longer needed. Tables are for trees without a split."""
    arrays = {role: array.reshape(-1) for role, array in constants.items()}
    based, nan = instr.int_("based"), instr.int_("nan")
    tops = arrays["root"].reshape(-1, 1 + based).tolist()
    reader, left = _Reader(arrays, nan == _EITHER, nan), [_MOST_SPLITS]
    trees = []
    for top in tops:
        tree = reader.tree(top[0], top[1] if based else 0, 0, left)
        if tree is None:
            return UNFIT
        trees.append(tree)
    if all(isinstance(tree, int) for tree in trees):
        return UNFIT
    none = np.zeros(1, np.uint8)
    kept = {"root": none, "feature": none, "threshold": none, "child": none.view(np.int8)}
    plan = CodePlan(trees=tuple(trees), inlined=_MOST_SPLITS - left[0] <= _INLINED_SPLITS)
    return Prepared(kept, _counting(plan, arrays, instr))


def _counting(plan: CodePlan, arrays: Arrays, instr: Instr) -> CodePlan:
    """Return the plan that counts votes, where leaves are worth 0 or the same: `targets` of those worth 0 are -1."""
    value, trees, targets = arrays["value"], len(plan.trees), instr.int_("targets")
    worth, bits = np.unique(value[value != 0]), trees.bit_length()
    each = _WORD // bits
    if instr.kernel == "trees_rows" or instr.params["join"] != "+" or worth.size != 1 or targets > 2 * each:
        return plan
    target = arrays.get("target", np.zeros(value.size, np.uint8)).astype(np.int64)
    sums = np.add.accumulate(np.full(trees, worth[0], value.dtype), dtype=value.dtype)
    return replace(
        plan, sums=(0.0, *sums.tolist()), targets=tuple(np.where(value != 0, target, -1).tolist()),
        fields=tuple(_WORD * (k // each) + bits * (k % each) for k in range(targets)), mask=(1 << bits) - 1,
    )  # fmt: skip


_TABLES = replace(PLAIN, stated=Stated(macs=13, outputs=8))
_CODE = KernelVariant(
    "ref", form="code", rank=1, speed_only=True, prepare=prepare, template="trees_code",
    packs=frozenset(("root", "feature", "threshold", "child", "value")), stated=Stated(macs=4, outputs=8),
)  # fmt: skip

VARIANTS = dict.fromkeys(("trees_value", "trees_vote", "trees_rows"), (_TABLES, _CODE))
