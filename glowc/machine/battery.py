"""How long a battery lasts that feeds a chip: so many inferences an hour, asleep for the rest of the time."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from glowc.compiler.report import BenchReport
from glowc.errors import InputError

_BATTERY = re.compile(r"\s*(\d+(?:\.\d+)?)\s*mAh\s*,\s*(\d+(?:\.\d+)?)\s*V\s*", re.IGNORECASE)
_HOUR_MS = 3_600_000
_DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class Duty:
    """What feeds a chip, in milliampere-hours and volts, and what it does: inferences an hour, microamperes asleep."""

    capacity_mah: float
    volts: float
    per_hour: float
    sleep_ua: float


def parse_duty(battery: str, per_hour: float | None, sleep_ua: float) -> Duty | None:
    """Return a duty from `220mAh,3V`, None without inferences an hour. Raises InputError where a value is wrong."""
    if per_hour is None:
        return None
    match = _BATTERY.fullmatch(battery)
    if match is None or not float(match[1]) or not float(match[2]):
        raise InputError(f"--battery {battery}: no capacity and voltage", hint="--battery 220mAh,3V")
    for option, value, least in (("--per-hour", per_hour, 1e-6), ("--sleep-ua", sleep_ua, 0)):
        if not least <= value < math.inf:
            raise InputError(f"{option} {value:g}: no such number", hint="--per-hour 60 --sleep-ua 5")
    return Duty(float(match[1]), float(match[2]), per_hour, sleep_ua)


def add_battery(report: BenchReport, duty: Duty | None) -> str:
    """Add the days that a battery lasts to a report; returns why there are none.

    Neither a regulator, the battery's own losses nor other parts of the board count. Raises InputError where the
    inferences take more than the time there is.
    """
    if duty is None:
        return ""
    if "uj" not in report:
        why = report["chip"]["energy"]["source"] if "chip" in report else "no cycles of a chip were counted: --chip"
        return f"no days of a battery: {why}"
    if report["ms"] * duty.per_hour > _HOUR_MS:
        most = int(_HOUR_MS / report["ms"])
        raise InputError(
            f"--per-hour {duty.per_hour:,g}: an inference takes {report['ms']:,.3f} ms",
            hint=f"an hour has time for {most:,} inferences",
        )
    joules = duty.capacity_mah * 3.6 * duty.volts
    asleep = 1 - report["ms"] * duty.per_hour / _HOUR_MS
    microwatts = report["uj"] * duty.per_hour / 3600 + asleep * duty.sleep_ua * duty.volts
    report["battery"] = {
        "capacity_mah": duty.capacity_mah, "volts": duty.volts, "per_hour": duty.per_hour, "sleep_ua": duty.sleep_ua,
        "days": round(joules / (microwatts * 1e-6) / _DAY_S, 1),
    }  # fmt: skip
    return ""
