"""Help as plain text, its options in sections: the command's own first, then those that many commands share."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

_OWN, _ARGUMENTS = "Options", "Arguments"


def _write_sections(command: Any, context: Any, formatter: Any) -> None:
    sections: dict[str, list[tuple[str, str]]] = {_ARGUMENTS: [], _OWN: []}
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None:
            argument = parameter.param_type_name == "argument"
            title = _ARGUMENTS if argument else getattr(parameter, "rich_help_panel", None) or _OWN
            sections.setdefault(title, []).append(record)
    for title, records in sections.items():
        if records:
            with formatter.section(title):
                formatter.write_dl(records)


class Command(TyperCommand):
    """A command whose help has sections."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        _write_sections(self, ctx, formatter)


class Group(TyperGroup):
    """A group of commands whose help has sections, and the whole first paragraph of each command."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        _write_sections(self, ctx, formatter)
        self.format_commands(ctx, formatter)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, _about(command)) for name, command in self.commands.items()])


def _about(command: Any) -> str:
    return " ".join((command.help or "").split("\n\n")[0].split())


class App(typer.Typer):
    """A Typer whose commands have sections in their help."""

    def command(self, *arguments: Any, **settings: Any) -> Any:
        settings.setdefault("cls", Command)
        return super().command(*arguments, **settings)


def new_app(**settings: Any) -> typer.Typer:
    """A Typer as every command wants it: plain help (quick, right in pipes), no completion of its own."""
    settings.setdefault("context_settings", {"help_option_names": ["-h", "--help"]})
    settings.setdefault("cls", Group)
    return App(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None, **settings)
