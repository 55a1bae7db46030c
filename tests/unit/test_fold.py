"""Literals folded in printed C: what goes, what stays, and that gcc computes the same before and after."""

from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path

import pytest

from glowc.codegen.fold import fold
from glowc.codegen.printed import indented, tidy
from tests.conftest import require_tool

HEAD = (
    "static void f(const int8_t *in, float *out, int32_t y, int32_t n, uint32_t u, size_t z, float v, const args_t *p)"
)


def function(body: str) -> str:
    return f"{HEAD} {{\n{body}}}\n"


def folded(body: str) -> str:
    """Return the body of a function, folded and indented; parameters that lost their use are not its matter here."""
    text = indented(fold(function(body), {"p->k": "i", "p->s": "f"}))
    assert text.startswith(f"{HEAD} {{\n")
    lines = text[len(HEAD) + 3 : -2].splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("  (void)"))


EXPRESSIONS = [
    ("y * 1 - 1", "y - 1"),
    ("y * 1", "y"),
    ("1 * y", "y"),
    ("y - 0", "y"),
    ("y + 0 * 24", "y"),
    ("0 + y + 0", "y"),
    ("y / 1", "y"),
    ("y % 1", "0"),
    ("0 * y", "0"),
    ("y << 0", "y"),
    ("y | 0", "y"),
    ("u * 1u", "u"),
    ("u + 0", "u"),
    ("z + 0u", "z"),
    ("16 / 2", "8"),
    ("-7 / 2", "-3"),
    ("-7 % 2", "-1"),
    ("(3 - 1) * 1 + 1", "3"),
    ("(4 * 64 + 15) / 16 * 16", "256"),
    ("y - (-128)", "y + 128"),
    ("y + (-128)", "y - 128"),
    ("-(-128)", "128"),
    ("(-128)", "-128"),
    ("g((-128), y)", "g(-128, y)"),
    ("g(y * 1, n + 0)", "g(y, n)"),
    ("(int8_t)((-1))", "(int8_t)(-1)"),
    ("0 != 0 ? y - 1 : n", "n"),
    ("1 != 0 ? y - 1 : n", "y - 1"),
    ("n * (0 != 0 ? y : 3 - 2)", "n"),
    ("1 == 1 && y > 0", "y > 0"),
    ("y > 0 && 1 == 2", "0"),
    ("y > 0 || 1 == 2", "y > 0"),
    ("2 == 2 || g(y)", "1"),
    ("!0 && !(y == 0)", "!(y == 0)"),
    ("(y - 0) % 32 * 32", "y % 32 * 32"),
    ("(y - 0 - n) / 1 + 1", "y - 0 - n + 1".replace(" - 0", "")),
    ("n - (y - 3) * 1", "n - (y - 3)"),
    ("in[y + 0 * 3]", "in[y]"),
    ("in[y * 1 + 2 * 3]", "in[y + 6]"),
    ("((int32_t)in[y] - (-5)) * ((int32_t)in[n] - 0)", "((int32_t)in[y] + 5) * (int32_t)in[n]"),
    ("p->k * 1 + 0", "p->k"),
    ("p->k - (3 - 3)", "p->k"),
    ("*(in + 0) + 1", "*in + 1"),
    ("4294967295u - 1u", "4294967294u"),
    ("w.part * 1", "w.part"),
]

UNTOUCHED = [
    "(size_t)0 + n",  # the cast makes the sum a size_t
    "u - 0 * z",  # so does this 0
    "y * 1u",  # unsigned
    "y + 0u",
    "1 * sizeof in[0 * 1]",
    "v + 0",  # -0.0f + 0 is 0.0f
    "v * 0",
    "v - (-3)",
    "p->s + 0",
    "g(y) + 0",  # of unknown type
    "g(y) * 0",  # with effects
    "y / 0",
    "2147483647 + 1",
    "-2147483647 - 2",
    "1u - 2u",
    "1 ? y : v",  # a float
    "1 ? g(y) : v",
    "0 ? v : y",
    "2 && y",  # 0 or 1, not y
    "g(y) && 0",
    "(y % 16) * 16",
    "(y + n) * 1.0f",
    "0x10 + 0x20",
    "y - 1 - n",
    "1 << 20",
    "STRINGS(y * 1)",
    '"1 * 1"[n]',
]


@pytest.mark.parametrize(("before", "after"), EXPRESSIONS)
def test_an_expression_is_folded(before: str, after: str) -> None:
    assert folded(f"  const int64_t r = {before};\n  out[r] = r;\n") == f"  const int64_t r = {after};\n  out[r] = r;\n"


@pytest.mark.parametrize("text", UNTOUCHED)
def test_an_expression_that_could_change_stays(text: str) -> None:
    assert folded(f"  out[0] = {text};\n") == f"  out[0] = {text};\n"


