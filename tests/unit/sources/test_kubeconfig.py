"""Which cluster, as whom: kubeconfig files with kubectl's rules."""

from __future__ import annotations

import base64
import json
import os
import pty
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.certificates import Authority
from vgpuctl.model.problem import Exit, Problem
from vgpuctl.sources.cluster import Cluster, Flags, find_access
from vgpuctl.sources.cluster.credentials import credentials, expiry
from vgpuctl.sources.cluster.kubeconfig import _in_cluster
from vgpuctl.tasks.load import load


def config(name: str, current: str | None = "", **more: Any) -> dict[str, Any]:
    """A kubeconfig with one cluster, user and context, all of one name."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": f"https://{name}:6443"}}],
        "users": [{"name": name, "user": {"token": f"token-of-{name}"}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": f"ns-{name}"}}],
        **({"current-context": current or name} if current is not None else {}),
        **more,
    }


def write(path: Path, content: dict[str, Any] | str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return path


def test_the_default_place_is_in_the_home_directory(tmp_path: Path) -> None:
    write(tmp_path / ".kube" / "config", config("home"))
    access = find_access(Flags(), {"HOME": str(tmp_path)})
    assert access is not None
    assert (access.name, access.server, access.namespace) == ("context home", "https://home:6443", "ns-home")


def test_no_kubeconfig_and_no_pod_is_no_cluster(tmp_path: Path) -> None:
    assert find_access(Flags(), {"HOME": str(tmp_path)}) is None
    write(tmp_path / ".kube" / "config", "")
    assert find_access(Flags(), {"HOME": str(tmp_path)}) is None


def test_of_a_list_the_first_file_that_says_something_wins(tmp_path: Path) -> None:
    one, two = config("a", None), config("b")
    two["clusters"].append({"name": "a", "cluster": {"server": "https://another"}})
    paths = [write(tmp_path / "one", one), tmp_path / "missing", write(tmp_path / "two", two)]
    environ = {"KUBECONFIG": os.pathsep.join(map(str, ["", *paths]))}
    access = find_access(Flags(), environ)
    assert access is not None and access.name == "context b"
    assert find_access(Flags(context="a"), environ).server == "https://a:6443"  # type: ignore[union-attr]


def test_flags_choose_context_cluster_and_user_apart(tmp_path: Path) -> None:
    path = write(tmp_path / "config", config("a"))
    other = write(tmp_path / "other", config("b"))
    environ = {"KUBECONFIG": f"{path}{os.pathsep}{other}"}
    access = find_access(Flags(user="b", cluster="b"), environ)
    assert access is not None
    assert (access.server, access.namespace) == ("https://b:6443", "ns-a")
    assert credentials(access).authorization == "Bearer token-of-b"


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (Flags(context="x"), "has no context 'x'; it has: a"),
        (Flags(cluster="x"), "has no cluster 'x'; it has: a"),
        (Flags(user="x"), "has no user 'x'; it has: a"),
    ],
)
def test_a_name_that_is_not_there_is_told_with_those_that_are(tmp_path: Path, flags: Flags, words: str) -> None:
    write(tmp_path / ".kube" / "config", config("a"))
    with pytest.raises(Problem) as caught:
        find_access(flags, {"HOME": str(tmp_path)})
    assert words in "; ".join(caught.value.lines())
    assert caught.value.exit_code is Exit.UNKNOWN


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: [", "is not YAML"),
        ("- just\n- a list", "is not a mapping"),
        ("clusters: {}\ncontexts: 5\n", "contexts is not a list"),
        ("users: [5]\n", "an item of users is not a mapping"),
        ("current-context: a\ncontexts: [{name: a, context: {cluster: gone}}]\n", "has no cluster 'gone'"),
        (
            "current-context: a\ncontexts: [{name: a, context: {cluster: c}}]\nclusters: [{name: c, cluster: {}}]",
            "has no server",
        ),
        ("\x00\x01", "is not YAML"),
    ],
)  # fmt: skip
def test_a_broken_file_is_named(tmp_path: Path, text: str, words: str) -> None:
    path = write(tmp_path / "config", text)
    with pytest.raises(Problem) as caught:
        find_access(Flags(kubeconfig=str(path)))
    assert words in "; ".join(caught.value.lines()) and str(path) in caught.value.what


def test_a_file_that_was_named_must_exist_and_say_something(tmp_path: Path) -> None:
    with pytest.raises(Problem, match="does not exist"):
        find_access(Flags(kubeconfig=str(tmp_path / "none")))
    with pytest.raises(Problem, match="has no current-context"):
        find_access(Flags(kubeconfig=str(write(tmp_path / "config", config("a", None)))))


def test_paths_are_relative_to_their_file_and_data_wins(tmp_path: Path) -> None:
    content = config("a")
    content["clusters"][0]["cluster"]["certificate-authority"] = "pki/ca.crt"
    content["users"][0]["user"] = {"tokenFile": "pki/token", "client-key-data": base64.b64encode(b"key").decode(),
                                   "client-key": "gone", "client-certificate": "pki/ca.crt"}  # fmt: skip
    write(tmp_path / "k" / "pki" / "ca.crt", "CA")
    write(tmp_path / "k" / "pki" / "token", "secret\n")
    access = find_access(Flags(kubeconfig=str(write(tmp_path / "k" / "config", content))))
    assert access is not None and access.ca == b"CA"
    given = credentials(access)
    assert (given.authorization, given.key, given.certificate) == ("Bearer secret", b"key", b"CA")


@pytest.mark.parametrize(
    ("user", "authorization"),
    [
        ({}, ""),
        ({"username": "u", "password": "p"}, "Basic dTpw"),
        ({"token": "t", "username": "u", "password": "p"}, "Bearer t"),
    ],
)
def test_the_authorization_follows_the_user_entry(tmp_path: Path, user: dict[str, Any], authorization: str) -> None:
    path = write(tmp_path / "config", config("a") | {"users": [{"name": "a", "user": user}]})
    access = find_access(Flags(kubeconfig=str(path)))
    assert access is not None and credentials(access).authorization == authorization


def test_impersonation_comes_from_flags_before_the_file(tmp_path: Path) -> None:
    user = {"as": "x", "as-groups": ["g"], "as-uid": "1", "as-user-extra": {"why": ["a"]}}
    path = str(write(tmp_path / "config", config("a") | {"users": [{"name": "a", "user": user}]}))
    assert find_access(Flags(kubeconfig=path)).headers == (  # type: ignore[union-attr]
        ("Impersonate-User", "x"),
        ("Impersonate-Group", "g"),
        ("Impersonate-Uid", "1"),
        ("Impersonate-Extra-why", "a"),
    )
    flags = Flags(kubeconfig=path, as_user="y", as_group=("h", "i"))
    assert find_access(flags).headers == (  # type: ignore[union-attr]
        ("Impersonate-User", "y"),
        ("Impersonate-Group", "h"),
        ("Impersonate-Group", "i"),
    )
    plain = str(write(tmp_path / "plain", config("a")))
    with pytest.raises(Problem, match="--as-group needs --as"):
        find_access(Flags(kubeconfig=plain, as_group=("g",)))


def test_a_pod_uses_its_service_account(tmp_path: Path) -> None:
    for name, text in (("token", "t1"), ("ca.crt", "CA"), ("namespace", "lab\n")):
        (tmp_path / name).write_text(text)
    environ = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    access = _in_cluster(Flags(), environ, tmp_path)
    assert access is not None
    assert (access.name, access.server, access.namespace) == ("in-cluster", "https://[fd00::1]:443", "lab")
    assert credentials(access).authorization == "Bearer t1"
    (tmp_path / "token").write_text("t2")
    assert credentials(access).authorization == "Bearer t2"


def plugin(tmp_path: Path, script: str, **more: Any) -> Any:
    """The access of a kubeconfig whose user has an exec plugin, a shell script beside the file."""
    program = write(tmp_path / "bin" / "plugin", f"#!/bin/sh\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    entry = {"apiVersion": "client.authentication.k8s.io/v1", "command": "./bin/plugin", **more}
    content = config("a") | {"users": [{"name": "a", "user": {"exec": entry}}]}
    return find_access(Flags(kubeconfig=str(write(tmp_path / "config", content))))


_SAYS = """echo '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": %s}'"""


def test_an_exec_plugin_gives_a_token(tmp_path: Path) -> None:
    script = _SAYS % """{"token": "'$WHO'"}"""
    access = plugin(tmp_path, script, env=[{"name": "WHO", "value": "me"}])
    assert credentials(access).authorization == "Bearer me"


def test_an_exec_plugin_gives_a_client_certificate(tmp_path: Path) -> None:
    access = plugin(tmp_path, _SAYS % """{"clientCertificateData": "C", "clientKeyData": "K"}""")
    given = credentials(access)
    assert (given.authorization, given.certificate, given.key) == ("", b"C", b"K")


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo no such account >&2; exit 3", "failed; exit code 3: no such account"),
        ("exit 4", "failed; exit code 4"),
        ("echo nonsense", "failed; what it printed is no ExecCredential"),
        ("echo 5", "failed; what it printed is no ExecCredential"),
        ("head -c 100000 /dev/zero | tr '\\0' '['", "failed; what it printed is no ExecCredential"),
        ("echo '{}'", "failed; it answers in None, the kubeconfig wants client.authentication.k8s.io/v1"),
        (_SAYS % "[]", "gave no status"),
        (_SAYS % "null", "gave no status"),
        (_SAYS % "{}", "gave neither a token nor a client certificate"),
    ],
)
def test_a_plugin_that_fails_says_why(tmp_path: Path, script: str, words: str) -> None:
    with pytest.raises(Problem) as caught:
        credentials(plugin(tmp_path, script))
    assert words in "; ".join(caught.value.lines())


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"command": 5}, "'5' of context a is not installed"),
        ({"args": 5}, "failed; 'int' object is not iterable"),
        ({"env": [{"name": "A"}]}, "failed; 'value'"),
        ({"env": [{"name": "A=B", "value": "x"}]}, "failed; illegal environment variable name"),
        ({"args": ["a\0b"]}, "failed; embedded null byte"),
    ],
)
def test_an_entry_that_cannot_be_run_is_told(tmp_path: Path, entry: dict[str, Any], words: str) -> None:
    with pytest.raises(Problem) as caught:
        credentials(plugin(tmp_path, "exit 0", **entry))
    assert words in "; ".join(caught.value.lines())


@pytest.mark.parametrize("script", ["sleep 30", "sleep 30 & wait", "while :; do :; done", "exec 1>&-; sleep 30"])
def test_a_plugin_that_hangs_costs_one_time_limit(tmp_path: Path, script: str) -> None:
    """All parts of the facts wait for it together."""
    source = Cluster(plugin(tmp_path, script), timeout=0.5)
    began = time.monotonic()
    facts = load([source], source.parts)
    assert time.monotonic() - began < 2
    assert "did not end within 0.5 s" in facts.pods.reason
    assert "--request-timeout" in facts.pods.reason
    assert {facts.part(part).known for part in source.parts} == {False}


def test_a_plugin_is_told_the_cluster_if_it_wants_to_know(tmp_path: Path) -> None:
    script = 'printf %s "$KUBERNETES_EXEC_INFO" >"${0%/*}/told"; ' + _SAYS % '{"token": "t"}'
    credentials(plugin(tmp_path, script))
    told = json.loads((tmp_path / "bin" / "told").read_text())
    assert told["spec"] == {"interactive": False}
    credentials(plugin(tmp_path, script, provideClusterInfo=True))
    told = json.loads((tmp_path / "bin" / "told").read_text())
    assert told["spec"]["cluster"] == {"server": "https://a:6443"}


@pytest.mark.parametrize(("mode", "asked"), [("IfAvailable", True), ("Never", False)])
def test_a_plugin_may_talk_to_a_person_on_a_terminal(tmp_path: Path, mode: str, asked: bool) -> None:
    """It has the terminal and more time than a request, unless it says that it never asks."""
    script = 'printf "password: " >&2; read -r word || exit 5; ' + _SAYS % """{"token": "'$word'"}"""
    plugin(tmp_path, script, interactiveMode=mode)
    program = (
        "from vgpuctl.sources.cluster import Flags, find_access\n"
        "from vgpuctl.sources.cluster.credentials import credentials\n"
        f"print(credentials(find_access(Flags(kubeconfig={str(tmp_path / 'config')!r})), 0.2).authorization)\n"
    )
    person, terminal = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=terminal, stdout=subprocess.PIPE, stderr=terminal, text=True
    ) as running:
        os.close(terminal)
        if asked:
            assert b"password: " in os.read(person, 100)
            time.sleep(0.5)
            os.write(person, b"secret\n")
        assert running.stdout is not None
        assert running.stdout.read() == ("Bearer secret\n" if asked else "")
    os.close(person)
    assert (running.returncode == 0) is asked


def test_a_plugin_that_is_not_installed_brings_its_hint(tmp_path: Path) -> None:
    access = plugin(tmp_path, "", command="no-such-plugin-anywhere", installHint="see\nthe docs")
    with pytest.raises(Problem) as caught:
        credentials(access)
    assert caught.value.lines()[-1] == "see the docs"


def test_only_an_expired_certificate_is_told(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    now = time.time()
    ended = authority.issue("ended", expired=True).certificate.read_bytes()
    assert expiry(ended, now).startswith("the client certificate expired on 20")
    assert expiry(authority.issue("fresh").certificate.read_bytes(), now) == ""
    assert expiry(b"", now) == "" and expiry(b"no PEM at all", now) == ""
