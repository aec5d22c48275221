"""`vgpuctl version`."""

from __future__ import annotations

import vgpuctl
from vgpuctl.cli.help import new_app
from vgpuctl.cli.options import OUTPUT, shared
from vgpuctl.cli.settings import Settings
from vgpuctl.cli.show import show
from vgpuctl.model.problem import Exit
from vgpuctl.model.version import Version

app = new_app()


@app.command()
@shared(OUTPUT, forms=("table", "json", "yaml"))
def version(settings: Settings) -> Exit | None:
    """The version of vgpuctl."""
    show(Version(version=vgpuctl.__version__), settings)
    return None