STATEMENTS = {
    "a block that never runs": ("  if (0 != 0) {\n    out[y] = v;\n  }\n", ""),
    "with the comment above it": ("  out[0] = v;\n  /* edge */\n  if (0 != 0) {\n    g();\n  }\n", "  out[0] = v;\n"),
    "and the one after it": (
        "  out[0] = v;\n  if (0 != 0) { /* edge */\n    g();\n  } /* end */\n",
        "  out[0] = v;\n",
    ),
    "a block that always runs": (
        "  if (1 == 1) {\n    out[y] = v;\n    g();\n  } else {\n    h();\n  }\n",
        "  out[y] = v;\n  g();\n",
    ),
    "only its else": ("  if (3 == 1) {\n    g();\n  } else {\n    h();\n  }\n", "  h();\n"),
    "an else if that never runs": (
        "  if (y > n) {\n    g();\n  } else if (1 == 3 && y < n) {\n    h();\n  } else {\n    i();\n  }\n",
        "  if (y > n) {\n    g();\n  } else {\n    i();\n  }\n",
    ),
    "the last else if": (
        "  if (y > n) {\n    g();\n  } else if (1 == 3) {\n    h();\n  }\n",
        "  if (y > n) {\n    g();\n  }\n",
    ),
    "an else if that always runs": (
        "  if (y > n) {\n    g();\n  } else if (3 == 3) {\n    h();\n  } else {\n    i();\n  }\n",
        "  if (y > n) {\n    g();\n  } else {\n    h();\n  }\n",
    ),
    "a chain of which a dead branch loops stays": (
        "  if (y > 0 && 1 == 1) {\n    g();\n  } else if (1 == 3) {\n    for (;;) {\n    }\n  } else {\n  }\n",
        "  if (y > 0) {\n    g();\n  } else if (1 == 3) {\n    for (;;) {\n    }\n  } else {\n  }\n",
    ),
    "a dead loop without another branch": ("  if (1 == 3) {\n    for (;;) {\n    }\n  }\n  g();\n", "  g();\n"),
    "a joined block's names": (
        "  if (1 == 1) {\n    const int32_t a = g();\n    h(a);\n  }\n",
        "  const int32_t a = g();\n  h(a);\n",
    ),
    "a name that another block has": (
        "  if (1 == 1) {\n    const int32_t a = g();\n    h(a);\n  }\n  for (int32_t a = 0; a < y; a++) {\n  }\n",
        "  {\n    const int32_t a = g();\n    h(a);\n  }\n  for (int32_t a = 0; a < y; a++) {\n  }\n",
    ),
    "a body without braces": ("  for (;;)\n    if (0 != 0)\n      g();\n", "  for (;;)\n    {}\n"),
    "loops that never run": (
        "  for (int32_t c = 16; c < 16; c++) {\n    g(c);\n  }\n  for (; 3 < 0;) {\n  }\n  while (0 > 1) {\n  }\n",
        "",
    ),
    "a loop whose bound is a number": (
        "  for (int32_t c = 0; c < 16; c++) {\n    g(c * 1);\n  }\n",
        "  for (int32_t c = 0; c < 16; c++) {\n    g(c);\n  }\n",
    ),
    "a loop that starts with an effect": ("  for (g(); 0 != 0;) {\n  }\n", "  for (g(); 0;) {\n  }\n"),
    "a head": (
        "  for (int32_t c = 0 * 3; c < 4 * 4 && 2 > 1; c += 1 * 2) {\n    g(c);\n  }\n",
        "  for (int32_t c = 0; c < 16; c += 2) {\n    g(c);\n  }\n",
    ),
    "a constant decides": (
        "  const int32_t rest = 16 % 4;\n  if (rest != 0) {\n    g(rest);\n  }\n  h(rest ? y : n);\n",
        "  h(n);\n",
    ),
    "a constant keeps its name": (
        "  const int32_t steps = 28 / 2;\n  g(steps * y);\n",
        "  const int32_t steps = 14;\n  g(steps * y);\n",
    ),
    "a variable is no constant": (
        "  int32_t rest = 16 % 4;\n  rest += y;\n  if (rest != 0) {\n    g();\n  }\n",
        "  int32_t rest = 0;\n  rest += y;\n  if (rest != 0) {\n    g();\n  }\n",
    ),
    "a name with two meanings": (
        "  for (int32_t k = 0; k < y; k++) {\n    const int32_t r = 0 * 1;\n    g(r);\n  }\n  const int32_t r = g();\n"
        "  if (r != 0) {\n    g();\n  }\n",
        "  for (int32_t k = 0; k < y; k++) {\n    const int32_t r = 0;\n    g(r);\n  }\n  const int32_t r = g();\n"
        "  if (r != 0) {\n    g();\n  }\n",
    ),
    "arrays and initializers": (
        "  int32_t t[4 * 2] = {0 * 1, (-3), y * 1};\n  s_t s = {.a = 1 * y, .b = {2 * 2}};\n  g(t, s);\n",
        "  int32_t t[8] = {0, -3, y};\n  s_t s = {.a = y, .b = {4}};\n  g(t, s);\n",
    ),
    "comments stay": (
        '  g(y * 1); /* y * 1 */\n  /* 0 != 0 ? a : b */\n  h("y * 1", 2 * 2);\n',
        '  g(y); /* y * 1 */\n  /* 0 != 0 ? a : b */\n  h("y * 1", 4);\n',
    ),
    "assembly stays": (
        '  __asm__ volatile("add %0, %0, #1 * 1\\n" : "+r"(y) : "r"(n * 1) : "memory");\n  g(y * 1);\n',
        '  __asm__ volatile("add %0, %0, #1 * 1\\n" : "+r"(y) : "r"(n * 1) : "memory");\n  g(y);\n',
    ),
    "preprocessor lines stay": (
        "#if 1 * 1 == 1\n  g(y * 1);\n#else\n  g(n * 1);\n#endif\n",
        "#if 1 * 1 == 1\n  g(y);\n#else\n  g(n);\n#endif\n",
    ),
    "a dead block with a preprocessor line": (
        "  if (0 != 0) {\n#if A\n    g(y);\n#endif\n  }\n",
        "  if (0 != 0) {\n#if A\n    g(y);\n#endif\n  }\n",
    ),
    "a variable without use": (
        "  const int32_t a = y + 1;\n  int32_t b = a * 2;\n  b += 3;\n  if (0 != 0) {\n    g(b);\n  }\n",
        "",
    ),
    "a variable that still has one": (
        "  int32_t b = y;\n  b += 3;\n  if (0 != 0) {\n    g(b);\n  }\n  h(b);\n",
        "  int32_t b = y;\n  b += 3;\n  h(b);\n",
    ),
    "another scope's variable": (
        "  for (;;) {\n    const int32_t a = y;\n    g(a);\n  }\n  const int32_t a = n;\n  h(0 != 0 ? a : 3);\n",
        "  for (;;) {\n    const int32_t a = y;\n    g(a);\n  }\n  h(3);\n",
    ),
    "a function that is not understood": (
        "  do {\n    g(y * 1);\n  } while (y > 0);\n",
        "  do {\n    g(y * 1);\n  } while (y > 0);\n",
    ),
    "a statement that is not understood": (
        "  auto x = y @@ 1 * 1;\n".replace("@@", "+") + "  g((struct s *)y, 2 * 2);\n",
        "  auto x = y + 1 * 1;\n  g((struct s *)y, 4);\n",
    ),
}


