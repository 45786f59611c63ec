"""Hosts for a test: network namespaces, joined by veth pairs to a bridge in the first one."""
import os
import shutil
import subprocess

NETWORK = "10.77.0.0/24"
SECONDS = 200  # for any one command

# Runs a command on a host, under the host's name, knowing the others', with temporary files of its
# own: hosts that shared them would be in each other's way.
ENTER = """#!/bin/sh
folder=$(cd "$(dirname "$0")" && pwd)
host=$1
shift
export TMPDIR="$folder/$host"
exec ip netns exec "$host" unshare --uts --mount sh -c '
  hostname "$1" && mount --bind "$2" /etc/hosts && shift 2 && exec "$@"
' sh "$host" "$folder/etc_hosts" "$@"
"""
# What mpirun starts instead of ssh: AGENT [options] HOST COMMAND…
AGENT = """#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
host=$1
shift
exec "$(dirname "$0")/enter" "$host" sh -c "$*"
"""


def ip(*words):
    return subprocess.run(["ip", *map(str, words)], check=True, capture_output=True, text=True,
                          timeout=SECONDS).stdout


def why_not():
    """Why no hosts can be made here; None when they can."""
    for tool, package in (("ip", "iproute2"), ("tc", "iproute2"), ("unshare", "util-linux")):
        if not shutil.which(tool):
            return f"{tool} is not installed ({package})"
    name = f"ringlab{os.getpid()}-probe"
    try:
        ip("netns", "add", name)
        try:
            ip("-n", name, "link", "add", "wire", "type", "veth", "peer", "name", "port")
            ip("-n", name, "link", "add", "hub", "type", "bridge")
            limit(name, "wire")
            subprocess.run(["unshare", "--uts", "--mount", "true"], check=True,
                           capture_output=True, timeout=SECONDS)
        finally:
            ip("netns", "del", name)
    except (subprocess.SubprocessError, OSError) as error:
        said = (getattr(error, "stderr", None) or str(error)).strip()
        said = said.decode() if isinstance(said, bytes) else said
        return f"network namespaces cannot be made or shaped here: {said}"
    return None


def limit(host, device, rate="20mbit"):
    """Lets no more than that out of the host."""
    subprocess.run(["ip", "netns", "exec", host, "tc", "qdisc", "add", "dev", device, "root", "tbf",
                    "rate", rate, "burst", "32kbit", "latency", "400ms"], check=True,
                   capture_output=True, timeout=SECONDS)


class Hosts:
    def __init__(self, folder, count):
        self.folder = folder
        self.names = [f"ringlab{os.getpid()}-{i}" for i in range(count)]
        try:
            self._join()
            self._write_files()
        except BaseException:
            self.remove()
            raise

    def _join(self):
        first = self.names[0]
        for name in self.names:
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
        ip("-n", first, "link", "add", "hub", "type", "bridge")
        ip("-n", first, "link", "set", "hub", "up")
        for number, name in enumerate(self.names):
            port = f"port{number}"
            ip("-n", name, "link", "add", "wire", "type", "veth", "peer", "name", port, "netns",
               first)
            ip("-n", first, "link", "set", port, "master", "hub", "up")
            ip("-n", name, "addr", "add", f"10.77.0.{number + 1}/24", "dev", "wire")
            ip("-n", name, "link", "set", "wire", "up")

    def _write_files(self):
        for name, content in (("enter", ENTER), ("agent", AGENT)):
            (self.folder / name).write_text(content)
            (self.folder / name).chmod(0o755)
        for name in self.names:
            (self.folder / name).mkdir()
        (self.folder / "hostfile").write_text("".join(f"{name} slots=1\n" for name in self.names))
        (self.folder / "etc_hosts").write_text("127.0.0.1 localhost\n" + "".join(
            f"10.77.0.{number + 1} {name}\n" for number, name in enumerate(self.names)))

    def on_first(self):
        """Put before a command: runs it on the first host."""
        return [self.folder / "enter", self.names[0]]

    def launcher(self):
        """Options of mpirun: a rank on each host, TCP between them and nothing else."""
        return ["--hostfile", self.folder / "hostfile", "--map-by", "node", "--mca", "plm_rsh_agent",
                self.folder / "agent", "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", NETWORK,
                "--mca", "oob_tcp_if_include", NETWORK]

    def limit(self, number):
        limit(self.names[number], "wire")

    def sent_bytes(self):
        """What left each host so far."""
        return [int(ip("netns", "exec", name, "cat", "/sys/class/net/wire/statistics/tx_bytes"))
                for name in self.names]

    def remove(self):
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, timeout=SECONDS)
