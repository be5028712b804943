"""The wide table of embeddings in PyTorch, whose sparse step is another one to be measured against."""

from __future__ import annotations

from typing import Any

from .workloads import ROWS, batches


class TorchWide:
    """`workloads.WorkloadLoop` of `widedeep`, by `torch.nn.Embedding(sparse=True)` and `torch.optim.SGD`."""

    def __init__(self) -> None:
        import torch

        torch.manual_seed(0)
        torch.set_num_threads(2)
        self.torch = torch
        self.data = [(torch.from_numpy(x).long(), torch.from_numpy(y)[:, None]) for x, y in batches("widedeep")]
        self.table = torch.nn.Embedding(ROWS, 64, sparse=True)
        torch.nn.init.normal_(self.table.weight, std=0.05)
        layers = (64, 256, 128, 1)
        parts: list[Any] = []
        for before, after in zip(layers[:-1], layers[1:], strict=True):
            parts += [torch.nn.Linear(before, after), torch.nn.ReLU()]
        self.deep = torch.nn.Sequential(*parts[:-1])
        self.trainer = torch.optim.SGD([*self.table.parameters(), *self.deep.parameters()], lr=1.0)
        self.value: Any = None
        self.at = 0

    def step(self) -> None:
        """One training step."""
        x, y = self.data[self.at % len(self.data)]
        self.at += 1
        self.trainer.zero_grad()
        logits = self.deep(self.table(x).mean(1))
        self.value = self.torch.nn.functional.binary_cross_entropy_with_logits(logits, y)
        self.value.backward()
        self.trainer.step()

    def sync(self) -> None:
        """Each step has waited already."""

    def loss(self) -> float:
        """Mean loss of the last step."""
        return float(self.value)
