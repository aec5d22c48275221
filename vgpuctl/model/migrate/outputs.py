"""What the commands about a new factor print."""

from __future__ import annotations

from vgpuctl.model.migrate.text import Left, Rewritten
from vgpuctl.model.migrate.use import Use
from vgpuctl.model.output import Output


class FactorChange(Output, frozen=True, kw_only=True):
    """What a new factor makes of what is in the cluster. before and after: MiB per unit."""

    before: int
    after: int
    uses: list[Use] = []

    @property
    def open(self) -> list[Use]:
        """What nobody has named yet."""
        return [use for use in self.uses if not use.accepted]


class Migration(Output, frozen=True, kw_only=True):
    """What `config migrate` makes of files. before and after: MiB per unit. files: that change, or were written.
    written: they were. left: what must be looked at by hand. steps: how the pool is brought over, in order. diff: the
    change of all files as `diff -U0` writes it."""

    before: int
    after: int
    files: list[str] = []
    places: list[Rewritten] = []
    left: list[Left] = []
    steps: list[str] = []
    written: bool = False
    notes: list[str] = []
    diff: str = ""
