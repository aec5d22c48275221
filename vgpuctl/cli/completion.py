"""`vgpuctl completion`: prints the script for a shell."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import typer

from vgpuctl import resources
from vgpuctl.cli.help import new_app
from vgpuctl.cli.show import write

app = new_app()


class Shell(str, Enum):
    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


_SCRIPTS = {Shell.BASH: "vgpuctl.bash", Shell.ZSH: "_vgpuctl", Shell.FISH: "vgpuctl.fish"}


@app.command()
def completion(shell: Annotated[Shell, typer.Argument(help="The shell")]) -> None:
    """Print the completion script for a shell.

    bash: source <(vgpuctl completion bash) in ~/.bashrc.
    zsh: vgpuctl completion zsh > "${fpath[1]}/_vgpuctl".
    fish: vgpuctl completion fish > ~/.config/fish/completions/vgpuctl.fish.
    """
    write(resources.text(f"completions/{_SCRIPTS[shell]}"))
