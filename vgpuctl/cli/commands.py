"""All commands, as a table; a command's module is imported only when it runs or its own help is asked for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Command:
    """name: on the command line. module: in vgpuctl.cli, with a Typer named `app`. about: the line in --help."""

    name: str
    module: str
    about: str
    panel: str


_LOOK, _CHANGE, _TOOL = "Look", "Set up and divide", "The tool itself"

COMMANDS = {
    command.name: command
    for command in (
        Command("doctor", "doctor", "What is wrong with this machine, this cluster, this pool?", _LOOK),
        Command("top", "top", "Who uses what right now?", _LOOK),
        Command("status", "status", "What is installed, does it run, is it as it was installed?", _LOOK),
        Command("history", "history", "Who changed what, and how to undo it?", _LOOK),
        Command("run", "run", "Try a limit here: a program under a memory and core limit", _LOOK),
        Command("bench", "bench", "Does the core limit keep its promise on my card?", _LOOK),
        Command("pod", "pod", "Is this pod or job spec right?", _LOOK),
        Command("install", "install", "Put the plugin, its library and configuration into the cluster", _CHANGE),
        Command("upgrade", "upgrade", "Bring it to this version or other options, node by node, and back", _CHANGE),
        Command("uninstall", "uninstall", "Take it out, and leave everything as it was before", _CHANGE),
        Command("config", "config", "Which configuration is right for my cards? Is this one right?", _CHANGE),
        Command("card", "card", "Take a card out of service, and bring it back", _CHANGE),
        Command("quota", "quota", "How much may each team use, and how much does it use?", _CHANGE),
        Command("completion", "completion", "Completion for bash, zsh and fish", _TOOL),
        Command("version", "version", "Versions of vgpuctl and of what it is connected to", _TOOL),
    )
}
