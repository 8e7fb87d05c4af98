"""Places on a stop of the whole body: displacements of axes, and poses, at an instant; see ``whole``."""

from synovia.kernels.compiler.jit import F, device, inline
from synovia.kernels.layout import BLOCK, BLOCK_Q, SCALAR
from synovia.kernels.math.rotations import load_quat, quat_exp, quat_mul, quat_normalize, store_quat
from synovia.kernels.math.vectors import load
from synovia.kernels.servo.stop import duration, travelled

ENDS_IN, PASSED, KNOWN = 0, 1, 2  # in ``clock``: duration, seconds since the start, 1 if a stop is stored
HEAD, TAIL = 0, 3  # in ``shapes``: first columns of the two halves of a profile
LENGTH = 6  # column of ``shapes``: displacement from start to end
HALVINGS = 30  # bisection steps of an interval


@inline
def shape_of(stop, k):
    """Return shape k of a stop of the body: the profile of a stop of one axis."""
    return load(stop.shapes, k, HEAD) + load(stop.shapes, k, TAIL)


@device
def store_shape(stop, k, profile):
    """Store the profile of a stop of one axis as shape k of a stop of the body."""
    for n in range(6):
        stop.shapes[k, n] = profile[n]


@device
def progress(stop, t):
    """Return (r, g) of a stop after a time: its progress from 0 to 1, and the displacement by an acceleration of 1."""
    way = shape_of(stop, 0)
    return travelled(way, t) / stop.shapes[0, LENGTH] if t < duration(way) else F(1), travelled(shape_of(stop, 1), t)


@device
def instant_of(stop, r):
    """Return the time after which a stop has the progress r."""
    low, high = F(0), duration(shape_of(stop, 0))
    for _ in range(HALVINGS):
        middle = F(0.5) * (low + high)
        if progress(stop, middle)[0] < r:
            low = middle
        else:
            high = middle
    return high


@inline
def place_of(stop, i, r, g, jerk):
    """Return the displacement of axis i on a stop; for r and g see ``progress``."""
    b = stop.bends
    bent = r * (b[0, i] + r * (b[1, i] + r * (b[2, i] + r * (b[3, i] + r * b[4, i]))))
    return r * (stop.way[i] + (r * (bent + arch_of(stop, i)) if jerk else bent)) + g * stop.push[i]


@inline
def arch_of(stop, i):
    """Return the displacement of axis i by the curvature of held rows, at the end of a stop."""
    return F(0.5) * stop.curve[i] * stop.shapes[0, LENGTH] * stop.shapes[0, LENGTH]


@device
def write_place(variables, stop, t, jerk, out):
    """Write the pose of a stop after a time to ``out`` (nq,)."""
    r, g = progress(stop, t)
    i = 0
    for row in range(variables.shape[0]):
        at = variables[row, BLOCK_Q]
        if variables[row, BLOCK] == SCALAR:
            out[at] = stop.start[at] + place_of(stop, i, r, g, jerk)
            i += 1
            continue
        w = place_of(stop, i, r, g, jerk), place_of(stop, i + 1, r, g, jerk), place_of(stop, i + 2, r, g, jerk)
        store_quat(out, at, quat_normalize(quat_mul(load_quat(stop.start, at), quat_exp(w))))
        i += 3


@device
def farthest_of(stop, i, jerk):
    """Return how far axis i moves on a stop at most."""
    most = abs(stop.way[i])
    for n in range(stop.bends.shape[0]):
        most += abs(stop.bends[n, i])
    return most + (abs(arch_of(stop, i)) + abs(stop.push[i]) * stop.shapes[1, LENGTH] if jerk else F(0))


@inline
def is_straight(stop, i):
    """Return whether the bends of axis i on a stop are 0; only for stops without a limit of the jerk."""
    return stop.bends[0, i] == F(0) and stop.bends[1, i] == F(0) and stop.bends[2, i] == F(0)
