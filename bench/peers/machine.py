"""What the figures were taken on."""

import os
import pathlib
import platform
import subprocess


def _first(path, prefix):
    for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines():
        if line.startswith(prefix):
            return line.partition(":")[2].strip()
    return "unknown"


def describe():
    memory_kib = int(_first("/proc/meminfo", "MemTotal").split()[0])
    return {
        "cpu": _first("/proc/cpuinfo", "model name"),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(memory_kib / 2**20, 1),
        "kernel": f"{platform.system()} {platform.release()} {platform.machine()}",
        "load_average_at_start": os.getloadavg(),
    }


def line(machine):
    return (f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_gib']:.0f} GiB, "
            f"{machine['kernel']}")


def package_versions(names):
    """Of Debian packages; None where one is not installed by that name."""
    versions = {}
    for name in names:
        found = subprocess.run(
            ["dpkg-query", "--show", "--showformat=${Version}", name],
            capture_output=True, text=True, check=False)
        versions[name] = found.stdout if found.returncode == 0 else None
    return versions


def program_versions(programs):
    """What they say; None where one is not there."""
    versions = {}
    for program in programs:
        try:
            versions[program.name] = subprocess.run(
                [program, "--version"], capture_output=True, text=True,
                check=True).stdout.strip()
        except (OSError, subprocess.CalledProcessError):
            versions[program.name] = None
    return versions


def commit(root):
    found = subprocess.run(
        ["git", "-C", root, "describe", "--always", "--dirty"],
        capture_output=True, text=True, check=False)
    return found.stdout.strip() or "unknown"
