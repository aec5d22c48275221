"""`python -m tests.cluster up` runs a bench in the foreground; `build` only makes its programs ready."""

from __future__ import annotations

import argparse
import signal
import sys
from shlex import quote

from . import generate, kwok, pool
from .bench import Bench
from .binaries import BenchMissingError, find, say
from .process import ProgramError


def main() -> int:
    """Runs the command; 1 with the reason on stderr when there can be no bench."""
    parser = argparse.ArgumentParser(prog="python -m tests.cluster", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("build", help="find or build the programs, print their directory")
    up = commands.add_parser("up", help="run a bench until Ctrl-C")
    up.add_argument("--pool", metavar="FILE", help="load a pool: a path, or a name in tests/pools")
    up.add_argument("--size", metavar="NxCxV", type=generate.Size.parse,
                    help="start with a generated pool of N nodes, C cards each, V pods on each card")  # fmt: skip
    up.add_argument("--kwok", action="store_true", help="start kwok for nodes with its annotation")
    options = parser.parse_args()
    try:
        if options.command == "build":
            print(find())
            return 0
        return _up(options)
    except (BenchMissingError, ProgramError, OSError) as error:
        say(f"error: {error}")
        return 1


def _up(options: argparse.Namespace) -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with Bench(snapshot=generate.snapshot(options.size) if options.size else None) as bench:
        if options.pool:
            pool.load(bench, pool.read(options.pool))
        if options.kwok:
            kwok.start(bench)
        print(f"export KUBECONFIG={quote(str(bench.kubeconfig))} PATH={quote(str(bench.binaries))}:$PATH", flush=True)
        say("bench: running, Ctrl-C ends it and removes its data")
        try:
            signal.pause()
        except KeyboardInterrupt:
            say("")
    return 0


if __name__ == "__main__":
    sys.exit(main())
