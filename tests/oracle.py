"""The paper's equations, transcribed literally, in the paper's letters, with loops.

Nothing here is fast or shared with the library; it is what the library is compared with.
"""

import math

import numpy as np


def cos(a, b):
    na, nb = math.sqrt(sum(v * v for v in a)), math.sqrt(sum(v * v for v in b))
    if na == 0 or nb == 0:
        return 0.0
    return sum(x * y for x, y in zip(a, b, strict=True)) / (na * nb)


def N_k(s, k, i):
    """The set of k neighbors of node v_i."""
    others = [j for j in range(len(s)) if j != i]
    return set(sorted(others, key=lambda j: (-cos(s[i], s[j]), j))[:k])


def eq1(s, k):
    """Eq. 1; a cosine that is not positive makes no edge (docs/departures.md)."""
    N = len(s)
    A = np.zeros((N, N))
    for i in range(N):
        for j in range(N):
            if i != j and (i in N_k(s, k, j) or j in N_k(s, k, i)):
                A[i, j] = max(cos(s[i], s[j]), 0)
    return A


def printed_operator(A, w):
    """D^-1/2 (A + wI) D^-1/2, with D_ii = sum_j A_ij; an isolated node has a row of zeros."""
    N = len(A)
    D = [sum(A[i, j] for j in range(N)) for i in range(N)]
    root = [1 / math.sqrt(d) if d > 0 else 0.0 for d in D]
    return np.array(
        [[root[i] * (A[i, j] + w * (i == j)) * root[j] for j in range(N)] for i in range(N)]
    )


def released_operator(A, w):
    """Row-normalize A, add wI, row-normalize again."""
    N = len(A)
    S = np.zeros((N, N))
    for i in range(N):
        D = sum(A[i])
        for j in range(N):
            S[i, j] = (A[i, j] / D if D > 0 else 0.0) + w * (i == j)
        total = sum(S[i])
        if total > 0:
            S[i] = S[i] / total
    return S


def eq4(A, w, t, operator=printed_operator):
    return operator(A, w) @ t


def eq5(t_hat, l, y, m):
    """The anchor set: exactly m a class, ties by row; no anchor where t_hat is nothing."""
    anchors = set()
    for c in range(len(l)):
        members = [i for i in range(len(y)) if y[i] == c and any(t_hat[i])]
        anchors |= set(sorted(members, key=lambda i: (-cos(t_hat[i], l[c]), i))[:m])
    return anchors


def eq6_printed(A, w, s, thetas):
    """h(i) = S h(i-1) theta(i), from h(0) = s; then a softmax."""
    h = np.asarray(s, float)
    for theta in thetas:
        h = printed_operator(A, w) @ h @ theta
    e = np.exp(h - h.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def eq6_released(A, w, s, theta):
    """One layer of the authors' code: sigmoid([s ; S s] theta)."""
    h = np.hstack([s, released_operator(A, w) @ s]) @ theta
    return 1 / (1 + np.exp(-h))


def eq7_printed(h, anchors, y):
    """Sum over the anchors of -log h at the anchor's class."""
    return sum(-math.log(h[i, y[i]]) for i in anchors)


def eq7_released(h, anchors, y, C):
    """Binary cross-entropy summed over classes, times a class weight of mean one."""
    n = [sum(1 for i in anchors if y[i] == c) for c in range(C)]
    present = sum(1 for c in range(C) if n[c])
    total = 0.0
    for i in anchors:
        weight = len(anchors) / (present * n[y[i]])
        for c in range(C):
            total -= weight * (math.log(h[i, c]) if y[i] == c else math.log(1 - h[i, c]))
    return total


def eq8(p_g, p_c, tau_f, lam):
    rows = []
    for g, c in zip(p_g, p_c, strict=True):
        rows.append(
            list(g)
            if max(g) >= tau_f
            else [lam * a + (1 - lam) * b for a, b in zip(g, c, strict=True)]
        )
    return np.array(rows)
