"""Memory: lifetimes and sizes in, arena offsets out; knows no ONNX and nothing else of glowc.

`schedule` chooses the order of the operators, `plan` gives every block its offset, `split` does so in
several memory regions, `check` proves the plan with code of its own, `render_text` draws it. Building the
lifetimes is left to the caller.
"""

from __future__ import annotations

from glowc.memory.checker import check
from glowc.memory.pictures import render_svg, render_text
from glowc.memory.planner import fits, plan
from glowc.memory.regions import split
from glowc.memory.schedule import Schedule, schedule
from glowc.memory.task import Task
from glowc.memory.types import Block, Lifetime, MemoryPlan, Overlap, RegionPlan, Room

__all__ = [
    "Block",
    "Lifetime",
    "MemoryPlan",
    "Overlap",
    "RegionPlan",
    "Room",
    "Schedule",
    "Task",
    "check",
    "fits",
    "plan",
    "render_svg",
    "render_text",
    "schedule",
    "split",
]
