"""Groups among the images of one web label: the senses of the word.

Two images are near each other if one is a neighbor of the other in the visual graph, or if they
have neighbors in common, of whatever label. The groups maximize the modularity of that graph
(Blondel et al. 2008, the Louvain method). A resolution below one keeps the views of one sense
together. If texts are given, images that are spoken of differently are less near.
"""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array, diags_array

from vsgraph.common.blocks import as_floats, evenly_spread
from vsgraph.common.checks import Floats, unit_rows
from vsgraph.report.tallies import Rows

MOST_IMAGES = 600
RESOLUTION = 0.2
SMALLEST, SMALLEST_SHARE = 3, 0.02
SWEEPS = 20
UNLIKE = 0.2  # how near images stay whose texts have nothing in common


class Groups(NamedTuple):
    """The groups found among some images."""

    members: list[Rows]  # the largest group first, in each the most central image first
    others: Rows  # rows that belong to no group that is large enough


def find_groups(
    adjacency: csr_array, rows: Rows, *, most: int, texts: Floats | None = None
) -> Groups:
    """Put rows of a visual graph, (n_images, n_images), into at most so many groups.

    If there are more than 600 rows, 600 evenly spread ones are grouped. `texts` are the vectors of
    all images' texts, (n_images, n_dims), which may be mapped from disk.

    >>> blocks = np.kron(np.eye(2), np.ones((4, 4))) - np.eye(8)
    >>> groups = find_groups(csr_array(blocks), np.arange(8), most=5)
    >>> [members.tolist() for members in groups.members], groups.others.tolist()
    ([[0, 1, 2, 3], [4, 5, 6, 7]], [])
    """
    rows = rows[evenly_spread(len(rows), MOST_IMAGES)]
    if not len(rows):
        return Groups([], rows)
    near = _near(adjacency, rows)
    if texts is not None:
        near = _spoken_alike(near, np.asarray(texts[rows]))
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


def _near(adjacency: csr_array, rows: Rows) -> csr_array:
    """Return how near rows are to each other, (n_rows, n_rows)."""
    edges = csr_array(adjacency[rows], dtype=np.float64)
    near = edges @ edges.T + 2 * edges[:, rows]
    near = csr_array(near + near.T)
    return csr_array(near - diags_array(near.diagonal()))


def _spoken_alike(near: csr_array, vectors: Floats) -> csr_array:
    """Return how near rows are, less if their texts differ; a row without a text fits to all."""
    unit = unit_rows(as_floats(vectors))
    pairs = near.tocoo()
    one, other = unit[pairs.row], unit[pairs.col]
    alike = np.clip(np.einsum("ij,ij->i", one, other), UNLIKE, 1)
    has_both = one.any(axis=1) & other.any(axis=1)
    return csr_array((pairs.data * np.where(has_both, alike, 1), pairs.coords), near.shape)


def join_groups(adjacency: csr_array, rows: Rows, groups: Groups) -> Groups:
    """Put those of `rows` that are in no group into the one that they are nearest to.

    >>> blocks = csr_array(np.kron(np.eye(2), np.ones((4, 4))) - np.eye(8))
    >>> some = Groups([np.array([0, 1, 2]), np.array([4, 5, 6])], np.array([], np.intp))
    >>> [members.tolist() for members in join_groups(blocks, np.arange(8), some).members]
    [[0, 1, 2, 3], [4, 5, 6, 7]]
    """
    if not groups.members:
        return Groups([], rows)
    grouped = np.concatenate(groups.members)
    numbers = np.repeat(np.arange(len(groups.members)), [len(m) for m in groups.members])
    rest = rows[~np.isin(rows, grouped)]
    shape = (adjacency.shape[0], len(groups.members))
    inside = csr_array((np.ones(len(grouped)), (grouped, numbers)), shape)
    common = csr_array(adjacency[grouped]).T @ inside[grouped]  # neighbors of their members
    ties = (csr_array(adjacency[rest]) @ (common + 2 * inside)).toarray()
    best = np.where(ties.max(axis=1) > 0, ties.argmax(axis=1), -1)
    members = [np.append(old, rest[best == i]) for i, old in enumerate(groups.members)]
    return Groups(members, rest[best < 0])


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
    """Move each node to the group with the highest gain, until no move gains anything."""
    n = graph.shape[0]
    degree = np.asarray(graph.sum(axis=1), np.float64)
    group, total, share = np.arange(n), degree.copy(), RESOLUTION / degree.sum()
    parts = [slice(*graph.indptr[i : i + 2]) for i in range(n)]
    for _ in range(SWEEPS):
        moved = False
        for i, part in enumerate(parts):
            old = group[i]
            total[old] -= degree[i]
            others = graph.indices[part]
            ties = np.bincount(group[others], graph.data[part] * (others != i), n)
            gain = np.where(ties > 0, ties - degree[i] * share * total, -np.inf)
            gain[old] = ties[old] - degree[i] * share * total[old]
            best = int(gain.argmax())
            new = best if gain[best] > gain[old] + 1e-12 else int(old)  # stays at a tie
            group[i] = new
            total[new] += degree[i]
            moved |= new != old
        if not moved:
            break
    return group
