"""Options that many commands share: connection, source and output, as records in one table.

They are accepted before and after the command. The value after the command wins, then the one before it, then the
environment (`VGPUCTL_…`), then the config file, then the default.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import typer

from vgpuctl.cli.main import ascii_marks
from vgpuctl.cli.settings import settings_from
from vgpuctl.model.problem import Exit, Problem

CONNECTION, SOURCE, OUTPUT = "Connection", "Source", "Output"


@dataclass(frozen=True)
class Shared:
    """One shared option. type: as Typer takes it; every value is optional, None means not given."""

    name: str
    flags: tuple[str, ...]
    type: Any
    help: str
    group: str
    metavar: str | None = None


SHARED = (
    Shared("kubeconfig", ("--kubeconfig",), str, "Path of the kubeconfig file", CONNECTION, "FILE"),
    Shared("context", ("--context",), str, "Context of the kubeconfig", CONNECTION, "NAME"),
    Shared("cluster", ("--cluster",), str, "Cluster of the kubeconfig", CONNECTION, "NAME"),
    Shared("user", ("--user",), str, "User of the kubeconfig", CONNECTION, "NAME"),
    Shared("as_user", ("--as",), str, "User to impersonate", CONNECTION, "NAME"),
    Shared("as_group", ("--as-group",), list[str], "Group to impersonate (repeatable)", CONNECTION, "NAME"),
    Shared("namespace", ("--namespace", "-n"), str, "Namespace", CONNECTION, "NAME"),
    Shared("all_namespaces", ("--all-namespaces", "-A"), bool, "All namespaces", CONNECTION),
    Shared("selector", ("--selector", "-l"), str, "Label selector", CONNECTION, "SELECTOR"),
    Shared("request_timeout", ("--request-timeout",), str, "How long to wait for a source [10s]", CONNECTION, "TIME"),
    Shared("bundle", ("--from",), str, "Read a bundle (directory or .tar.gz)", SOURCE, "BUNDLE"),
    Shared("demo", ("--demo",), bool, "Show a made-up pool", SOURCE),
    Shared("local", ("--local",), bool, "This machine only, without a cluster", SOURCE),
    Shared("root", ("--root",), str, "Read the host's files under this directory", SOURCE, "DIR"),
    Shared("output", ("--output", "-o"), str, "Form of the output", OUTPUT, "FORM"),
    Shared("ascii", ("--ascii",), bool, "ASCII marks and lines only", OUTPUT),
    Shared("fail_on", ("--fail-on",), Literal["error", "warn"], "What counts as a finding (exit 1)", OUTPUT),
)
_SETTINGS = "settings"


def shared(
    *groups: str, forms: tuple[str, ...] = ("table", "wide", "json", "yaml")
) -> Callable[[Callable[..., Exit | None]], Callable[..., None]]:
    """Gives a command the shared options of some groups; it receives them as its parameter `settings`.

    forms: the forms of output that the command knows, the first is the default. The command returns its exit code.
    """
    options = tuple(option for option in SHARED if option.group in groups)

    def wrap(function: Callable[..., Exit | None]) -> Callable[..., None]:
        @functools.wraps(function)
        def call(ctx: typer.Context, **values: Any) -> None:
            given = {option.name: values.pop(option.name) for option in options}
            settings = settings_from(ctx.obj or {}, given, forms)
            if OUTPUT in groups and settings.output not in ("", *forms):
                raise Problem(
                    f"-o {settings.output} is not a form that {ctx.command_path} knows",
                    remedy=f"use one of: {', '.join(forms)}",
                    exit_code=Exit.USAGE,
                )
            if settings.ascii:
                ascii_marks()
            code = function(settings=settings.with_form(forms[0]), **values)
            if code:
                raise typer.Exit(int(code))

        return _with_options(call, function, options, forms)

    return wrap


def root_options(function: Callable[[], None]) -> Callable[..., None]:
    """Gives the root command every shared option and keeps the values for the command that follows."""

    @functools.wraps(function)
    def call(ctx: typer.Context, **values: Any) -> None:
        ctx.obj = {option.name: values.pop(option.name) for option in SHARED}
        function(**values)

    return _with_options(call, function, SHARED, ())


def _with_options(
    call: Callable[..., None], function: Callable[..., Any], options: tuple[Shared, ...], forms: tuple[str, ...]
) -> Callable[..., None]:
    """Tells Typer, which reads signatures, of the shared options."""
    signature = inspect.signature(function, eval_str=True)
    own = [parameter for name, parameter in signature.parameters.items() if name != _SETTINGS]
    context = inspect.Parameter("ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    added = [
        inspect.Parameter(
            option.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=_annotation(option, forms),
        )
        for option in options
    ]
    keywords = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own]
    call.__signature__ = signature.replace(parameters=[context, *keywords, *added])  # type: ignore[attr-defined]
    call.__annotations__ = {p.name: p.annotation for p in [context, *keywords, *added]}
    return call


def _annotation(option: Shared, forms: tuple[str, ...]) -> Any:
    """The annotation that Typer reads. The forms that a command knows are choices of its -o."""
    choices = forms if option.name == "output" else ()
    kind: Any = Literal.__getitem__(choices) if choices else option.type
    metavar = None if choices else option.metavar
    info = typer.Option(*option.flags, help=option.help, metavar=metavar, rich_help_panel=option.group)
    return Annotated[kind | None, info]
