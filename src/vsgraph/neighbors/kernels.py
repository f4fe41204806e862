"""Compiled inner loops of the neighbor search.

Each thread writes only to its own rows, so no locks are needed and results do not depend on the
number of threads. Half-precision features come as their bits (uint16), since the compiler has no
such type.
"""

import numba
import numpy as np

HALF_TO_SINGLE = np.float32(2.0**112)
compiled = numba.njit(nogil=True, cache=True)
compiled_sum = numba.njit(nogil=True, cache=True, fastmath={"reassoc", "contract"})


@compiled
def half(bits):
    """Return an fp16 as float32: move its bits, then correct the exponent."""
    wide = np.uint32(bits)
    moved = ((wide & np.uint32(0x7FFF)) << np.uint32(13)) | (
        (wide & np.uint32(0x8000)) << np.uint32(16)
    )
    return np.uint32(moved).view(np.float32) * HALF_TO_SINGLE


@compiled
def load(features, row, vector):
    """Copy a row of features into `vector` as float32."""
    if features.itemsize == 2:
        for j in range(len(vector)):
            vector[j] = half(features[row, j])
    else:
        for j in range(len(vector)):
            vector[j] = features[row, j]


@compiled_sum
def product(a, b):
    """Return the inner product of two vectors."""
    total = np.float32(0)
    for j in range(len(a)):
        total += a[j] * b[j]
    return total


@compiled
def keep(score, candidate, values, ids):
    """Replace the lowest score; `values` is a heap with the lowest first."""
    place = 0
    child = 1
    while child < len(values):
        if child + 1 < len(values) and values[child + 1] < values[child]:
            child += 1
        if values[child] >= score:
            break
        values[place] = values[child]
        ids[place] = ids[child]
        place = child
        child = 2 * place + 1
    values[place] = score
    ids[place] = candidate


@compiled
def holds(ids, wanted):
    """Return whether an id is among `ids`."""
    is_there = False
    for slot in range(len(ids)):
        is_there |= ids[slot] == wanted
    return is_there


@compiled
def offer(scores, rows, own, first, values, ids):
    """Keep the highest of a block of scores in the heaps of `rows`.

    Score ``[i, j]`` is of row ``rows[i]`` and candidate ``first + j``. The row itself (``own``) and
    candidates that are in its heap already are skipped.
    """
    for i in range(len(rows)):
        row = rows[i]
        lowest = values[row, 0]
        for j in range(scores.shape[1]):
            if scores[i, j] > lowest and first + j != own[row] and not holds(ids[row], first + j):
                keep(scores[i, j], first + j, values[row], ids[row])
                lowest = values[row, 0]


@compiled
def join(sketch, rows, friends, fan_starts, fans, values, ids):
    """Score the friends of each row's friends and fans, and keep the highest in its heap.

    `friends` are every image's best candidates so far; `fans` (from `fan_starts`) the images that
    have it among theirs. `values` and `ids` are the heaps of `rows`.
    """
    n_kept, n_friends = values.shape[1], friends.shape[1]
    seen = np.full(len(sketch), -1, np.int32)
    for i in range(len(rows)):
        row = rows[i]
        seen[row] = row
        for slot in range(n_kept):
            if ids[i, slot] >= 0:
                seen[ids[i, slot]] = row
        n_fans = min(fan_starts[row + 1] - fan_starts[row], n_friends)
        for step in range(n_friends + n_fans):
            middle = (
                friends[row, step] if step < n_friends else fans[fan_starts[row] + step - n_friends]
            )
            if middle < 0:
                continue
            n_onward = min(fan_starts[middle + 1] - fan_starts[middle], n_friends)
            for onward in range(n_friends + n_onward):
                other = (
                    friends[middle, onward]
                    if onward < n_friends
                    else fans[fan_starts[middle] + onward - n_friends]
                )
                if other < 0 or seen[other] == row:
                    continue
                seen[other] = row
                score = product(sketch[row], sketch[other])
                if score > values[i, 0]:
                    keep(score, other, values[i], ids[i])


@compiled
def insert(similarity, other, similarities, neighbors):
    """Insert a neighbor into a list sorted by similarity, ties by row, unless it is in it."""
    last = len(neighbors) - 1
    if similarity < similarities[last]:
        return
    if similarity == similarities[last] and other > neighbors[last] >= 0:
        return
    for slot in range(last + 1):
        if neighbors[slot] == other:
            return
    slot = last
    while slot > 0 and (
        similarities[slot - 1] < similarity
        or (similarities[slot - 1] == similarity and neighbors[slot - 1] > other)
    ):
        similarities[slot] = similarities[slot - 1]
        neighbors[slot] = neighbors[slot - 1]
        slot -= 1
    similarities[slot] = similarity
    neighbors[slot] = other


@compiled
def rank(features, scale, rows, candidates, similarities, neighbors):
    """Fill the sorted lists of `rows`, in their order, from candidates by their full features."""
    one = np.empty(features.shape[1], np.float32)
    two = np.empty(features.shape[1], np.float32)
    for i in range(len(rows)):
        row = rows[i]
        load(features, row, one)
        for slot in range(candidates.shape[1]):
            other = candidates[i, slot]
            if other >= 0:
                load(features, other, two)
                cosine = product(one, two) * (scale[row] * scale[other])
                insert(cosine, other, similarities[i], neighbors[i])


@compiled
def surviving_pairs(bounds, rows_a, rows_b, same, needed, features, scale):
    """Return the rows and cosines of pairs that may belong in the list of either row.

    ``bounds[i, j]`` is at least the cosine of rows ``rows_a[i]`` and ``rows_b[j]``; `needed` is the
    similarity of each row's last neighbor. If both sides are the `same`, each pair comes once.
    """
    one = np.empty(features.shape[1], np.float32)
    two = np.empty(features.shape[1], np.float32)
    pairs = np.empty((256, 2), np.int32)
    cosines = np.empty(256, np.float32)
    needed_b = needed[rows_b]
    n_pairs = 0
    for i in range(len(rows_a)):
        a = rows_a[i]
        needed_a = needed[a]
        loaded = False
        for j in range(i + 1 if same else 0, len(rows_b)):
            least = min(needed_a, needed_b[j])
            if bounds[i, j] < least:
                continue
            if not loaded:
                load(features, a, one)
                loaded = True
            b = rows_b[j]
            load(features, b, two)
            cosine = product(one, two) * (scale[a] * scale[b])
            if cosine < least:
                continue
            if n_pairs == len(cosines):
                pairs = np.concatenate((pairs, np.empty_like(pairs)))
                cosines = np.concatenate((cosines, np.empty_like(cosines)))
            pairs[n_pairs, 0] = a
            pairs[n_pairs, 1] = b
            cosines[n_pairs] = cosine
            n_pairs += 1
    return pairs[:n_pairs], cosines[:n_pairs]


@compiled
def insert_pairs(rows, cosines, similarities, neighbors):
    """Insert every pair into the lists of both its rows."""
    for i in range(len(rows)):
        a, b = rows[i, 0], rows[i, 1]
        insert(cosines[i], b, similarities[a], neighbors[a])
        insert(cosines[i], a, similarities[b], neighbors[b])
