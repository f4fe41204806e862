"""Compiled inner loops of the neighbor search.

Each that threads call writes to its own rows only, so that they need no locks and results do not
depend on them.
Half-precision features come as their bits (uint16), since the compiler knows no such type.
"""

import numba
import numpy as np

HALF_TO_SINGLE = np.float32(2.0**112)
compiled = numba.njit(nogil=True, cache=True)
compiled_sum = numba.njit(nogil=True, cache=True, fastmath={"reassoc", "contract"})


@compiled
def half(bits):
    """Return the float32 that an fp16 stands for: move its bits, then mend the exponent."""
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
def keep(score, found, values, ids):
    """Put a score in the place of the lowest.

    `values` is a heap: the lowest stands first, and none above those at twice its place plus one
    and two.
    """
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
    ids[place] = found


@compiled
def holds(ids, wanted):
    """Return whether an id is among `ids`."""
    found = False
    for slot in range(len(ids)):
        found |= ids[slot] == wanted
    return found


@compiled
def offer(scores, rows, own, first, values, ids):
    """Show each of `rows` a block of scores and keep the highest.

    Score ``[i, j]`` is of row ``rows[i]`` and candidate ``first + j``, unless that is ``own`` of
    the row itself, or known by the join before its list was scanned. `values` and `ids` are heaps.
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
    """Show each row the friends of its friends and fans, and keep the highest scores.

    `friends` are every image's best so far; `fans` (from `fan_starts`) those who have it among
    theirs. `values` and `ids` are heaps, of `rows` alone.
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
                found = (
                    friends[middle, onward]
                    if onward < n_friends
                    else fans[fan_starts[middle] + onward - n_friends]
                )
                if found < 0 or seen[found] == row:
                    continue
                seen[found] = row
                score = product(sketch[row], sketch[found])
                if score > values[i, 0]:
                    keep(score, found, values[i], ids[i])


@compiled
def insert(similarity, found, similarities, neighbors):
    """Put a neighbor into a list sorted by similarity, ties by row, unless it is there already."""
    last = len(neighbors) - 1
    if similarity < similarities[last]:
        return
    if similarity == similarities[last] and found > neighbors[last] >= 0:
        return
    for slot in range(last + 1):
        if neighbors[slot] == found:
            return
    slot = last
    while slot > 0 and (
        similarities[slot - 1] < similarity
        or (similarities[slot - 1] == similarity and neighbors[slot - 1] > found)
    ):
        similarities[slot] = similarities[slot - 1]
        neighbors[slot] = neighbors[slot - 1]
        slot -= 1
    similarities[slot] = similarity
    neighbors[slot] = found


@compiled
def rank(features, scale, rows, candidates, similarities, neighbors):
    """Fill the sorted lists of `rows` from candidates, by their full features."""
    one = np.empty(features.shape[1], np.float32)
    two = np.empty(features.shape[1], np.float32)
    for i in range(len(rows)):
        row = rows[i]
        load(features, row, one)
        for slot in range(candidates.shape[1]):
            found = candidates[i, slot]
            if found >= 0:
                load(features, found, two)
                cosine = product(one, two) * (scale[row] * scale[found])
                insert(cosine, found, similarities[row], neighbors[row])


@compiled
def surviving_pairs(bounds, rows_a, rows_b, same, needed, features, scale):
    """Return the pairs that may belong into either's list: their rows and cosines.

    ``bounds[i, j]`` is at least the cosine of rows ``rows_a[i]`` and ``rows_b[j]``; `needed` is
    what a row's last neighbor has. If both sides are the `same`, each pair is looked at once.
    """
    one = np.empty(features.shape[1], np.float32)
    two = np.empty(features.shape[1], np.float32)
    pairs = np.empty((256, 2), np.int32)
    cosines = np.empty(256, np.float32)
    needed_b = needed[rows_b]
    n_found = 0
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
            if n_found == len(cosines):
                pairs = np.concatenate((pairs, np.empty_like(pairs)))
                cosines = np.concatenate((cosines, np.empty_like(cosines)))
            pairs[n_found, 0] = a
            pairs[n_found, 1] = b
            cosines[n_found] = cosine
            n_found += 1
    return pairs[:n_found], cosines[:n_found]


@compiled
def insert_pairs(rows, cosines, similarities, neighbors):
    """Put every pair into the lists of both its rows."""
    for i in range(len(rows)):
        a, b = rows[i, 0], rows[i, 1]
        insert(cosines[i], b, similarities[a], neighbors[a])
        insert(cosines[i], a, similarities[b], neighbors[b])
