"""The root command: its help lists every command without importing any of them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand

from vgpuctl.cli.commands import COMMANDS
from vgpuctl.cli.help import Group, new_app
from vgpuctl.cli.options import root_options


class _Commands(Group):
    """Lists commands from the table; loads a command's module only to run it."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        for command in COMMANDS.values():
            self.add_command(TyperCommand(name=command.name, help=command.about))

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.commands)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        if command is None:  # only while completing
            return name, command, rest
        module = import_module(f"vgpuctl.cli.{COMMANDS[command.name or ''].module}")
        loaded = typer.main.get_command(module.app)
        loaded.name = command.name
        return name, loaded, rest

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        panels = dict.fromkeys(command.panel for command in COMMANDS.values())
        for panel in panels:
            with formatter.section(panel):
                formatter.write_dl([(c.name, c.about) for c in COMMANDS.values() if c.panel == panel])


app = new_app(cls=_Commands, no_args_is_help=True)


@app.callback()
@root_options
def root() -> None:
    """Administer pools of shared NVIDIA GPUs on Kubernetes: check, configure, divide, watch."""
