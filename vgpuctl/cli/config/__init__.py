"""`vgpuctl config`: the pool's configuration, one module for each command or two."""

from vgpuctl.cli.config import apply, explain, generate, migrate, validate
from vgpuctl.cli.config.base import app

__all__ = ["app", "apply", "explain", "generate", "migrate", "validate"]
