"""One process or several: what each does, and how they agree.

Under ``torchrun`` every process takes a part of each batch. Sums, batch norms and gradients are
over the whole batch, so the result is that of one process, up to the order of sums.
"""

import dataclasses
import inspect
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, distributed, nn

_KNOWN = inspect.signature(nn.parallel.DistributedDataParallel).parameters
_NEW = "forward_sync_buffers"  # later releases warn about the former name
OWN_BUFFERS = {_NEW if _NEW in _KNOWN else "broadcast_buffers": False}


@dataclasses.dataclass(frozen=True)
class Processes:
    """The number of this process, how many there are, and the device it computes on."""

    rank: int
    n: int
    device: str

    @property
    def is_first(self) -> bool:
        """Whether this is the process that writes files and prints."""
        return self.rank == 0

    def part(self, n: int) -> slice:
        """Return this process's part of a batch, in order.

        >>> [Processes(rank, 3, "cpu").part(7) for rank in range(3)]
        [slice(0, 2, None), slice(2, 4, None), slice(4, 7, None)]
        """
        return slice(self.rank * n // self.n, (self.rank + 1) * n // self.n)

    def total(self, *values: float) -> list[float]:
        """Return the sums of numbers over all processes."""
        if self.n == 1:
            return list(values)
        sums = torch.tensor(values, dtype=torch.float64, device=self.device)
        distributed.all_reduce(sums)
        return sums.tolist()

    def together(self, values: Tensor) -> Tensor:
        """Return the values of all processes, joined in order."""
        if self.n == 1:
            return values
        return torch.cat(self._gather(values.cpu())).to(values.device)

    def _gather(self, value: Any) -> list[Any]:  # noqa: ANN401
        """Return the value of each process, in order."""
        parts: list[Any] = [None] * self.n
        distributed.all_gather_object(parts, value)
        return parts

    def first_decides(self, answer: bool) -> bool:  # noqa: FBT001
        """Return the first process's answer in every process."""
        return bool(self.total(float(answer and self.is_first))[0])

    def merged(self, entries: dict[Any, Any]) -> dict[Any, Any]:
        """Return the entries of all processes in one dictionary."""
        if self.n == 1:
            return entries
        return {key: value for part in self._gather(entries) for key, value in part.items()}

    def wait(self) -> None:
        """Wait until every process is here."""
        if self.n > 1:
            distributed.barrier()


@contextmanager
def open_processes() -> Iterator[Processes]:
    """Join the other processes if ``torchrun`` started several."""
    gpu = torch.cuda.is_available()
    count = int(os.environ.get("WORLD_SIZE", "1"))
    if count == 1:
        yield Processes(0, 1, "cuda" if gpu else "cpu")
        return
    device = f"cuda:{os.environ.get('LOCAL_RANK', '0')}" if gpu else "cpu"
    if gpu:
        torch.cuda.set_device(device)
    distributed.init_process_group("nccl" if gpu else "gloo")
    try:
        yield Processes(distributed.get_rank(), count, device)
    finally:
        distributed.destroy_process_group()


def share_training(network: nn.Module, processes: Processes) -> nn.Module:
    """Return a network whose gradients and norms are those of the whole batch."""
    if processes.n == 1:
        return network
    if processes.device == "cpu":
        for module in network.modules():
            if type(module) is nn.BatchNorm2d:
                module.__class__ = SharedNorm  # in place: its weights stay the same tensors
        return nn.parallel.DistributedDataParallel(network, **OWN_BUFFERS)
    synced = nn.SyncBatchNorm.convert_sync_batchnorm(network)
    device = torch.device(processes.device)
    return nn.parallel.DistributedDataParallel(synced, device_ids=[device], **OWN_BUFFERS)


class _Sum(torch.autograd.Function):
    """The sum over processes, of values and of gradients."""

    @staticmethod
    def forward(_: Any, values: Tensor) -> Tensor:  # noqa: ANN401
        """Add up values."""
        summed = values.clone()
        distributed.all_reduce(summed)
        return summed

    @staticmethod
    def backward(_: Any, *gradients: Tensor) -> Tensor:  # noqa: ANN401
        """Add up gradients."""
        summed = gradients[0].clone()
        distributed.all_reduce(summed)
        return summed


class SharedNorm(nn.BatchNorm2d):
    """Batch norm over the batch of all processes, on any backend."""

    def forward(self, maps: Tensor) -> Tensor:
        """Normalize by mean and variance over all processes."""
        if not self.training:
            return super().forward(maps)
        values = maps.float()
        n = torch.full((1,), values.numel() / values.shape[1], device=values.device)
        sums = _Sum.apply(torch.cat([values.sum((0, 2, 3)), n]))
        mean = (sums[:-1] / sums[-1]).view(1, -1, 1, 1)
        off = values - mean
        variance = _Sum.apply((off * off).sum((0, 2, 3))) / sums[-1]
        with torch.no_grad():
            self._update_running(mean.flatten(), variance * sums[-1] / (sums[-1] - 1))
        scale = torch.rsqrt(variance + self.eps) * self.weight
        normed = off * scale.view(1, -1, 1, 1) + self.bias.view(1, -1, 1, 1)
        return normed.to(maps.dtype)

    def _update_running(self, mean: Tensor, variance: Tensor) -> None:
        """Update the running mean and variance."""
        if self.running_mean is None or self.running_var is None or self.momentum is None:
            return
        self.running_mean.lerp_(mean.to(self.running_mean.dtype), self.momentum)
        self.running_var.lerp_(variance.to(self.running_var.dtype), self.momentum)
        if self.num_batches_tracked is not None:
            self.num_batches_tracked += 1