@pytest.mark.parametrize("name", STATEMENTS)
def test_statements(name: str) -> None:
    before, after = STATEMENTS[name]
    assert folded(before) == after


def test_what_lost_its_use_is_marked() -> None:
    text = "static void f(const int8_t *a, int8_t *b) {\n  const int32_t x = g();\n  b[0] = 0 != 0 ? a[x] : 3;\n}\n"
    for line in ("static void f(const int8_t *a, int8_t *b) {\n  (void)a;\n", "= g();\n(void)x;\n"):
        assert line in fold(text.replace("a[x] : 3", "(int32_t)a[x] : 3"))


def test_a_member_is_no_use_of_a_parameter_of_its_name() -> None:
    text = "static void f(const int8_t *a, t *b) {\n  b->a = 0 != 0 ? a[1] : 3;\n  q.a = 2;\n}\n"
    assert "{\n  (void)a;\n" in fold(text)


def test_a_function_of_assembly_stays_without_statements() -> None:
    lost = "static void f(const int8_t *q, int8_t *b) {\n  b[0] = 0 != 0 ? q[1] : 3;\n}\n"
    naked = 'static void g(GLOW_DSP_UNUSED const int8_t *q) {\n  __asm__ volatile("nop");\n}\n'
    assert naked in fold(lost + naked)


def test_text_without_candidates_is_the_same_object() -> None:
    text = function("  out[y] = v;\n")
    assert fold(text) is text


@pytest.mark.parametrize("body", ["  g(y * 1;\n", "  g(`y * 1`);\n", '  g("y * 1);\n', "  if (0 != 0 {\n  }\n"])
def test_broken_text_stays(body: str) -> None:
    assert fold(function(body)) == function(body)


def test_blocks_are_indented_and_continuations_move_along() -> None:
    before = """static void f(int32_t a) {
for (;;) {
    g(a,
      a);
        }
#if A
  __asm__(
"{"
);
#endif



/* x
   y */
}
"""
    after = """static void f(int32_t a) {
  for (;;) {
    g(a,
      a);
  }
#if A
  __asm__(
      "{"
      );
#endif

  /* x
     y */
}
"""
    assert indented(before) == after


