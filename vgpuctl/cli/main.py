"""The entry point: runs the command line and turns what it raises into lines on stderr and an exit code."""

from __future__ import annotations

import os
import sys
import time
import traceback
from typing import NoReturn, TextIO

from vgpuctl.model.problem import Exit, Problem
from vgpuctl.model.reading import Missing

_marks: dict[int, str] = {}
"""Our own marks that stderr shows otherwise."""


def main() -> NoReturn:
    """Runs `vgpuctl` with the arguments of the process and exits."""
    _standard_streams()
    _marks.clear()
    try:
        from vgpuctl.cli.app import app

        app(prog_name="vgpuctl")
        code: int = Exit.FINE
    except SystemExit as done:
        code = done.code if isinstance(done.code, int) else Exit.FINE if done.code is None else Exit.USAGE
    except Problem as problem:
        complain(problem)
        code = problem.exit_code
    except Missing as missing:
        complain(Problem(missing.reason, f"source: {missing.source}" if missing.source else ""))
        code = Exit.UNKNOWN
    except KeyboardInterrupt:
        code = Exit.INTERRUPTED
    except Exception as error:
        code = Exit.UNKNOWN if _unwritten() else _crash(error)
    if _unwritten():
        code = Exit.UNKNOWN
    if code == Exit.INTERRUPTED:
        os._exit(code)  # without waiting for threads that wait for a silent source
    sys.exit(code)


def complain(problem: Problem) -> None:
    """Writes a problem's lines to stderr, cleaned."""
    from vgpuctl.render.text import clean

    for number, line in enumerate(problem.lines()):
        tell(clean(line if number else f"error: {line}"))


def ascii_marks() -> None:
    """From now on stderr shows our marks in ASCII."""
    from vgpuctl.render.grid import ASCII_MARKS

    _marks.update(ASCII_MARKS)


def tell(line: str) -> None:
    """One line on stderr. A stderr that takes nothing (a full disk) is no reason to fail."""
    try:
        print(line.translate(_marks), file=sys.stderr, flush=True)  # noqa: T201
    except OSError:
        _discard(sys.stderr)


def unix_pipe() -> None:
    """Lets SIGPIPE end the process, as it does every Unix filter. Python ignores it, and so do we while sockets are
    written to: a server that hangs up must not end us without a word."""
    import signal

    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)


def _standard_streams() -> None:
    """Opens the null device for a standard stream that was closed, so that no file or socket takes its number."""
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is None:
            null = os.open(os.devnull, os.O_RDWR)
            if null != number:
                os.dup2(null, number)
                os.close(null)
            setattr(sys, name, open(number, mode, encoding="utf-8", errors="replace", closefd=False))  # noqa: SIM115


def unwritten(error: OSError) -> Problem:
    """The problem of a result that stdout does not take (a full disk); what is left of the result is dropped. Where the
    reader of a pipe went away, this is the end, without a word."""
    if isinstance(error, BrokenPipeError):
        unix_pipe()
        os.write(sys.stdout.fileno(), b"\n")
    _discard(sys.stdout)
    return Problem("the result could not be written to the standard output", str(error.strerror or error))


def _unwritten() -> bool:
    """Whether stdout does not take what was written before; it is told once."""
    try:
        sys.stdout.flush()
    except OSError as error:
        complain(unwritten(error))
        return True
    return False


def _discard(stream: TextIO) -> None:
    """Leads a stream that takes nothing to the null device: the interpreter flushes it once more at its end."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, stream.fileno())
    os.close(null)


def _crash(error: Exception) -> int:
    """Keeps the traceback (without local variables) in a file that only the user can read, and says where."""
    from vgpuctl.cli.settings import own_directory

    path = own_directory("XDG_STATE_HOME", ".local/state") / f"crash-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.txt"
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    what = f"vgpuctl failed in a way it should not: {type(error).__name__}: {error}"
    try:
        if not path.is_absolute():
            raise FileNotFoundError(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
        complain(Problem(what, f"the details are in {path}", "please report it with that file"))
    except OSError:
        complain(Problem(what, "the details could not be written", "please report it"))
    return Exit.UNKNOWN
