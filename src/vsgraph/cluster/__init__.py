"""Several machines: the work on blocks of rows done by Ray, results kept as files that all see.

A run is started on one machine of the cluster, which sends work to the others (:mod:`.workers`).
Arrays never travel: they are named by their files (:mod:`.packing`). Each result is a file named by
its content and its rows (:mod:`.parts`), so a run that was stopped resumes on other machines.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from vsgraph.cluster.parts import Parts
from vsgraph.common.blocks import machines_at_work


@contextmanager
def cluster_at_work(address: str, tell: Callable[[str], None]) -> Iterator[Parts]:
    """Let a cluster do the work on blocks of rows; give it a folder for its files."""
    from vsgraph.cluster.workers import open_workers

    with open_workers(address) as workers:
        tell(f"cluster: {workers.describe()}")
        parts = Parts(workers, Path())
        with machines_at_work(parts):
            yield parts


__all__ = ["Parts", "cluster_at_work"]
