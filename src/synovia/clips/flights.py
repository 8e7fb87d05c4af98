"""Find flights in a motion whose path is unknown. In a flight, from one contact to the next, only gravity acts.

While a foot is on the floor, the height of the centre of mass is its distance from the foot. The floor pushes but does
not pull, so this height cannot be decelerated by more than gravity. If it is, the body has left the floor. In a flight
of duration T, the height is a parabola through its two ends, Δh apart, with the speed v = Δh / T + g T / 2 at take-off.
The parabola fits if the legs have its speeds before take-off and after landing.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from synovia.model.geometry import Array

GRAVITY: Final = 9.81  # metres per second²
LONGEST: Final = 0.8  # seconds: longest flight, as in a jump 0.8 m high
SHORTEST: Final = 0.15  # seconds: shortest flight; the body rises less than 3 cm in it
GROUNDED: Final = 0.08  # seconds: least contact between two flights, which a foot needs to push the body off
SPEED: Final = 0.5  # metres per second: scale of the differences of speed at take-off and landing
FALLS: Final = 4.0  # metres per second²: scale of the deceleration beyond gravity in contact, which noise may cause
PUSH: Final = 30.0  # metres per second²: largest upward acceleration of the body by the legs
HARDER: Final = 10.0  # metres per second²: scale of the acceleration beyond ``PUSH``
WORST: Final = 20.0  # largest cost of such an acceleration
UNLIKELY: Final = 2.0  # cost of a flight; larger than what a flight can gain by fitting noise
BELOW: Final = 0.02  # metres: tolerated depth of a foot below the floor in flight
FRAME: Final = 1.0 / 30.0  # seconds of contact per unit of cost
SPAN: Final = 0.033  # seconds over which speeds and accelerations are measured


class Flight(NamedTuple):
    """A flight: a time without contact.

    Args:
        first: Last frame with contact before the flight.
        end: First frame with contact after the flight.
        off: Largest difference of speeds at the ends of the flight between parabola and legs, metres per second.
    """

    first: int
    end: int
    off: float


def find_flights(heights: Array, costs: Array, fps: float) -> list[Flight]:
    """Return the flights that minimize the total cost of contacts and parabolas, by dynamic programming.

    Args:
        heights: Height of the centre of mass in each frame if the lower foot is on the floor, (T,), metres.
        costs: Cost of contact from each frame to the next, (T - 1,): above 0 if no foot stands still.
        fps: Frames per second.
    """
    count, dt = len(heights), 1.0 / fps
    least, most = max(2, round(SHORTEST * fps)), max(2, round(LONGEST * fps))
    held = max(1, round(GROUNDED * fps))
    before, after = _speeds(heights, fps)
    pushes = _push_costs(heights, fps) * dt / FRAME
    steps = costs * dt / FRAME
    # in this variable, a parabola of flight is a straight line
    line = heights + 0.5 * GRAVITY * (np.arange(count) * dt) ** 2
    # State k < held: k steps of contact since the landing; state held: at least ``held`` steps. Flights begin only in
    # the last.
    cost = np.full((held + 1, count), np.inf)
    cost[held, 0] = 0.0
    came = np.zeros((held + 1, count), np.intp)
    begun = np.full(count, -1)
    for b in range(1, count):
        push = pushes[b - 1] + steps[b - 1]
        cost[1:, b] = cost[:-1, b - 1] + push
        cost[1, b] -= pushes[b - 1]  # the frame of the landing has no such cost
        came[1:, b] = np.arange(held)
        if cost[held, b - 1] + push < cost[held, b]:
            cost[held, b], came[held, b] = cost[held, b - 1] + push, held
        a = np.arange(b - 1, max(b - most, 0) - 1, -1)
        slope = (line[b] - line[a]) / (b - a)
        above = (line[b] - line[a] + BELOW) / (b - a)
        clear = slope <= np.concatenate([[np.inf], np.minimum.accumulate(above)[:-1]])
        start = (heights[b] - heights[a]) / ((b - a) * dt) + 0.5 * GRAVITY * (b - a) * dt
        off = (start - before[a]) ** 2 + (start - GRAVITY * (b - a) * dt - after[b]) ** 2
        total = np.where(clear & (b - a >= least), cost[held, a] + 0.5 * off / SPEED**2 + UNLIKELY, np.inf)
        best = int(np.argmin(total))
        cost[0, b], begun[b] = total[best], a[best]
    found: list[Flight] = []
    t, state = count - 1, int(np.argmin(cost[:, -1]))
    while t > 0:
        if state > 0:
            state, t = int(came[state, t]), t - 1
            continue
        a = int(begun[t])
        start = (heights[t] - heights[a]) / ((t - a) * dt) + 0.5 * GRAVITY * (t - a) * dt
        off = max(abs(start - before[a]), abs(start - GRAVITY * (t - a) * dt - after[t]))
        found.append(Flight(a, t, float(off)))
        t, state = a, held
    return found[::-1]


def _speeds(heights: Array, fps: float) -> tuple[Array, Array]:
    """Return the mean speeds (T,) before and after each frame."""
    span, frames = max(1, round(SPAN * fps)), np.arange(len(heights))
    low, high = np.maximum(frames - span, 0), np.minimum(frames + span, len(heights) - 1)
    before = (heights - heights[low]) * fps / np.maximum(frames - low, 1)
    after = (heights[high] - heights) * fps / np.maximum(high - frames, 1)
    return before, after


def _push_costs(heights: Array, fps: float) -> Array:
    """Return the cost (T,) of accelerations that the floor cannot cause: downward pulls, or too strong pushes."""
    before, after = _speeds(heights, fps)
    acceleration = (after - before) * fps / max(1, round(SPAN * fps))
    acceleration[[0, -1]] = 0.0
    falls = np.maximum(-GRAVITY - acceleration, 0.0) / FALLS
    pushed = np.maximum(acceleration - PUSH, 0.0) / HARDER
    return np.minimum(falls**2, WORST) + np.minimum(pushed**2, WORST)
