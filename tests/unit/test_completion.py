"""Completion in the real shells: what TAB offers after a line."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from vgpuctl import resources

CASES = [
    ("vgpuctl doc", {"doctor"}),
    ("vgpuctl con", {"config"}),
    ("vgpuctl quota ", {"set", "list", "delete", "lint", "apply", "export"}),
    ("vgpuctl quota se", {"set"}),
    ("vgpuctl --demo quota se", {"set"}),
    ("vgpuctl config generate --profile inf", {"inference"}),
    ("vgpuctl top -o js", {"json"}),
    ("vgpuctl top --output=js", {"json"}),
    ("vgpuctl doctor --fail-on wa", {"warn"}),
    ("vgpuctl doctor --expl", {"--explain"}),
    ("vgpuctl completion f", {"fish"}),
    ("vgpuctl bench sh", {"sharing"}),
    ("vgpuctl config validate my", {"my file.yaml"}),
    ("vgpuctl top --kubeconfig my", {"my file.yaml"}),
]
WHOLE_WORD = {"vgpuctl top --output=js": {"--output=json"}}  # what fish offers instead


def _bash(line: str, folder: Path) -> set[str]:
    script = f"""
source {resources.path("completions/vgpuctl.bash")}
COMP_LINE={_quote(line)}; COMP_POINT=${{#COMP_LINE}}
COMP_WORDS=({line.replace("=", " = ")}); [[ $COMP_LINE == *' ' ]] && COMP_WORDS+=('')
COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
fallback=; compopt() {{ fallback=$2; }}
_vgpuctl
printf '%s\\n' "${{COMPREPLY[@]}}"
[[ ${{#COMPREPLY[@]}} == 0 && $fallback == default ]] && compgen -f -- "${{COMP_WORDS[COMP_CWORD]}}"
true
"""
    return _lines(["bash", "--norc", "-c", script], folder)


def _zsh(line: str, folder: Path) -> set[str]:
    """Runs zsh's completion in a pseudo terminal and reads the matches that it would insert."""
    matches, ready, done = folder / "matches", folder / "ready", folder / "done"
    matches.write_text("")
    rc = folder / "rc.zsh"
    rc.write_text(f"""
autoload -Uz compinit; compinit -D -u
source {resources.path("completions/_vgpuctl")}
compadd() {{
  local -a matches
  if [[ ${{@[1,(i)(-|--)]}} == *-(O|A|D)\\ * ]]; then builtin compadd "$@"; return; fi
  builtin compadd -A matches "$@"
  print -rl -- $matches >>{matches}
  return 1
}}
_probe() {{ _main_complete; : >{done} }}
zle -C probe complete-word _probe
bindkey '^X' probe
: >{ready}
""")
    driver = """
zmodload zsh/zpty
wait_for() { for ((i = 0; i < 300; i++)); do [[ -e $1 ]] && return; sleep 0.1; done; exit 3 }
zpty -b z zsh -f -i
zpty -w z "source $RC"
wait_for $READY
zpty -w -n z "$LINE"$'\\x18'
wait_for $DONE
zpty -d z
"""
    env = {**os.environ, "RC": str(rc), "LINE": line, "READY": str(ready), "DONE": str(done), "TERM": "xterm"}
    ended = subprocess.run(
        ["zsh", "-f", "-c", driver], cwd=folder, env=env, timeout=70, check=False, capture_output=True
    )
    assert ended.returncode == 0, "zsh did not finish the completion"
    return {word.replace("\\ ", " ") for word in matches.read_text().splitlines() if word}


def _fish(line: str, folder: Path) -> set[str]:
    script = f"source {resources.path('completions/vgpuctl.fish')}; complete -C {_quote(line)}"
    rows = _lines(["fish", "--no-config", "-c", script], folder)
    return {row.split("\t")[0].replace("\\ ", " ") for row in rows}


def _quote(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _lines(command: list[str], folder: Path) -> set[str]:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0, done.stderr
    return {line for line in done.stdout.splitlines() if line}


SHELLS: dict[str, Callable[[str, Path], set[str]]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(("line", "wanted"), CASES, ids=[line for line, _ in CASES])
def test_tab_offers_what_fits(shell: str, line: str, wanted: set[str], tmp_path: Path) -> None:
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    (tmp_path / "my file.yaml").write_text("")
    offered = SHELLS[shell](line, tmp_path)
    if shell == "fish":
        wanted = WHOLE_WORD.get(line, wanted)
    assert offered == wanted
