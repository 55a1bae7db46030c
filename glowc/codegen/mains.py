"""Programs around a bundle: the one that feeds it from files, and firmware."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from glowc.codegen.kernels import environment
from glowc.codegen.view import prefix_of


@dataclass(frozen=True, slots=True)
class Calls:
    """How a program calls a bundle; `inputs` and `outputs` are identifiers of tensors.

    `mode` says where the tensors are: "arena", "rows" (the input is pushed row by row) or "caller" (all in buffers of
    the caller, for the function `entry`). `golden`: there are test vectors. `blob_bytes` of constants are in an array
    NAME_blob.
    """

    name: str
    inputs: Sequence[str]
    outputs: Sequence[str]
    mode: str = "arena"
    entry: str = ""
    golden: bool = False
    identity: bytes = b""
    blob_bytes: int = 0


def render_main(calls: Calls, template: str = "main_run.c.j2") -> str:
    """Return the C program of a template for a bundle."""
    prefix = prefix_of(calls.name)

    def tensor(ident: str) -> dict[str, str]:
        return {"ident": ident, "macro": ident.upper(), "fn": f"{prefix}_{ident}"}

    model = {
        "name": calls.name, "prefix": prefix, "P": prefix.upper(), "mode": calls.mode,
        "entry": calls.entry or f"{prefix}_invoke", "golden": calls.golden, "identity": list(calls.identity),
        "blob_bytes": calls.blob_bytes,
        "inputs": [tensor(i) for i in calls.inputs], "outputs": [tensor(o) for o in calls.outputs],
    }  # fmt: skip
    return environment().get_template(template).render(m=model)
