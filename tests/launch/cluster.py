"""Pretended hosts on this machine: each has a network of its own, a name, an sshd, and a folder unseen by others."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests import jobs

_PROGRAMS = ("ip", "ss", "sshd", "ssh", "ssh-keygen", "unshare", "nsenter", "mount", "hostname")
SEARCH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"


def run(*command: str, check: bool = True) -> str:
    """Output of a command."""
    done = subprocess.run(command, env={**os.environ, "PATH": SEARCH}, capture_output=True, text=True)
    if check and done.returncode:
        raise OSError(f"{' '.join(command)}: {done.stderr.strip() or done.returncode}")
    return done.stdout


@functools.cache
def why_not() -> str:
    """Why no cluster can be pretended here; empty if it can."""
    if not sys.platform.startswith("linux") or os.getuid() != 0:
        return "network namespaces need root on Linux"
    missing = [p for p in _PROGRAMS if shutil.which(p, path=SEARCH) is None]
    if missing:
        return f"not installed: {', '.join(missing)}"
    name = f"dmxt{os.getpid()}"
    try:
        run("ip", "netns", "add", name)
        run("ip", "-n", name, "link", "add", "t0", "type", "veth", "peer", "name", "t1")
        run("ip", "-n", name, "link", "add", "t2", "type", "bridge")
    except OSError as e:
        return str(e)
    finally:
        run("ip", "netns", "del", name, check=False)
    return ""


class Cluster:
    """Hosts `names` in networks of their own; the first one, where the launcher runs, has no sshd.

    Args:
        folder: for keys, configuration, and the hosts' homes.
        names: of the hosts.
        networks: how many networks connect them: 10.77.1.0/24, and so on; interfaces are net1, and so on.
    """

    def __init__(self, folder: Path, names: Sequence[str] = ("head", "one", "two"), networks: int = 1):
        self.folder, self.names, self.networks = folder, tuple(names), networks
        self.home = folder / "home"
        self._tag = f"dmx{os.getpid()}"
        self._spaces = [f"{self._tag}-{name}" for name in (*names, "switch")]
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}
        self._services: list[subprocess.Popen[bytes]] = []
        self.home.mkdir()
        try:
            self._wire()
            self._keys()
            for name in self.names[1:]:
                self.boot(name)
        except BaseException:
            self.close()
            raise

    def address(self, name: str, network: int = 1) -> str:
        """Of a host in a network."""
        return f"10.77.{network}.{self.names.index(name) + 1}"

    def own_home(self, name: str) -> Path:
        """What the host sees as `home`."""
        return self.home if name == self.names[0] else self.folder / f"home-{name}"

    def _wire(self) -> None:
        known = "".join(f"{self.address(name)} {name}\n" for name in self.names)
        (self.folder / "names").write_text(f"127.0.0.1 localhost\n{known}")
        for space in self._spaces:
            run("ip", "netns", "add", space)
            run("ip", "-n", space, "link", "set", "lo", "up")
        switch = self._spaces[-1]
        for k in range(1, self.networks + 1):
            run("ip", "-n", switch, "link", "add", f"br{k}", "type", "bridge")
            run("ip", "-n", switch, "link", "set", f"br{k}", "up")
            for name, space in zip(self.names, self._spaces, strict=False):
                plug = f"{name}-{k}"
                run("ip", "-n", switch, "link", "add", plug, "type", "veth", "peer", "name", f"net{k}", "netns", space)
                run("ip", "-n", switch, "link", "set", plug, "master", f"br{k}", "up")
                run("ip", "-n", space, "addr", "add", f"{self.address(name, k)}/24", "dev", f"net{k}")
                run("ip", "-n", space, "link", "set", f"net{k}", "up")

    def _keys(self) -> None:
        for key in ("own", "stranger", *self.names[1:]):
            run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", key, "-f", str(self.folder / key))
        shutil.copy(self.folder / "own.pub", self.folder / "authorized")
        known = [
            f"{self.address(name, k)} {(self.folder / f'{name}.pub').read_text()}"
            for name in self.names[1:]
            for k in range(1, self.networks + 1)
        ]
        (self.folder / "known").write_text("".join(known))
        names = "".join(f"Host {n}\n  HostName {self.address(n)}\n" for n in self.names[1:])
        common = f"Host *\n  IdentityFile {self.folder}/own\n  UserKnownHostsFile {self.folder}/known\n"
        (self.folder / "ssh_config").write_text(f"{names}{common}  StrictHostKeyChecking yes\n  IdentitiesOnly yes\n")

    def boot(self, name: str, port: int = 22, authorized: str = "authorized") -> None:
        """Start a host's sshd, in place of the one that it had."""
        if name in self._daemons:
            self._daemons[name].kill()
            self._daemons[name].wait()
        home, config = self.own_home(name), self.folder / f"sshd-{name}"
        home.mkdir(exist_ok=True)
        Path("/run/sshd").mkdir(exist_ok=True)
        config.write_text(
            f"Port {port}\nHostKey {self.folder}/{name}\nAuthorizedKeysFile {self.folder}/{authorized}\nPidFile none\n"
            "StrictModes no\nUsePAM no\nPasswordAuthentication no\n"
        )
        sshd = shutil.which("sshd", path=SEARCH) or "sshd"
        self._daemons[name] = self._run(name, [sshd, "-D", "-f", str(config), "-E", f"{config}.log"])
        until = time.monotonic() + 10
        while f":{port} " not in run(*self.on(name, ["ss", "-ltn"])):
            assert time.monotonic() < until and self._daemons[name].poll() is None, "sshd does not listen"
            time.sleep(0.02)

    def _run(self, name: str, command: Sequence[str], env: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
        """Start a process that sees a host's name, home and the names of the others."""
        inside = f"hostname {name} && mount --bind {self.own_home(name)} {self.home} && "
        inside += f'mount --bind {self.folder}/names /etc/hosts && exec "$0" "$@"'
        space = f"--net=/run/netns/{self._tag}-{name}"  # "ip netns exec" would hide what is mounted in /sys
        return subprocess.Popen(
            ["nsenter", space, "unshare", "-m", "-u", "sh", "-c", inside, *command], env={**os.environ, **(env or {})},
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def serve(self, name: str, command: Sequence[str], env: Mapping[str, str]) -> None:
        """Start a daemon on a host, until the end."""
        self._services.append(self._run(name, command, env))

    def on(self, name: str, command: Sequence[str]) -> list[str]:
        """Command that runs `command` in a host's network, where the others' names are known."""
        ip, mount = (shutil.which(p, path=SEARCH) or p for p in ("ip", "mount"))
        inside = ["/bin/sh", "-c", f'{mount} --bind {self.folder}/names /etc/hosts && exec "$0" "$@"', *command]
        return [ip, "netns", "exec", f"{self._tag}-{name}", *inside]

    def processes(self, name: str) -> dict[int, str]:
        """Process ids and command lines of what runs on a host, less its sshd."""
        found = {}
        for pid in run("ip", "netns", "pids", f"{self._tag}-{name}", check=False).split():
            try:
                line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if line and "sshd" not in line.split(" ")[0]:
                found[int(pid)] = line[:200]
        return found

    def counted(self, name: str, network: int) -> int:
        """Bytes that a host has sent into a network."""
        inside = f"cat /sys/class/net/net{network}/statistics/tx_bytes"
        return int(run(*self.on(name, ["sh", "-c", inside])))

    def unplug(self, name: str, network: int = 1, back: bool = False) -> None:
        """Let a host's messages vanish."""
        run("ip", "-n", self._spaces[-1], "link", "set", f"{name}-{network}", "up" if back else "down")

    def hosts(self, *lines: str) -> Path:
        """A host file."""
        path = self.folder / "hosts"
        path.write_text("\n".join(lines) + "\n")
        return path

    def command(self, *arguments: str, ssh: str = "") -> list[str]:
        """Command that runs the ssh launcher on the first host."""
        launch = [sys.executable, "-m", "dualmx.launch", "--launcher", "ssh", "-H", str(self.folder / "hosts")]
        ssh = ssh or f"ssh -F {self.folder}/ssh_config"
        return self.on(self.names[0], [*launch, "--with", ssh, *arguments])

    def launch(self, *arguments: str, ssh: str = "", timeout: float = 60, **env: str) -> jobs.Done:
        """Run the launcher in the first host's home."""
        command = self.command(*arguments, ssh=ssh)
        return jobs.run(*command, env={"PATH": SEARCH, **env}, cwd=self.home, status=None, seconds=timeout)

    def start(self, *arguments: str, **env: str) -> jobs.Process:
        """Start the launcher in the first host's home; its output goes into the file `log`."""
        with open(self.folder / "log", "w") as log:
            return jobs.start(*self.command(*arguments), env={"PATH": SEARCH, **env}, cwd=self.home, stdout=log)

    def log(self) -> str:
        """What the started launcher has written."""
        return (self.folder / "log").read_text()

    def close(self) -> None:
        """End all that runs there, and take the networks down."""
        for space in self._spaces:
            for pid in run("ip", "netns", "pids", space, check=False).split():
                try:
                    os.kill(int(pid), 9)
                except OSError:
                    pass
        for daemon in (*self._daemons.values(), *self._services):
            daemon.wait()
        for space in self._spaces:
            run("ip", "netns", "del", space, check=False)


__all__ = ["SEARCH", "Cluster", "run", "why_not"]
