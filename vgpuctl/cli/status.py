"""`vgpuctl status`."""

from __future__ import annotations

from dataclasses import replace

from vgpuctl.cli.help import new_app
from vgpuctl.cli.options import CONNECTION, OUTPUT, SOURCE, shared
from vgpuctl.cli.settings import Settings
from vgpuctl.cli.show import show
from vgpuctl.cli.sources import objects
from vgpuctl.model.problem import Exit
from vgpuctl.tasks.status import look, verdict

app = new_app()


@app.command()
@shared(CONNECTION, SOURCE, OUTPUT)
def status(settings: Settings) -> Exit | None:
    """What is installed, does it run everywhere, and is it still as it was installed?

    Versions, the rollout of the device plugin with the reason of each pod that does not come up, which library lies on
    which node, what the nodes registered, and what differs from what was installed. Exit code 1 when something is
    wrong, 3 when it could not be found out. Shows what is there when something else installed the plugin, too.
    """
    found = look(objects(replace(settings, namespace="", all_namespaces=False, selector="")))
    show(found, settings)
    return verdict(found)
