"""`vgpuctl config`: the pool's configuration, one module for each command or two."""

from vgpuctl.cli.config import explain, generate, validate
from vgpuctl.cli.config.base import app

__all__ = ["app", "explain", "generate", "validate"]
