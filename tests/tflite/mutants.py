"""Damaged TensorFlow Lite files: bits and bytes changed, words exchanged, ends cut off; by seeds."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path

from tests.fuzz.importing import BOARDS, Mutant, checked, tried
from tests.tflite.cases import MAKERS, make_case

Damage = Callable[[bytearray, random.Random], None]
_MOST_CHANGES = 2
_WORDS = (0, 1, 2, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFFFFF0, 4, 0x10000)


def flip_bits(data: bytearray, dice: random.Random) -> None:
    """Change single bits."""
    for _ in range(dice.choice((1, 1, 1, 2, 8))):
        data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)


def change_bytes(data: bytearray, dice: random.Random) -> None:
    """Change bytes in a row."""
    at = dice.randrange(len(data))
    for i in range(at, min(at + dice.randint(1, 16), len(data))):
        data[i] = dice.randrange(256)


def cut_end(data: bytearray, dice: random.Random) -> None:
    """Leave only the beginning."""
    del data[dice.randrange(8, len(data)) :]


def swap_words(data: bytearray, dice: random.Random) -> None:
    """Exchange two words, offsets among them."""
    words = len(data) // 4
    a, b = 4 * dice.randrange(words), 4 * dice.randrange(words)
    data[a : a + 4], data[b : b + 4] = data[b : b + 4], data[a : a + 4]


def set_word(data: bytearray, dice: random.Random) -> None:
    """Set a word to a number that hurts."""
    at = 4 * dice.randrange(len(data) // 4)
    data[at : at + 4] = dice.choice(_WORDS).to_bytes(4, "little")


def move_offset(data: bytearray, dice: random.Random) -> None:
    """Add a little to a word, so that an offset leads beside."""
    at = 4 * dice.randrange(len(data) // 4)
    value = int.from_bytes(data[at : at + 4], "little") + dice.choice((-8, -4, -2, -1, 1, 2, 4, 8, 64))
    data[at : at + 4] = (value & 0xFFFFFFFF).to_bytes(4, "little")


def repeat_part(data: bytearray, dice: random.Random) -> None:
    """Copy a part over another one."""
    size = dice.randint(4, 64)
    if len(data) > size:
        source, at = dice.randrange(len(data) - size), dice.randrange(len(data) - size)
        data[at : at + size] = data[source : source + size]


DAMAGES: Sequence[Damage] = (flip_bits, change_bytes, cut_end, swap_words, set_word, move_offset, repeat_part)


@cache
def originals() -> list[tuple[str, bytes]]:
    """Return what is damaged: models of one operator, a few of each."""
    return [(f"{code} {seed}", make_case(code, seed).model) for code in sorted(MAKERS) for seed in range(3)]


def damaged(data: bytes, seed: int) -> tuple[bytes, tuple[str, ...]]:
    """Return the damaged file of a seed, and what was done to it."""
    dice, changed, done = random.Random(seed), bytearray(data), []
    for _ in range(dice.randint(1, _MOST_CHANGES)):
        damage = dice.choice(DAMAGES)
        if len(changed) > 64:
            damage(changed, dice)
            done.append(damage.__name__)
    return bytes(changed), tuple(done)


def run_damaged(seeds: Sequence[int], work: Path) -> Iterator[Mutant]:
    """Yield what becomes of the damaged file of each seed: a bundle whose C compiles, a message, or something worse."""
    made, models = [], originals()
    for seed in seeds:
        name, data = models[(seed * 7919) % len(models)]
        changed, done = damaged(data, seed)
        mutant = Mutant(seed, name, done, BOARDS[seed % len(BOARDS)], "")
        made.append(tried(mutant, changed, work / f"m{seed}" / f"m{seed}.tflite"))
    yield from checked(made, work)
