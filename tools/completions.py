"""Completion scripts for bash, zsh and fish, from the tree of commands.

They are static: a TAB starts no Python, so completion costs a few milliseconds. A test keeps them fresh.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import typer

from vgpuctl.cli.app import app

_PLACES = {"FILE": "file", "BUNDLE": "file", "DIR": "directory"}


@dataclass(frozen=True)
class Option:
    """flags: all spellings. takes: "" for a switch, else `file`, `directory`, `word` or `choice` (see choices)."""

    flags: tuple[str, ...]
    about: str
    takes: str
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Level:
    """A command or group. path: the words that lead to it. files: its arguments are files."""

    path: tuple[str, ...]
    commands: tuple[tuple[str, str], ...]
    options: tuple[Option, ...]
    choices: tuple[str, ...]
    files: bool


def levels() -> list[Level]:
    """Every command and group, the root first."""
    root = typer.main.get_command(app)
    return list(_walk(root, ()))


def _walk(command: Any, path: tuple[str, ...]) -> Iterator[Level]:
    context = typer.Context(command, info_name="vgpuctl")
    below = []
    for name in command.list_commands(context) if hasattr(command, "list_commands") else ():
        _, loaded, _ = command.resolve_command(context, [name])
        if not loaded.hidden:
            below.append((name, loaded))
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    yield Level(
        path,
        tuple((name, _about(loaded)) for name, loaded in below),
        tuple(_option(p) for p in command.params if p.param_type_name == "option" and not p.hidden),
        tuple(choice for p in arguments for choice in _choices(p)),
        any((p.metavar or "").strip("[].… ").startswith("FILE") for p in arguments),
    )
    for name, loaded in below:
        yield from _walk(loaded, (*path, name))


def _about(command: Any) -> str:
    return str(command.help or "").strip().split("\n")[0].rstrip(".")


def _choices(parameter: Any) -> tuple[str, ...]:
    return tuple(str(getattr(choice, "value", choice)) for choice in getattr(parameter.type, "choices", ()) or ())


def _option(parameter: Any) -> Option:
    choices = _choices(parameter)
    takes = "" if parameter.is_flag else "choice" if choices else _PLACES.get(parameter.metavar or "", "word")
    flags = tuple(sorted({*parameter.opts, *parameter.secondary_opts}, key=len))
    return Option(flags, str(parameter.help or "").split("\n")[0].rstrip("."), takes, choices)


def files() -> dict[str, str]:
    """The generated files: path in the repository → text."""
    tree = levels()
    return {
        "completions/vgpuctl.bash": _bash(tree),
        "completions/_vgpuctl": _zsh(tree),
        "completions/vgpuctl.fish": _fish(tree),
    }


def _key(level: Level) -> str:
    return " ".join(level.path)


def _cases(tree: list[Level], body: Any) -> str:
    rows = ((_key(level), body(level)) for level in tree)
    return "".join(f"    {shlex.quote(key)}) {text} ;;\n" for key, text in rows if text)


def _value_cases(tree: list[Level], action: dict[str, str]) -> str:
    """Cases `path:flag` for options that take a value."""
    lines: dict[str, list[str]] = {}
    for level in tree:
        for option in level.options:
            if option.takes:
                act = action[option.takes].format(words=" ".join(option.choices))
                lines.setdefault(act, []).extend(f"'{_key(level)}:{flag}'" for flag in option.flags)
    return "".join(f"    {'|'.join(patterns)}) {act} ;;\n" for act, patterns in lines.items())


def _descend(tree: list[Level]) -> str:
    """A shell pattern of every path below the root."""
    return "|".join(shlex.quote(_key(level)) for level in tree if level.path)


def _bash(tree: list[Level]) -> str:
    words = _cases(
        tree, lambda level: "words=" + shlex.quote(" ".join([*(name for name, _ in level.commands), *level.choices]))
    )
    flags = _cases(tree, lambda level: "flags=" + shlex.quote(" ".join(f for o in level.options for f in o.flags)))
    files = _cases([level for level in tree if level.files], lambda _: "compopt -o default 2>/dev/null")
    values = _value_cases(
        tree,
        {
            "file": "compopt -o default 2>/dev/null; return",
            "directory": "compopt -o dirnames 2>/dev/null; return",
            "word": "return",
            "choice": 'COMPREPLY=($(compgen -W "{words}" -- "$cur")); return',
        },
    )
    return f"""# bash completion for vgpuctl; generated, do not edit
