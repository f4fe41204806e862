"""Groups among the images of one web label: the senses that the word was found in.

Two images are near each other if one is a neighbor of the other in the visual graph, or if they
have neighbors in common, of whatever label. Groups are what makes the modularity of that graph high
(Blondel et al. 2008, the Louvain method), with a resolution below one, so that a sense is not cut
into views of it.
"""

import dataclasses

import numpy as np
from scipy.sparse import csr_array, diags_array

from vsgraph.common.checks import Floats
from vsgraph.report.tallies import Rows

MOST_IMAGES = 600
RESOLUTION = 0.2
SMALLEST, SMALLEST_SHARE = 3, 0.02
SWEEPS = 20


@dataclasses.dataclass(frozen=True, eq=False)
class Groups:
    """The groups found among some images.

    Attributes
    ----------
    members : list of int array
        Rows of each group, the largest group first, the most central image first.
    others : int array
        Rows that belong to no group that is large enough.
    """

    members: list[Rows]
    others: Rows


def find_groups(adjacency: csr_array, rows: Rows, *, most: int) -> Groups:
    """Group images by the visual graph.

    Parameters
    ----------
    adjacency : csr_array of shape (n_images, n_images)
        The visual graph.
    rows : int array
        The images; of more than 600, so many evenly spread ones are looked at.
    most : int
        Largest number of groups; images beyond them are among the others.

    Returns
    -------
    groups : Groups
        The same for the same graph.

    Examples
    --------
    >>> blocks = np.kron(np.eye(2), np.ones((4, 4))) - np.eye(8)
    >>> found = find_groups(csr_array(blocks), np.arange(8), most=5)
    >>> [members.tolist() for members in found.members], found.others.tolist()
    ([[0, 1, 2, 3], [4, 5, 6, 7]], [])
    """
    rows = spread(rows, MOST_IMAGES)
    if not len(rows):
        return Groups([], rows)
    near = _near(adjacency, rows)
    group = _communities(near)
    sizes = np.bincount(group)
    by_size = np.argsort(-sizes, kind="stable")[:most]
    large = by_size[sizes[by_size] >= max(SMALLEST, SMALLEST_SHARE * len(rows))]
    members = []
    for number in large:
        inside = np.flatnonzero(group == number)
        central = np.argsort(-near[inside][:, inside].sum(axis=1), kind="stable")
        members.append(rows[inside[central]])
    return Groups(members, rows[~np.isin(group, large)])


def spread(rows: Rows, most: int) -> Rows:
    """Return at most so many rows, evenly spread.

    >>> spread(np.arange(10), 3).tolist()
    [0, 3, 6]
    """
    return rows if len(rows) <= most else rows[np.arange(most) * len(rows) // most]


def _near(adjacency: csr_array, rows: Rows) -> csr_array:
    """Return how near images are to each other: as neighbors and by neighbors in common."""
    edges = csr_array(adjacency[rows], dtype=np.float64)
    near = edges @ edges.T + 2 * edges[:, rows]
    near = csr_array(near + near.T)
    return csr_array(near - diags_array(near.diagonal()))


def _communities(graph: csr_array) -> Rows:
    """Return the group of each node, merging as long as modularity grows."""
    member = np.arange(graph.shape[0])
    while graph.sum() > 0:
        _, group = np.unique(_move_nodes(graph), return_inverse=True)
        n_groups = int(group.max()) + 1
        member = group[member]
        if n_groups == graph.shape[0]:
            break
        ones = np.ones(len(group))
        join = csr_array((ones, (np.arange(len(group)), group)), (len(group), n_groups))
        graph = csr_array(join.T @ graph @ join)
    return member


def _move_nodes(graph: csr_array) -> Rows:
    """Move each node to the group it gains most by, until none gains."""
    n = graph.shape[0]
    degree = np.asarray(graph.sum(axis=1), np.float64)
    group, total, share = np.arange(n), degree.copy(), RESOLUTION / degree.sum()
    parts = [slice(*graph.indptr[i : i + 2]) for i in range(n)]
    for _ in range(SWEEPS):
        moved = False
        for i, part in enumerate(parts):
            old = group[i]
            total[old] -= degree[i]
            new = _best_group(
                i, old, graph.indices[part], graph.data[part], group, degree[i] * share * total
            )
            group[i] = new
            total[new] += degree[i]
            moved |= new != old
        if not moved:
            break
    return group


def _best_group(
    node: int, old: int, others: Rows, weights: Floats, group: Rows, cost: Floats
) -> int:
    """Return the group of a node's neighbors with the highest gain; the old one at a tie."""
    ties = np.bincount(group[others], weights * (others != node), len(group))
    gain = np.where(ties > 0, ties - cost, -np.inf)
    gain[old] = ties[old] - cost[old]
    best = int(gain.argmax())
    return best if gain[best] > gain[old] + 1e-12 else int(old)
