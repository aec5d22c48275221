"""What the commands of `vgpuctl config` share: the app that they belong to, the kinds of configuration."""

from __future__ import annotations

from enum import Enum

from vgpuctl.cli.help import new_app

app = new_app(no_args_is_help=True)


class KindName(str, Enum):
    """The kinds of configuration, as `--kind` and `schema` name them."""

    DEVICE = "device-config"
    NODE = "node-config"
    SCHEDULER = "scheduler"


@app.callback()
def config() -> None:
    """Which configuration is right for my cards? Is this one right?"""
