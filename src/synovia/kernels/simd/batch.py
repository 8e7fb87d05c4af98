"""Common parts of the SIMD batches: many problems of one kind, solved in lockstep.

Each of the ``LANES`` lanes works on one problem. Arrays are [value, lane], so that one instruction of the processor
works on several problems. Each loop over lanes is straight-line code, which LLVM turns into vector instructions. A lane
whose problem ends takes the next problem.

Every answer is checked in double precision. Problems that a batch does not solve keep the status ``LEFT``, and the
scalar kernel solves them, with its proofs, restarts and statuses.
"""

from synovia.kernels.compiler.jit import F, device, inline
from synovia.kernels.goals.residuals import measure
from synovia.kernels.layout import LEFT, REACHED, STATUS
from synovia.kernels.search.multistart import set_followers
from synovia.kernels.tree.forward import forward
from synovia.kernels.tree.problem import open_row, write_head

LANES = 32  # number of lanes: 8 are too few to vectorise, and 64 no longer fit in the nearest cache
FORWARD = 0x7FFFFFFF  # mask of a row number: the compiler then knows that it is not negative


@inline
def lane_vector(X, r, l):
    """Return the vector in rows r to r + 2 of lane l."""
    return X[r, l], X[r + 1, l], X[r + 2, l]


@inline
def put_vector(X, r, l, v):
    """Write a vector to rows r to r + 2 of lane l."""
    X[r, l] = v[0]
    X[r + 1, l] = v[1]
    X[r + 2, l] = v[2]


@inline
def as_type(K, v):
    """Return a vector in the type K."""
    return K(v[0]), K(v[1]), K(v[2])


@device
def verify(problem, work, row, steps, attempt, cost):
    """Write status and counts of a row whose joint values meet the goals in double precision; others stay LEFT."""
    q, errors, kept = open_row(problem, row)
    set_followers(problem, q)
    forward(problem.tree, q, work.frames)
    if measure(problem, q, work.frames, kept, errors) <= F(1):
        write_head(row, REACHED, steps, attempt + F(1), attempt, cost, F(0))


@inline
def leave_from(out, first):
    """Set the status of the rows from ``first`` on to LEFT, for the scalar kernel."""
    for b in range(first, out.shape[0]):
        out[b, STATUS] = LEFT


@inline
def count_left(out):
    """Return the number of rows that are left to the scalar kernel."""
    left = 0
    for b in range(out.shape[0]):
        if out[b, STATUS] < F(0):
            left += 1
    return left
