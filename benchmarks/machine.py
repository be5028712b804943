"""How busy the machine is, how old this process is, how much memory it took."""

from __future__ import annotations

import os


def process_age() -> float:
    """Seconds since this process was created, interpreter start included."""
    with open("/proc/self/stat") as f:
        born = float(f.read().rsplit(")", 1)[1].split()[19]) / os.sysconf("SC_CLK_TCK")
    with open("/proc/uptime") as f:
        return float(f.read().split()[0]) - born


def busy_seconds() -> tuple[float, float]:
    """(CPU seconds used by the whole machine, steal included; those used by this process)."""
    with open("/proc/stat") as f:
        fields = [int(x) for x in f.readline().split()[1:9]]
    user, nice, system, _idle, _iowait, irq, softirq, steal = fields
    own = os.times()
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK"), own.user + own.system


def peak_megabytes() -> float:
    """Largest resident size of this process so far; `ru_maxrss` would include that of the process that started it."""
    with open("/proc/self/status") as f:
        return int(f.read().partition("VmHWM:")[2].split(maxsplit=1)[0]) / 1024
