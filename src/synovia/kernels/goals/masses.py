"""The centre of mass: where it is, how each joint moves it, and how far it is from above a support polygon.

All masses are parts of the whole. What hangs on a joint counts as one: its mass μ and first moment s = Σ m c, summed
from the tips to the root, give the joint's column z × (s - μ o) for a turn and μ z for a shift (Sugihara et al. 2002).
"""

from synovia.kernels.compiler.jit import F, device, inline
from synovia.kernels.goals.frames import pull_joint
from synovia.kernels.layout import MASS, MOMENT, ORIENTATION, ORIGIN, PARENT
from synovia.kernels.math.rotations import apply, load_rotation
from synovia.kernels.math.vectors import TINY, add, axpy, cross, dot, load, norm, perpendicular, scale, store, sub


@inline
def moment_of(masses, frames, i):
    """Return mass times place, in the world, of what row i carries rigidly."""
    return axpy(
        masses[i, MASS], load(frames, i, ORIGIN), apply(load_rotation(frames, i, ORIENTATION), load(masses, i, MOMENT))
    )


@device
def centre_of_mass(masses, frames):
    """Return the centre of mass in the world."""
    n = masses.shape[0] - 1
    c = load(masses, n, MOMENT)
    for i in range(n):
        c = add(c, moment_of(masses, frames, i))
    return c


@device
def sum_branches(tree, masses, frames):
    """Write mass and moment of everything that hangs on each row i to row n + i of the frames."""
    n = tree.ints.shape[0]
    for i in range(n):
        frames[n + i, MASS] = masses[i, MASS]
        store(frames, n + i, MOMENT, moment_of(masses, frames, i))
    for i in range(n - 1, -1, -1):
        a = tree.ints[i, PARENT]
        if a >= 0:
            frames[n + a, MASS] += frames[n + i, MASS]
            store(frames, n + a, MOMENT, add(load(frames, n + a, MOMENT), load(frames, n + i, MOMENT)))


@device
def pull_centre(problem, q, frames, force, J, k):
    """Add to row k what a force on the centre of mass does on all axes; after ``sum_branches``."""
    n = problem.tree.ints.shape[0]
    for i in range(n):
        mass = frames[n + i, MASS]
        if mass > F(0):
            arm = axpy(-mass, load(frames, i, ORIGIN), load(frames, n + i, MOMENT))
            pull_joint(problem, q, frames, i, scale(mass, force), cross(arm, force), J, k)


@device
def outside_support(vertices, first, count, up, c):
    """Return the vector from a point, seen along ``up``, to the nearest one of a polygon, and whether that is a corner.

    Above the polygon, which is convex, the vector is 0. The corners have no part along ``up`` and go round
    counterclockwise; two make an edge, one a point.
    """
    p = axpy(-dot(up, c), up, c)
    nearest = (F(0), F(0), F(0))
    least = F(-1)
    corner = False
    inside = count > 2
    for i in range(count):
        a = load(vertices, first + i, 0)
        b = load(vertices, first + (i + 1) % count, 0)
        edge, to = sub(b, a), sub(p, a)
        if dot(up, cross(edge, to)) < F(0):
            inside = False
        along = dot(edge, to) / max(dot(edge, edge), TINY)
        away = sub(axpy(min(max(along, F(0)), F(1)), edge, a), p)
        far = norm(away)
        if least < F(0) or far < least:
            least = far
            nearest = away
            corner = along <= F(0) or along >= F(1)
    if inside:
        return (F(0), F(0), F(0)), False
    return nearest, corner


@inline
def across(up):
    """Return two unit vectors that span the plane of a support polygon."""
    a = perpendicular(up)
    return a, cross(up, a)
