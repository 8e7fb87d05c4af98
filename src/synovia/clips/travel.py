"""Find the path of a body whose joints are known relative to its hips, from planted feet and gravity in flight.

Relative to the hips, a planted foot moves backwards as fast as the hips move forwards. If no foot is planted, the
centre of mass keeps its horizontal velocity and falls with gravity; ``find_flights`` finds these flights. Given the
flights, linear least squares computes heights and velocities of the centre of mass, with a prior on its accelerations.
The prior's scale in each frame is the acceleration there, so that steady motion is smoothed and sudden stops stay
sharp. Feet that slide are outliers: their weight decreases step by step (graduated non-convexity).

In a flight, from one contact to the next, only gravity acts. While a foot is on the floor, the centre of mass is at its
known height above the foot. The floor pushes but does not pull, so contact cannot decelerate this height by more than
gravity. A stronger deceleration means that the body has left the floor. In a flight of duration T whose ends differ in
height by Δh, the height is a parabola with the speed v = Δh / T + g T / 2 at take-off. The parabola fits if its speeds
at the ends equal the speeds that the legs show before take-off and after landing.

References:
    Blake & Zisserman (1987), *Visual Reconstruction*, for graduated non-convexity; Geman & McClure (1985) for the
    weights of outliers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from synovia.bodies.masses import with_body_masses
from synovia.bodies.soles import sole_of
from synovia.clips.landmarks import SIDES
from synovia.clips.measured import roles_of, upward
from synovia.model import Skeleton
from synovia.model.anatomy.feet import feet_of, frames_text
from synovia.model.geometry import Array
from synovia.model.motion import Motion
from synovia.model.tree import ancestors
from synovia.text import DOUBT, counted
from synovia.tracking.trajectory.solve import solve_banded

Bools = NDArray[np.bool_]
ROUNDS: Final = 3  # number of rounds, which compute the flights from the path and then the path from the flights
HEEL: Final = 0.3  # distance of the heel behind the ankle, as a fraction of the distance from ankle to toes
STANDS: Final = 20.0  # percentile: a sole point counts as planted at this percentile of its heights over time
RAISED: Final = 0.015  # metres: a point that is raised by this has 1/e of the weight of a planted point
LOW: Final = 0.02  # metres: as ``RAISED``, to decide whether any foot has contact
NEAR: Final = 0.03  # metres: points that are raised by less may be planted
# metres per second, for each round: points that slide faster lose weight
OUTLIERS: Final = (np.inf, 2.0, 1.0, 0.5, 0.25, 0.2, 0.2, 0.2)
EXACT: Final = 0.05  # metres per second: standard deviation of the speed of a planted foot
WALKS: Final = 3.0  # metres per second²: standard deviation of the horizontal acceleration with contact
DRIFTS: Final = 0.3  # metres per second²: as ``WALKS``, in flight; not 0, because the centre of mass is an estimate
# metres per second: a slide of a foot in contact costs the square of its ratio to this, at most ``SLIP``
# ``SLIP``
SLIDES: Final = 0.5
SLIP: Final = 0.6  # largest cost of the slide of a foot in contact, per 1/30 s
SMALLEST: Final = 1e-3  # metres: smallest standard deviation of the noise of heights
SCATTER: Final = 3.0  # metres per second²: smallest standard deviation of the vertical acceleration with contact
FALLS: Final = 0.5  # metres per second²: standard deviation of the vertical acceleration in flight
IMPACT: Final = 100.0  # metres per second²: standard deviation of the vertical acceleration at the ends of a flight
# number of rounds, which compute heights from the scale of accelerations and then this scale from the heights
ADAPTED: Final = 4
UNSTEADY: Final = 0.3  # metres per second: feet that are faster are not planted
STEADY: Final = 0.05  # seconds: standard deviation of the filter that smooths the speeds compared with ``UNSTEADY``
REPORTED: Final = 0.05  # fraction of frames without a planted foot above which a note reports it
WANDERS: Final = 0.1  # metres: path errors from flights are reported if they exceed this and ``FAR``
FAR: Final = 0.1  # fraction of the path's extent; see ``WANDERS``
AROUND: Final = 0.1  # seconds before and after a flight over which its horizontal speed is measured
HARD: Final = 0.6  # metres per second: larger errors of a flight's vertical speeds are reported


@dataclass(frozen=True, slots=True, eq=False)
class Travel:
    """The path of a body, with its flights and uncertainty.

    Args:
        path: Positions of the middle of the hips, (T, 3), length units; the floor has height 0.
        flights: The times without contact.
        adrift: Mask of the intervals from each frame to the next, (T - 1,), that have no planted foot and are not
            flights.
        wander: Possible error of the horizontal path from flights, metres. The speed in a flight comes from the feet at
            take-off and landing, which may show different speeds.
        metre: Length units per metre of the person.
    """

    path: Array
    flights: Sequence[Flight]
    adrift: Bools
    wander: float = 0.0
    metre: float = 1.0

    def notes(self) -> list[str]:
        """Return sentences about how the path was found and where it is uncertain."""
        notes = ["the hips do not move in the points: their path follows from standing feet and gravity"]
        notes.append("the points do not show where the person is in the world, or how far from the camera")
        if self.flights:
            frames = [t for flight in self.flights for t in range(flight.first + 1, flight.end)]
            text = f"in the air in {counted(len(self.flights), 'flight')}: {frames_text(frames)}"
            notes.append(f"{text}; heights are right if the person is as tall as in the points")
        hard = [flight for flight in self.flights if flight.off > HARD]
        if hard:
            notes.append(
                f"{DOUBT}uncertain path: in {counted(len(hard), 'flight')} of {len(self.flights)}, leg speeds at"
                " take-off or landing do not fit gravity, so height and path are a guess"
            )
        if self.wander > max(WANDERS, FAR * self._range):
            notes.append(
                f"{DOUBT}uncertain path: in {counted(len(self.flights), 'flight')}, the feet show the speed over the"
                f" ground at take-off and landing only roughly, so the path may be off by {self.wander:.2f} m"
            )
        share = float(self.adrift.mean()) if len(self.adrift) else 0.0
        if share > REPORTED:
            frames = np.flatnonzero(self.adrift).tolist()
            notes.append(
                f"{DOUBT}uncertain path: in {100 * share:.0f} % of the frames no foot stands still, so the path is a"
                f" guess there: {frames_text(frames)}"
            )
        return notes

    @property
    def _range(self) -> float:
        """Extent of the path, metres."""
        return float(np.ptp(self.path, axis=0).max(initial=0.0)) / self.metre


def find_travel(body: Skeleton, q: Array, fps: float, metre: float = 1.0) -> Travel:
    """Return the path of a body's hips, with its flights.

    Args:
        body: The body; its rest pose stands.
        q: Joint values, (T, nq); the path of the root in them is ignored.
        fps: Frames per second.
        metre: Length units per metre of the person.
    """
    up = upward(body)
    soles, masses = _relative(body, q, up)
    soles, masses = soles / metre, masses / metre
    stands = _standing_heights(body, up) / metre
    stands = _leveled(stands, soles @ up)
    heights = stands - soles @ up  # (T, K): height of the hips if sole point k is planted
    floor = heights.max(1)
    level = masses - np.outer(masses @ up, up)
    ways = (np.diff(level, axis=0)[:, None] - np.diff(soles - (soles @ up)[..., None] * up, axis=0)) * fps
    lows = floor[:, None] - heights
    low = np.maximum(lows[1:], lows[:-1])
    near = np.exp(-low / LOW)
    flights: list[Flight] = []
    hips, flying = floor, np.zeros(max(len(q) - 1, 0), bool)
    velocity = np.zeros((max(len(q) - 1, 0), 3))
    smooth = _heights(floor + masses @ up, [], fps)
    for _ in range(ROUNDS if len(q) > 2 else 1):
        raised = hips[:, None] - heights
        weights = np.exp(-np.maximum(np.maximum(raised[1:], raised[:-1]), 0.0) / RAISED) * ~flying[:, None]
        velocity = _velocities(ways, weights, flying, fps)
        slips = np.linalg.norm(ways - velocity[:, None], axis=2)
        slips = np.sum(near * np.minimum((slips / SLIDES) ** 2, SLIP), axis=1) / near.sum(1)
        flights = find_flights(smooth, slips, fps)
        flying = np.zeros(len(velocity), bool)
        for flight in flights:
            flying[flight.first : flight.end] = True
        hips = _heights(floor + masses @ up, flights, fps) - masses @ up
    ahead = np.concatenate([np.zeros((1, 3)), np.cumsum(velocity, axis=0) / fps])
    path = ahead - level + level[:1] + np.outer(hips, up)
    for flight in flights:  # leave out frames next to a flight, in which a foot is neither still nor in the air
        flying[max(flight.first - 1, 0) : flight.end + 1] = True
    adrift = _adrift(ways, velocity, low, fps) & ~flying
    return Travel(metre * path, flights, adrift, _wander(ways, near, flights, fps), metre)


def middle_of_hips(body: Skeleton, q: Array) -> Array:
    """Return the position of the middle of the hips in each frame, (T, 3)."""
    rows = roles_of(body)
    return Motion(body, q, 1.0).positions()[:, [rows[f"{side}_upper_leg"] for side in SIDES]].mean(1)


def _relative(body: Skeleton, q: Array, up: Array) -> tuple[Array, Array]:
    """Return sole points (T, K, 3) and the centre of mass (T, 3), both relative to the middle of the hips."""
    rows = roles_of(body)
    frames = Motion(body, q, 1.0).frames()
    turns, places = frames[..., :9].reshape(*frames.shape[:2], 3, 3), frames[..., 9:]
    hips = 0.5 * (places[:, rows["left_upper_leg"]] + places[:, rows["right_upper_leg"]])
    weighed = body if any(joint.mass > 0.0 for joint in body.joints) else with_body_masses(body)
    masses = np.array([joint.mass for joint in weighed.joints])
    centres = places + np.einsum("tnij,nj->tni", turns, np.array([joint.com for joint in weighed.joints]))
    soles = [places[:, row] + turns[:, row] @ offset for row, offset in _points(body, up)]
    return np.stack(soles, axis=1) - hips[:, None], np.einsum("n,tni->ti", masses / masses.sum(), centres) - hips


def _points(body: Skeleton, up: Array) -> list[tuple[int, Array]]:
    """Return points of both soles as (joint, offset): the toe joint and the heel, or only the ankle without toes.

    Points beyond the toe joints are not used, because landmarks do not show how toes bend.
    """
    rows = roles_of(body)
    rest = np.array(body.rest_pose().frames)
    points: list[tuple[int, Array]] = []
    for side in SIDES:
        ankle = rows.get(f"{side}_foot", rows[f"{side}_lower_leg"])
        below = [row for row in range(ankle + 1, len(body)) if ankle in ancestors(body.parents, row)]
        toes = rows.get(f"{side}_toes", below[0] if below and f"{side}_foot" in rows else ankle)
        points.append((toes, np.zeros(3)))
        if toes != ankle:
            ahead = rest[toes, 9:] - rest[ankle, 9:]
            lowest = min(float((rest[row, 9:] - rest[ankle, 9:]) @ up) for row in below)
            heel = HEEL * (float(ahead @ up) * up - ahead) + lowest * up
            points.append((ankle, rest[ankle, :9].reshape(3, 3).T @ heel))
    return points


def _standing_heights(body: Skeleton, up: Array) -> Array:
    """Return the heights (K,) of the sole points above the lowest sole, at rest."""
    rest, rows = np.array(body.rest_pose().frames), roles_of(body)
    ankles = [rows.get(f"{side}_foot", rows[f"{side}_lower_leg"]) for side in SIDES]
    floor = min(float(sole_of(body, foot, up).lowest(rest, up)) for foot in feet_of(body, ankles))
    return (
        np.array([(rest[row, 9:] + rest[row, :9].reshape(3, 3) @ offset) @ up for row, offset in _points(body, up)])
        - floor
    )


def _leveled(stands: Array, soles: Array) -> Array:
    """Return the heights (K,) at which the sole points are planted, from their lowest heights in the motion.

    Args:
        stands: Heights of the sole points at rest, (K,).
        soles: Heights of the sole points relative to the hips, (T, K).
    """
    hips = (stands - soles).max(1)
    level = np.percentile(hips[:, None] + soles, STANDS, axis=0)
    return level - level.min() + stands.min()


def _velocities(ways: Array, weights: Array, flying: Bools, fps: float) -> Array:
    """Return the horizontal velocities of the centre of mass from each frame to the next, (T - 1, 3).

    Args:
        ways: Velocity of the centre of mass if sole point k is planted, (T - 1, K, 3).
        weights: Likelihood of contact of each sole point, from its height, (T - 1, K).
        flying: Mask of the intervals of flights, (T - 1,).
        fps: Frames per second.
    """
    if len(ways) < 2:
        return np.asarray(ways[:, 0] if len(ways) else np.zeros((0, 3)))
    scale = np.where(flying[1:] & flying[:-1], DRIFTS, WALKS) / fps
    found = np.zeros((len(ways), 3))
    for outlier in OUTLIERS:
        slides = np.linalg.norm(ways - found[:, None], axis=2)
        own = weights / (EXACT * (1.0 + (slides / outlier) ** 2)) ** 2
        band = np.zeros((2, len(ways)))
        band[0] = own.sum(1) + 1e-6
        band[0, :-1] += scale**-2
        band[0, 1:] += scale**-2
        band[1, :-1] = -(scale**-2)
        found = solve_banded(band, np.einsum("tk,tki->ti", own, ways))
    return found


def _heights(floor: Array, flights: Sequence[Flight], fps: float) -> Array:
    """Return the heights (T,) of the centre of mass, smoothed in contact and falling freely in flights.

    Args:
        floor: Heights of the centre of mass with the lower foot on the floor, (T,).
        flights: The flights, in which ``floor`` is ignored.
        fps: Frames per second.
    """
    if len(floor) < 3:
        return floor
    seen = np.ones(len(floor))
    expected, scale = np.zeros(len(floor)), np.zeros(len(floor))
    for first, end, _ in flights:
        seen[first + 1 : end] = 0.0
        expected[first + 1 : end], scale[first + 1 : end] = -GRAVITY, FALLS
        scale[[first, end]] = IMPACT
    noise = max(_noise(floor), SMALLEST)
    found = floor
    for _ in range(ADAPTED):
        bend = np.pad(np.diff(found, 2) * fps**2, 1)
        least = np.where(scale > 0.0, scale, np.maximum(np.abs(bend), SCATTER))
        stiff = (noise * fps**2 / least[1:-1]) ** 2
        band = np.zeros((3, len(floor)))
        band[0] = seen + 1e-9
        right = seen * floor
        for k, factor in enumerate((1.0, -2.0, 1.0)):
            band[0, k : len(floor) - 2 + k] += stiff * factor**2
            right[k : len(floor) - 2 + k] += stiff * factor * expected[1:-1] / fps**2
        band[1, :-2] += -2.0 * stiff
        band[1, 1:-1] += -2.0 * stiff
        band[2, :-2] += stiff
        found = solve_banded(band, right)
    return found


def _noise(values: Array) -> float:
    """Return the standard deviation of the noise in values (T,); fourth differences remove the motion."""
    bends = np.abs(np.diff(values, 4))
    return float(1.4826 * np.median(bends) / np.sqrt(70.0)) if len(bends) else 0.0


def _wander(ways: Array, weights: Array, flights: Sequence[Flight], fps: float) -> float:
    """Return the possible error of the horizontal path from flights, metres.

    The error of the displacement in a flight is about its duration times the standard deviation of the velocities that
    the sole points show before and after it. The errors of flights are independent.

    Args:
        ways: See ``_velocities``.
        weights: Likelihood that each sole point is on the floor, (T - 1, K).
        flights: The flights.
        fps: Frames per second.
    """
    around = max(1, round(AROUND * fps))
    total = 0.0
    for flight in flights:
        first, end = range(max(flight.first - around, 0), flight.first), range(flight.end, flight.end + around)
        rows = [t for t in (*first, *end) if t < len(ways)]
        if not rows:
            continue
        own = weights[rows][..., None] + 1e-9
        mean = np.sum(own * ways[rows], axis=(0, 1)) / own.sum()
        variance = np.sum(own * (ways[rows] - mean) ** 2) / own.sum()
        total += float(variance) * ((flight.end - flight.first) / fps) ** 2
    return float(np.sqrt(total))


def _adrift(ways: Array, velocity: Array, low: Array, fps: float) -> Bools:
    """Return a mask of the intervals (T - 1,) in which every sole point near the floor slides."""
    from scipy import ndimage

    blur: Any = ndimage.gaussian_filter1d  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    if not len(ways):
        return np.zeros(0, bool)
    slides = np.asarray(blur(ways - velocity[:, None], STEADY * fps, axis=0, mode="nearest"), np.float64)
    return np.where(low < NEAR, np.linalg.norm(slides, axis=2), np.inf).min(1) > UNSTEADY


GRAVITY: Final = 9.81  # metres per second²
LONGEST: Final = 0.8  # seconds: longest flight, as in a jump 0.8 m high
SHORTEST: Final = 0.15  # seconds: shortest flight; the body rises less than 3 cm in it
GROUNDED: Final = 0.08  # seconds: least contact between two flights, which a foot needs to push the body off
SPEED: Final = 0.5  # metres per second: scale of the differences between parabola and legs at take-off and landing
SLOWS: Final = 4.0  # metres per second²: scale of deceleration in contact beyond gravity, which noise may cause
PUSH: Final = 30.0  # metres per second²: largest upward acceleration that the legs give the body
HARDER: Final = 10.0  # metres per second²: scale of upward acceleration beyond ``PUSH``
WORST: Final = 20.0  # largest cost of an acceleration that the floor cannot cause
UNLIKELY: Final = 2.0  # cost of a flight, larger than what a flight can gain by fitting noise
BELOW: Final = 0.02  # metres: in flight, a foot may be this far below the floor
FRAME: Final = 1.0 / 30.0  # seconds of contact that costs refer to
SPAN: Final = 0.033  # seconds over which speeds and accelerations are measured


class Flight(NamedTuple):
    """A flight: a time without contact.

    Args:
        first: Last frame with contact before the flight.
        end: First frame with contact after the flight.
        off: Largest difference between the speeds of parabola and legs at the flight's ends, metres per second.
    """

    first: int
    end: int
    off: float


def find_flights(heights: Array, costs: Array, fps: float) -> list[Flight]:
    """Return the flights that minimize the total cost of contacts and parabolas, by dynamic programming.

    Args:
        heights: Height of the centre of mass with the lower foot on the floor, (T,), metres.
        costs: Cost of contact from each frame to the next, (T - 1,); above 0 if no foot stands still.
        fps: Frames per second.
    """
    count, dt = len(heights), 1.0 / fps
    least, most = max(2, round(SHORTEST * fps)), max(2, round(LONGEST * fps))
    held = max(1, round(GROUNDED * fps))
    before, after = _speeds(heights, fps)
    pushes = _push_costs(heights, fps) * dt / FRAME
    steps = costs * dt / FRAME
    # heights plus g t² / 2, which make a flight's parabola a straight line
    line = heights + 0.5 * GRAVITY * (np.arange(count) * dt) ** 2
    # state k < held: k steps of contact since the landing; state held: ``held`` steps or more. Flights begin only in
    # state held.
    cost = np.full((held + 1, count), np.inf)
    cost[held, 0] = 0.0
    came = np.zeros((held + 1, count), np.intp)
    begun = np.full(count, -1)
    for b in range(1, count):
        push = pushes[b - 1] + steps[b - 1]
        cost[1:, b] = cost[:-1, b - 1] + push
        cost[1, b] -= pushes[b - 1]  # the frame of the landing has no push cost
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
    """Return the cost (T,) of accelerations that the floor cannot cause: downward pulls, and pushes too strong."""
    before, after = _speeds(heights, fps)
    acceleration = (after - before) * fps / max(1, round(SPAN * fps))
    acceleration[[0, -1]] = 0.0
    falls = np.maximum(-GRAVITY - acceleration, 0.0) / SLOWS
    pushed = np.maximum(acceleration - PUSH, 0.0) / HARDER
    return np.minimum(falls**2, WORST) + np.minimum(pushed**2, WORST)
