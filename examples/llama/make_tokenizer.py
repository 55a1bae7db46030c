# SPDX-License-Identifier: MIT-0
"""Makes tokens.h, the tables of tokenizer.c, of a SentencePiece vocabulary: lines `piece<TAB>score` in order of tokens.

SentencePiece writes this file next to its model (`.vocab`). `trained` makes one of a text, for the example.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path

SPACE = "\u2581"  # what SentencePiece writes for a space
_BYTE = re.compile(r"<0x([0-9A-F]{2})>")
Vocabulary = Sequence[tuple[str, float]]


def read(path: Path) -> Vocabulary:
    """Return pieces and scores of a .vocab file."""
    lines = path.read_text(encoding="utf-8").split("\n")
    pairs = [line.rpartition("\t") for line in lines if "\t" in line]
    return [(piece, float(score)) for piece, _, score in pairs]


def trained(text: str, count: int) -> Vocabulary:
    """Return so many pieces of a text: bytes, characters, and the most frequent pairs joined one after the other."""
    pieces = ["<unk>", "<s>", "</s>", *(f"<0x{i:02X}>" for i in range(256))]
    words = Counter(tuple(SPACE + word) for word in text.split())
    characters = Counter(c for word, n in words.items() for c in word * n)
    pieces += [c for c, _ in characters.most_common((count - len(pieces)) // 3)]
    merges = 0
    while len(pieces) < count:
        pairs: Counter[tuple[str, str]] = Counter()
        for word, n in words.items():
            pairs.update(dict.fromkeys(pairwise(word), n))
        (left, right), _ = max(pairs.items(), key=lambda pair: (pair[1], pair[0]))
        words = Counter({tuple(_join(word, left, right)): n for word, n in words.items()})
        if left + right not in pieces:
            pieces.append(left + right)
            merges += 1
    ranks = {piece: -float(i) for i, piece in enumerate(pieces[len(pieces) - merges :])}
    return [(piece, ranks.get(piece, 0.0 if len(piece) > 1 else -1e6)) for piece in pieces]


def _join(word: Sequence[str], left: str, right: str) -> Iterable[str]:
    at = 0
    while at < len(word):
        both = tuple(word[at : at + 2]) == (left, right)
        yield left + right if both else word[at]
        at += 1 + both


def header(vocabulary: Vocabulary) -> str:
    """Return the text of tokens.h. ValueError for a vocabulary without the pieces of single bytes."""
    pieces = [piece for piece, _ in vocabulary]
    if "<0x00>" not in pieces:
        raise ValueError("the vocabulary has no pieces <0x00> ...: train it with byte_fallback")
    single = [_BYTE.fullmatch(piece) for piece in pieces]
    texts = [
        bytes([int(byte[1], 16)]) if byte else b"" if i < 3 else piece.replace(SPACE, " ").encode()
        for i, (piece, byte) in enumerate(zip(pieces, single, strict=True))
    ]
    found: dict[bytes, int] = {}
    for i, (text, byte) in enumerate(zip(texts, single, strict=True)):
        if text and not byte:
            found.setdefault(text, i)
    begins = [sum(map(len, texts[:i])) for i in range(len(texts) + 1)]
    order = [found[text] for text in sorted(found)]
    return "\n".join([
        "/* SPDX-License-Identifier: MIT-0 */", "#ifndef TOKENS_H", "#define TOKENS_H", "", "#include <stdint.h>", "",
        f"#define TOKENS_FIRST {pieces.index('<s>')}", f"#define TOKENS_BYTES {pieces.index('<0x00>')}",
        f"#define TOKENS_SORTED {len(order)}", f"#define TOKENS_LONGEST {max(map(len, texts))}", "",
        _table("uint8_t tokens_text", map(str, b"".join(texts))),
        _table("int32_t tokens_begin", map(str, begins)),
        _table("int32_t tokens_sorted", map(str, order)),
        _table("float tokens_score", (f"{score!r}f" for _, score in vocabulary)), "#endif", "",
    ])  # fmt: skip


def _table(declared: str, values: Iterable[str]) -> str:
    numbers = list(values)
    rows = [", ".join(numbers[i : i + 16]) for i in range(0, len(numbers), 16)]
    return "\n".join([f"static const {declared}[] = {{", *(f"    {row}," for row in rows), "};"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("vocabulary", type=Path, help="lines of piece<TAB>score")
    parser.add_argument("-o", type=Path, default=Path("tokens.h"))
    given = parser.parse_args()
    given.o.write_text(header(read(given.vocabulary)), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