def test_a_long_signature_is_wrapped() -> None:
    names = [f"const int8_t *restrict operand_{i}" for i in range(6)]
    lines = tidy(f"static void f({', '.join(names)}) {{\n}}\n").splitlines()
    assert max(map(len, lines)) <= 120
    assert " ".join(line.strip() for line in lines[:-1]) == f"static void f({', '.join(names)}) {{"


NAMES = {"a": "int32_t", "b": "int32_t", "c": "int8_t", "u": "uint32_t", "z": "size_t", "l": "int64_t", "f": "float"}
PARAMETERS = ", ".join(f"{kind} {name}" for name, kind in NAMES.items())


def expression(choose: random.Random, depth: int) -> str:
    """Return a random expression of which no part overflows or divides by a variable."""
    if depth == 0 or choose.random() < 0.15:
        return choose.choice([*NAMES, "0", "1", "2", "3", "(-1)", "(-128)", "0u", "1u", "7", "16"])
    a, b = expression(choose, depth - 1), expression(choose, depth - 1)
    kind = choose.random()
    if kind < 0.35:
        return f"({a}) {choose.choice('+-')} ({b})" if choose.random() < 0.5 else f"{a} {choose.choice('+-')} {b}"
    if kind < 0.5:
        return f"({a}) * {choose.choice(['0', '1', '1u', '2'])}"
    if kind < 0.6:
        return f"{choose.choice(['0', '1', '2'])} * ({a})"
    if kind < 0.7:
        return f"(int32_t)({a}) {choose.choice(['/', '%'])} {choose.choice(['1', '2', '(-3)'])}"
    if kind < 0.8:
        return f"(({a}) {choose.choice(['==', '!=', '<', '>', '<=', '>='])} ({b}))"
    if kind < 0.9:
        return f"(({a}) > 0 {choose.choice(['&&', '||'])} {choose.choice(['0 == 0', '1 != 1', 'a > b', '!(a == b)'])})"
    return f"({choose.choice(['0 != 0', '1 == 1', '3 > 4', 'a > b'])} ? {a} : {b})"


def test_gcc_computes_the_same_before_and_after(tmp_path: Path) -> None:
    """800 expressions, each with its value and its size (which shows a type that changed)."""
    require_tool("gcc")
    choose = random.Random(7)
    texts = [expression(choose, 4) for _ in range(800)]
    changed = 0
    lines = ["#include <stdint.h>", "#include <stdio.h>", "#include <stddef.h>"]
    for i, text in enumerate(texts):
        define = f"static double e{i}({PARAMETERS}) {{\n  return (double)({text});\n}}\n"
        after = fold(define)
        changed += after != define
        lines += [define, after.replace(f" e{i}(", f" r{i}(")]
    for i, values in enumerate([(3, -5, -7, 9, 4, 11, -0.0), (0, 2, 127, 4294967290, 0, -1, 1.5)]):
        arguments = ", ".join(f"({kind})({value})" for kind, value in zip(NAMES.values(), values, strict=True))
        calls = "\n".join(f'  if (e{k}({arguments}) != r{k}({arguments})) printf("{k}\\n");' for k in range(len(texts)))
        lines.append(f"static void t{i}(void) {{\n{calls}\n}}")
    source = tmp_path / "t.c"
    source.write_text("\n".join([*lines, "int main(void) {\n  t0();\n  t1();\n  return 0;\n}\n"]))
    gcc = shutil.which("gcc") or "gcc"
    flags = ["-std=c11", "-w", "-O0", "-fwrapv", "-o", str(tmp_path / "t")]
    subprocess.run([gcc, *flags, str(source)], check=True)
    wrong = subprocess.run([str(tmp_path / "t")], capture_output=True, text=True, check=True).stdout.split()
    assert [texts[int(k)] for k in wrong] == []
    assert changed > 500


@pytest.mark.parametrize("text", [
    "void f(volatile int32_t *reg, int32_t *out) {\n  const int32_t ack = reg[0] * 0;\n  out[0] = ack + 1 * 2;\n}\n",
    "void f(const volatile uint32_t *status) {\n  while (*status & 0) {\n  }\n}\n",
    "#define NOW (*(volatile uint32_t *)0x40000000u)\nvoid f(int32_t *out) {\n  out[0] = (int32_t)NOW * 0;\n}\n",
])  # fmt: skip
def test_reads_of_a_device_register_stay(text: str) -> None:
    assert tidy(text) == text


def test_volatile_assembly_does_not_keep_the_rest_from_folding() -> None:
    assert "out[0] = 2;" in tidy('void f(int32_t *out) {\n  __asm__ volatile("nop");\n  out[0] = 1 * 2;\n}\n')
