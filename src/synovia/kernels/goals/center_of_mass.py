"""Centre of mass: it is at a place, or above a support polygon.

All masses are parts of the whole. Everything that hangs on a joint counts as one: its mass μ and first moment
s = Σ m c, summed from the tips to the root, give the joint's column z × (s - μ o) for a turn and μ z for a shift
(Sugihara et al. 2002).
"""

from synovia.kernels.compiler.jit import F, device, inline
from synovia.kernels.goals.frames import goal_frame, pull_joint, target_frame
from synovia.kernels.goals.term import NOTHING, unit
from synovia.kernels.layout import (
    FIRST,
    GOAL,
    MASS,
    MOMENT,
    NUMBERS,
    ORIENTATION,
    ORIGIN,
    PARENT,
    VERTEX,
    VERTICES,
    WEIGHT,
)
from synovia.kernels.math.rotations import apply, load_rotation
from synovia.kernels.math.vectors import TINY, add, axpy, cross, dot, load, norm, perpendicular, scale, store, sub


@inline
def moment_of(masses, frames, i):
    """Return mass times place, in the world, of what row i carries rigidly."""
    moment = apply(load_rotation(frames, i, ORIENTATION), load(masses, i, MOMENT))
    return axpy(masses[i, MASS], load(frames, i, ORIGIN), moment)


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
def add_centre_row(problem, q, frames, force, J, k):
    """Add to row k what a force on the centre of mass does on all axes; after ``sum_branches``."""
    n = problem.tree.ints.shape[0]
    for i in range(n):
        mass = frames[n + i, MASS]
        if mass > F(0):
            arm = axpy(-mass, load(frames, i, ORIGIN), load(frames, n + i, MOMENT))
            pull_joint(problem, q, frames, i, scale(mass, force), cross(arm, force), J, k)


@device
def vector_to_support(vertices, first, count, up, c):
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


@inline
def centre_error(problem, frames, targets, h):
    """Return the vector from the centre of mass to its target."""
    f = problem.general
    return sub(target_frame(targets, f.ints[h, GOAL])[1], centre_of_mass(f.masses, frames)), NOTHING


@device
def centre_rows(problem, q, frames, h, J):
    """Write the three rows of a place; after ``sum_branches``."""
    f = problem.general
    w = f.data[h, WEIGHT] / problem.reach
    for i in range(3):
        add_centre_row(problem, q, frames, scale(w, unit(i)), J, f.ints[h, FIRST] + i)


@inline
def centre_kept(problem, frames, h):
    """Return where the centre of mass is now."""
    return goal_frame(problem, frames, problem.general.ints[h, GOAL])[0], centre_of_mass(problem.general.masses, frames)


@inline
def support_error(problem, frames, h):
    """Return the horizontal way to the support polygon, in two numbers."""
    f = problem.general
    up = load(f.data, h, NUMBERS)
    c = centre_of_mass(f.masses, frames)
    d, _ = vector_to_support(f.vertices, f.ints[h, VERTEX], f.ints[h, VERTICES], up, c)
    a, b = across(up)
    return (dot(a, d), dot(b, d), F(0)), NOTHING


@device
def support_rows(problem, q, frames, h, J):
    """Write the two rows of the way to a support polygon; after ``sum_branches``.

    Beside a corner the way changes like that to a point; beside an edge only its part across the edge changes.
    """
    f = problem.general
    k, w = f.ints[h, FIRST], f.data[h, WEIGHT] / problem.reach
    c = centre_of_mass(f.masses, frames)
    up = load(f.data, h, NUMBERS)
    d, corner = vector_to_support(f.vertices, f.ints[h, VERTEX], f.ints[h, VERTICES], up, c)
    far = norm(d)
    if far == F(0):
        return
    a, b = across(up)
    if not corner:
        n = scale(F(1) / far, d)
        a, b = scale(dot(a, n), n), scale(dot(b, n), n)
    add_centre_row(problem, q, frames, scale(w, a), J, k)
    add_centre_row(problem, q, frames, scale(w, b), J, k + 1)
