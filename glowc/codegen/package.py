"""What a package says of its maker and where it is for: given by options, kept where somebody wrote it by hand.

The descriptions of Arduino, PlatformIO, ESP-IDF and CMSIS packs are edited before they are published; compiling
again leaves those values alone. What glowc itself writes there is known by its form.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping

from glowc.errors import InputError

KEYS = ("author", "maintainer", "version", "url", "architectures")
_ARDUINO = {
    "cortex-m0": "samd,mbed_rp2040,rp2040,stm32", "cortex-m0plus": "samd,mbed_rp2040,rp2040,stm32",
    "cortex-m3": "sam,stm32", "cortex-m4": "mbed,mbed_nano,nrf52,renesas_uno,samd,stm32,zephyr",
    "cortex-m7": "avr,mbed_giga,mbed_nicla,mbed_opta,mbed_portenta,stm32,zephyr",  # avr: Teensy's package has that name
    "cortex-m33": "renesas_portenta,rp2040,silabs,stm32,zephyr", "cortex-m55": "zephyr",
}  # fmt: skip
_PLATFORMIO = {
    "cortex-m0": "atmelsam,nordicnrf51,raspberrypi,ststm32", "cortex-m0plus": "atmelsam,raspberrypi,ststm32",
    "cortex-m3": "atmelsam,nxplpc,ststm32", "cortex-m4": "atmelsam,nordicnrf52,renesas-ra,ststm32",
    "cortex-m7": "atmelsam,ststm32,teensy", "cortex-m33": "nordicnrf52,raspberrypi,renesas-ra,siliconlabsefm32,ststm32",
}  # fmt: skip
_LISTS = {*_ARDUINO.values(), *_PLATFORMIO.values(), "*"}


def package_fields(given: Mapping[str, str], form: str, cpu: str, release: str, portable: bool) -> dict[str, str]:
    """Return what a package says of itself; `portable`: its C is for every core. Raises InputError."""
    if wrong := [key for key in given if key not in KEYS]:
        raise InputError(f"--package {wrong[0]}: no such field", hint=f"fields: {', '.join(KEYS)}")
    if not re.fullmatch(r"\d+\.\d+\.\d+", given.get("version", release)):
        raise InputError(
            f"--package version={given['version']}: three numbers with dots", hint="--package version=1.2.0"
        )
    if bad := [f"{key}={value}" for key, value in given.items() if not _plain(key, value)]:
        raise InputError(f"--package {bad[0]}: quotes, angle brackets, & and backslashes have a meaning in these files",
                         hint="--package 'maintainer=Ada <ada@example.org>'")  # fmt: skip
    known = _PLATFORMIO if form == "platformio" else _ARDUINO
    core = re.sub(r"-soft$", "", cpu)
    maker = given.get("author", "glowc")
    fields = {"author": maker, "maintainer": f"{maker} <nobody@example.com>", "version": release, "url": "",
              "architectures": "*" if portable else known.get(core, "*")}  # fmt: skip
    fields |= given
    several = fields["architectures"].split(",")
    return {**fields, "platforms": json.dumps(several if len(several) > 1 else several[0])}


def _plain(key: str, value: str) -> bool:
    """Say whether a value is a line without characters that mean something where it is written."""
    return value.isprintable() and not {*value} & {*('"\\' if key == "maintainer" else '"<>&\\')}


_Mine = Callable[[str, str], bool]
_REST: _Mine = lambda value, _: not re.search(r"^The neural network .* as C, compiled by glowc", value)  # noqa: E731
_MINE: Mapping[str, _Mine] = {
    "author": lambda value, _: value != "glowc",
    "vendor": lambda value, _: value != "glowc",
    "maintainer": lambda value, _: not value.endswith("<nobody@example.com>"),
    "url": lambda value, _: not value.startswith("https://example.com/"),
    "version": lambda value, release: value != release,
    "architectures": lambda value, _: value not in _LISTS,
    "platforms": lambda value, _: value not in _LISTS,
    "sentence": _REST,
    "description": _REST,
    "category": lambda value, _: value != "Data Processing",
    "license": lambda value, _: value.strip('"') != "MIT-0",
}
"""By field: whether its value, in a file of a release of glowc, is somebody's own."""
_LINES = {
    "library.properties": ("author", "maintainer", "version", "url", "architectures", "sentence", "category"),
    "library.json": ("version", "platforms", "license", "description"),
    "idf_component.yml": ("version", "description", "license", "url"),
    ".pdsc": ("vendor", "url", "version", "description"),
}
_OPTIONS = {"platforms": "architectures", "authors": "author", "homepage": "url"}  # PlatformIO's names
_FORMS = {
    "library.properties": r"(?m)^{}=(.*)$",
    "idf_component.yml": r'(?m)^{}: "?(.*?)"?$', ".pdsc": r'<{0}>(.*?)</{0}>|(?:release |C){0}="(.*?)"',
}  # fmt: skip


def kept(name: str, new: str, old: str, release: str, given: Mapping[str, str]) -> str:
    """Return a file as it is written again: with the values and lines that somebody wrote into the `old` one.

    `release` is the version of glowc that wrote that, `given` are fields of options, which count more.
    """
    kind = next((kind for kind in _LINES if name.endswith(kind)), None)
    if kind is None or new == old:
        return new
    if kind == "library.json":
        return _kept_json(new, old, release, given)
    for key in _LINES[kind]:
        pattern = re.compile(_FORMS[kind].format(key))
        value = next(_groups(pattern, old), None)
        if key not in given and value is not None and _MINE[key](value, release):
            new = pattern.sub(lambda m, value=value: _with(m, value), new)  # type: ignore[misc]
    return _with_lines(new, old) if kind == "library.properties" else new


def _kept_json(new: str, old: str, release: str, given: Mapping[str, str]) -> str:
    """Return a description in JSON with the values and the keys of the old one that are somebody's."""
    try:
        fields, before = dict(json.loads(new)), dict(json.loads(old))
    except (ValueError, TypeError):
        return new
    own = {key: value for key, value in before.items() if key not in fields or _is_own(key, value, release)}
    own = {key: value for key, value in own.items() if _OPTIONS.get(key, key) not in given}
    return json.dumps({**fields, **own}, indent=2) + "\n" if own else new


def _is_own(key: str, value: object, release: str) -> bool:
    text = ",".join(value) if isinstance(value, list) else str(value)
    return key in _LINES["library.json"] and _MINE[key](text, release)


def _groups(pattern: re.Pattern[str], text: str) -> Iterator[str]:
    for found in pattern.finditer(text):
        yield next(group for group in found.groups() if group is not None)


def _with(found: re.Match[str], value: str) -> str:
    """Return the text of a match with another value in its group."""
    number = found.lastindex or 1
    begin, end = (place - found.start() for place in found.span(number))
    return found[0][:begin] + value + found[0][end:]


def _with_lines(new: str, old: str) -> str:
    """Return lines of KEY=VALUE with those whose keys only the old ones have."""
    known = {line.partition("=")[0] for line in new.splitlines()}
    extra = [line for line in old.splitlines() if "=" in line and line.partition("=")[0] not in known]
    return new + "".join(f"{line}\n" for line in extra)