_vgpuctl_value() {{
  case "$1" in
{values}    *) return 1 ;;
  esac
}}
_vgpuctl() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}} path= words= flags= word i
  COMPREPLY=()
  if [[ $cur == "=" ]]; then cur=; elif [[ $prev == "=" ]]; then prev=${{COMP_WORDS[COMP_CWORD-2]}}; fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${{COMP_WORDS[i]}}
    case "$word" in -*|=) ;; *)
      case "${{path:+$path }}$word" in
        {_descend(tree)}) path="${{path:+$path }}$word" ;;
      esac ;;
    esac
  done
  _vgpuctl_value "$path:$prev" && return
  case "$path" in
{words}  esac
  case "$path" in
{flags}  esac
  case "$path" in
{files}  esac
  if [[ $cur == -* ]]; then
    COMPREPLY=($(compgen -W "$flags" -- "$cur"))
  else
    COMPREPLY=($(compgen -W "$words" -- "$cur"))
  fi
}}
complete -F _vgpuctl vgpuctl
"""


def _zsh_word(name: str, about: str) -> str:
    return shlex.quote(f"{name.replace(':', chr(92) + ':')}:{about}")


def _zsh(tree: list[Level]) -> str:
    words = _cases(
        tree,
        lambda level: (
            "words_=("
            + " ".join([*(_zsh_word(n, a) for n, a in level.commands), *(_zsh_word(c, "") for c in level.choices)])
            + ")"
        ),
    )
    flags = _cases(
        tree, lambda level: "flags=(" + " ".join(_zsh_word(f, o.about) for o in level.options for f in o.flags) + ")"
    )
    files = _cases([level for level in tree if level.files], lambda _: "_files")
    values = _value_cases(
        tree,
        {
            "file": "_files; return 0",
            "directory": "_files -/; return 0",
            "word": "return 0",
            "choice": "compadd -- {words}; return 0",
        },
    )
    return f"""#compdef vgpuctl
# zsh completion for vgpuctl; generated, do not edit
_vgpuctl_value() {{
  case "$1" in
{values}    *) return 1 ;;
  esac
}}
_vgpuctl() {{
  local path_= word i
  local -a words_ flags
  for ((i = 2; i < CURRENT; i++)); do
    word=${{words[i]}}
    [[ $word == -* ]] && continue
    case "${{path_:+$path_ }}$word" in
      {_descend(tree)}) path_="${{path_:+$path_ }}$word" ;;
    esac
  done
  word=${{words[CURRENT]}}
  if [[ $word == --*=* ]]; then
    compset -P '*='
    _vgpuctl_value "$path_:${{word%%=*}}"
    return
  fi
  _vgpuctl_value "$path_:${{words[CURRENT-1]}}" && return
  case "$path_" in
{words}  esac
  case "$path_" in
{flags}  esac
  if [[ ${{words[CURRENT]}} == -* ]]; then
    _describe -o option flags
  else
    (( $#words_ )) && _describe command words_
    case "$path_" in
{files}    esac
  fi
}}
if [[ $funcstack[1] == _vgpuctl ]]; then _vgpuctl "$@"; else compdef _vgpuctl vgpuctl; fi
"""


def _fish(tree: list[Level]) -> str:
    lines = [
        "# fish completion for vgpuctl; generated, do not edit",
        "function __vgpuctl_at",
        "    set -l path",
        "    for word in (commandline -opc)[2..-1]",
        "        string match -q -- '-*' $word; and continue",
        '        switch (string join " " -- $path $word)',
        "            case " + " ".join(f"'{_key(level)}'" for level in tree if level.path),
        "                set -a path $word",
        "        end",
        "    end",
        '    test "$path" = "$argv"',
        "end",
        "complete -c vgpuctl -f",
    ]
    for level in tree:
        at = f"complete -c vgpuctl -n {_fish_quote('__vgpuctl_at ' + _key(level))}"
        lines += [f"{at} -a {_fish_quote(name)} -d {_fish_quote(about)}" for name, about in level.commands]
        if level.choices:
            lines.append(f"{at} -a {_fish_quote(' '.join(level.choices))}")
        if level.files:
            lines.append(f"{at} -F")
        for option in level.options:
            spell = " ".join(f"-l {f[2:]}" if f.startswith("--") else f"-s {f[1:]}" for f in option.flags)
            takes = {
                "": "",
                "file": " -r -F",
                "directory": " -x -a '(__fish_complete_directories)'",
                "word": " -x",
                "choice": f" -x -a {_fish_quote(' '.join(option.choices))}",
            }[option.takes]
            lines.append(f"{at} {spell}{takes} -d {_fish_quote(option.about)}")
    return "\n".join(lines) + "\n"


def _fish_quote(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
