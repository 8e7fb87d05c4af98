"""Centre-of-mass goals: the centre is at a target position, or above a support polygon.

All masses are fractions of the total mass. The subtree of a joint has the mass μ and the first moment s = Σ m c, summed
from the tips to the root. The Jacobian column of a joint with axis z at o is z × (s - μ o) for a rotation and μ z for a
translation (Sugihara et al. 2002).
"""

from synovia.kernels.compiler.jit import F, device, inline
from synovia.kernels.goals.frames import add_joint_row, goal_frame, target_frame
from synovia.kernels.goals.term import NOTHING, unit
from synovia.kernels.layout import FIRST, GOAL, MASS, MOMENT, NUMBERS, PARENT, VERTEX, VERTICES, WEIGHT
from synovia.kernels.math.rotations import apply, origin_of, rotation_of
from synovia.kernels.math.vectors import (
    TINY,
    add,
    axpy,
    cross,
    dot,
    load,
    norm,
    perpendicular,
    reject,
    scale,
    store,
    sub,
)


@inline
def row_moment(masses, frames, i):
    """Return the moment in the world (mass times position) of the body parts that are fixed to row i."""
    moment = apply(rotation_of(frames, i), load(masses, i, MOMENT))
    return axpy(masses[i, MASS], origin_of(frames, i), moment)


@device
def centre_of_mass(masses, frames):
    """Return the centre of mass in the world."""
    n = masses.shape[0] - 1
    c = load(masses, n, MOMENT)
    for i in range(n):
        c = add(c, row_moment(masses, frames, i))
    return c


@device
def sum_masses(tree, masses, frames):
    """Write mass and moment of the subtree of each row i to row n + i of the frames."""
    n = tree.ints.shape[0]
    for i in range(n):
        frames[n + i, MASS] = masses[i, MASS]
        store(frames, n + i, MOMENT, row_moment(masses, frames, i))
    for i in range(n - 1, -1, -1):
        a = tree.ints[i, PARENT]
        if a >= 0:
            frames[n + a, MASS] += frames[n + i, MASS]
            store(frames, n + a, MOMENT, add(load(frames, n + a, MOMENT), load(frames, n + i, MOMENT)))


@device
def add_centre_row(problem, q, frames, force, J, k):
    """Add to Jacobian row k the effect of a force at the centre of mass on all joints; call ``sum_masses`` before."""
    n = problem.tree.ints.shape[0]
    for i in range(n):
        mass = frames[n + i, MASS]
        if mass > F(0):
            moment = axpy(-mass, origin_of(frames, i), load(frames, n + i, MOMENT))
            add_joint_row(problem, q, frames, i, scale(mass, force), cross(moment, force), J, k)


@device
def vector_to_support(vertices, first, count, up, c):
    """Return the vector from a point to a convex polygon, both seen along ``up``, and whether a corner is nearest.

    The vector is 0 above the polygon. The corners lie in the plane through the origin normal to ``up``,
    counterclockwise. Two corners are an edge, one is a point.
    """
    p = reject(c, up)
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
def plane_axes(up):
    """Return two unit vectors that span the plane of a support polygon."""
    a = perpendicular(up)
    return a, cross(up, a)


@inline
def centre_error(problem, frames, targets, term):
    """Return the error: the vector from the centre of mass to its target, and no angles."""
    general = problem.general
    return sub(target_frame(targets, general.ints[term, GOAL])[1], centre_of_mass(general.masses, frames)), NOTHING


@device
def centre_rows(problem, q, frames, term, J):
    """Write the Jacobian of ``centre_error`` into three rows of J, which must be zero; call ``sum_masses`` before."""
    general = problem.general
    w = general.data[term, WEIGHT] / problem.reach
    for i in range(3):
        add_centre_row(problem, q, frames, scale(w, unit(i)), J, general.ints[term, FIRST] + i)


@inline
def centre_start_target(problem, frames, term):
    """Return the target that keeps the start: the present centre of mass."""
    general = problem.general
    return goal_frame(problem, frames, general.ints[term, GOAL])[0], centre_of_mass(general.masses, frames)


@inline
def support_error(problem, frames, term):
    """Return the error: the two components of the horizontal vector from centre of mass to polygon, and no angles."""
    general = problem.general
    up = load(general.data, term, NUMBERS)
    c = centre_of_mass(general.masses, frames)
    d, _ = vector_to_support(general.vertices, general.ints[term, VERTEX], general.ints[term, VERTICES], up, c)
    a, b = plane_axes(up)
    return (dot(a, d), dot(b, d), F(0)), NOTHING


@device
def support_rows(problem, q, frames, term, J):
    """Write the Jacobian of the two components of ``support_error`` into two rows of J, which must be zero.

    Call ``sum_masses`` before. If a corner is nearest, the vector changes as for a fixed point. If an edge is nearest,
    it changes only along the normal of the edge. Inside the polygon, the rows stay zero.
    """
    general = problem.general
    k, w = general.ints[term, FIRST], general.data[term, WEIGHT] / problem.reach
    c = centre_of_mass(general.masses, frames)
    up = load(general.data, term, NUMBERS)
    d, corner = vector_to_support(general.vertices, general.ints[term, VERTEX], general.ints[term, VERTICES], up, c)
    far = norm(d)
    if far == F(0):
        return
    a, b = plane_axes(up)
    if not corner:
        n = scale(F(1) / far, d)
        a, b = scale(dot(a, n), n), scale(dot(b, n), n)
    add_centre_row(problem, q, frames, scale(w, a), J, k)
    add_centre_row(problem, q, frames, scale(w, b), J, k + 1)
