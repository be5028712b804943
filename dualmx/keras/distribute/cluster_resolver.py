"""The cluster that `TF_CONFIG` describes."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from typing import Any

from ...core.errors import ArgumentError

_JOBS = ("chief", "worker", "ps")
_EXAMPLE = (
    '{"cluster": {"worker": ["host1:5000", "host2:5000"]}, "task": {"type": "worker", "index": 0}}, the cluster the '
    "same in all processes"
)


@dataclass(frozen=True)
class Cluster:
    """A job's processes by kind, and which of them this one is.

    Attributes:
        tasks: addresses `host:port` by `"chief"`, `"worker"` and `"ps"`.
        task_type, task_id: of this process.

    Example:
        >>> text = '{"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 1}}'
        >>> cluster = Cluster.parse(text)
        >>> cluster.rank, cluster.workers
        (1, ['a:1', 'b:1'])
    """

    tasks: dict[str, list[str]]
    task_type: str
    task_id: int

    @property
    def workers(self) -> list[str]:
        """Addresses of those that train: the chief first."""
        return [*self.tasks.get("chief", ()), *self.tasks.get("worker", ())]

    @property
    def rank(self) -> int:
        """Number of this process among those of its kind, the chief counted as the first worker."""
        return self.task_id + (len(self.tasks.get("chief", ())) if self.task_type == "worker" else 0)

    @staticmethod
    def from_env() -> Cluster | None:
        """Return the cluster of `TF_CONFIG`, None if it is not set.

        Raises:
            ArgumentError: a field is missing or wrong; the text names it.
        """
        text = os.environ.get("TF_CONFIG", "")
        return Cluster.parse(text) if text.strip() else None

    @staticmethod
    def parse(text: str) -> Cluster:
        """Read the JSON of a `TF_CONFIG`.

        Raises:
            ArgumentError: a field is missing or wrong; the text names it.
        """
        try:
            config = json.loads(text)
        except ValueError as e:
            raise ArgumentError(f"TF_CONFIG: not JSON: {e}; expected {_EXAMPLE}") from None
        cluster = _field(config, "TF_CONFIG", "cluster", dict, "an object with lists of addresses")
        for job, addresses in cluster.items():
            where = f"TF_CONFIG: cluster.{job}"
            if job == "evaluator":
                raise ArgumentError(f"{where}: evaluators take no part in training; start them without TF_CONFIG")
            if job not in _JOBS:
                raise ArgumentError(f"{where}: expected one of {', '.join(_JOBS)}")
            if not isinstance(addresses, list) or not addresses:
                raise ArgumentError(f"{where}={addresses!r}: expected a list of addresses such as 'host:5000'")
            for address in addresses:
                match = re.fullmatch(r"[^\s:/]+:(\d+)", address) if isinstance(address, str) else None
                if not match or not 0 < int(match[1]) < 65536:
                    raise ArgumentError(f"{where}: {address!r}: expected an address such as 'host:5000'")
        if len(cluster.get("chief", ())) > 1:
            raise ArgumentError(f"TF_CONFIG: cluster.chief: {len(cluster['chief'])} addresses; expected one")
        if "chief" not in cluster and "worker" not in cluster:
            raise ArgumentError(f"TF_CONFIG: cluster: nobody trains; expected a 'worker' list, as in {_EXAMPLE}")
        task = _field(config, "TF_CONFIG", "task", dict, "an object with type and index")
        kind = _field(task, "TF_CONFIG: task", "type", str, f"one of {', '.join(cluster)}")
        index = _field(task, "TF_CONFIG: task", "index", int, "the number of this process in its list")
        if kind not in cluster:
            raise ArgumentError(f"TF_CONFIG: task.type={kind!r}: expected one of {', '.join(cluster)}")
        if not 0 <= index < len(cluster[kind]):
            raise ArgumentError(
                f"TF_CONFIG: task.index={index}: expected 0 to {len(cluster[kind]) - 1}, as cluster.{kind} has "
                f"{len(cluster[kind])} addresses"
            )
        return Cluster(cluster, kind, index)


def _field(value: Any, where: str, name: str, kind: type, expected: str) -> Any:
    if not isinstance(value, dict):
        raise ArgumentError(f"{where}: {value!r}: expected an object, as in {_EXAMPLE}")
    if name not in value:
        raise ArgumentError(f"{where}: the field {name!r} is missing; expected {expected}, as in {_EXAMPLE}")
    found = value[name]
    if kind is int and isinstance(found, str) and found.isdecimal():
        found = int(found)
    if not isinstance(found, kind) or isinstance(found, bool):
        raise ArgumentError(f"{where}: {name}={found!r}: expected {expected}")
    return found
