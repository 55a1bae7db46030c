"""How `--help` looks: as wide as the terminal, arguments as one word, the command's own options first."""

from __future__ import annotations

import re
from typing import Any

import typer
from typer.core import TyperCommand

WIDEST = 120  # characters of a line
_TYPE = re.compile(r" <[^>]*>$")  # that typer prints after the word of an argument


class Command(TyperCommand):
    """A command whose arguments are words: MODEL..., not {MODEL}... and a type of Python."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the words after the command's name."""
        return [re.sub(r"[{}]", "", piece) for piece in super().collect_usage_pieces(ctx)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments and options."""
        for kind in ("argument", "option"):
            params = [param for param in self.get_params(ctx) if param.param_type_name == kind]
            records = [record for param in params if (record := param.get_help_record(ctx)) is not None]
            if records:
                with formatter.section(f"{kind.title()}s"):
                    formatter.write_dl([(_word(name, kind), text) for name, text in records])


def _word(name: str, kind: str) -> str:
    return _TYPE.sub("", name) if kind == "argument" else name


def use_own_help(app: typer.Typer) -> None:
    """Make all commands of a program, and those of its groups, print help this way."""
    for command in app.registered_commands:
        command.cls = Command
    for group in app.registered_groups:
        if group.typer_instance is not None:
            use_own_help(group.typer_instance)
