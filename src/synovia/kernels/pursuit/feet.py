"""Feet that are planted, frame by frame: contacts without later frames, and the path of a rigid foot with contacts."""

import math

from synovia.kernels.compiler.jit import F, entry, inline
from synovia.kernels.math.vectors import add, axpy, dot, load, norm, scale, store, sub

# Columns of the thresholds of a point: heights at which contact begins and ends, and below which the foot is on tiptoe
BEGINS, ENDS, TIPTOE = 0, 1, 2
# Settings: motions below which contact begins, below which it lasts, and below which a point is at rest; ticks for
# which a high point must be slow, or at rest, to have contact
SLOW_BEGINS, SLOW_ENDS, RESTS, SLOW_FOR, RESTS_FOR = 0, 1, 2, 3, 4
# Columns of the state of a point: ticks for which it has been slow, and at rest; whether it has contact although it is
# high; and whether it has contact
SLOW, STILL, AWAY, STANDS = 0, 1, 2, 3
WATCH_THRESHOLDS, WATCH_SETTINGS, WATCH_STATE = 3, 5, 4

# Settings of paths: frames after a contact in which a foot returns to its own path; frames in which it rotates from its
# own direction to that of its contact, and back; fraction of its height error that a planted point loses in a frame;
# largest displacement that counts as zero; upward direction
SWING, TURN, LEVELING, NONE, UP = 0, 1, 2, 3, 4
# Columns of the state of a point: whether it is planted, and where. Of an ankle also: frames since the last contact,
# and the displacement then; frames since ankle and toe were planted, and the line from ankle to toe then
PLANTED, HOLD, SINCE, SHIFT, AGO, FLAT = 0, 1, 4, 5, 8, 9
PLANT_SETTINGS, PLANT_STATE = 7, 12


@entry
def watch_contacts(places, before, up, thresholds, settings, state):
    """Find the points that have contact; see the columns above.

    Args:
        places: Positions of the points, (n, 3).
        before: Their positions some ticks ago, (n, 3), infinite for none; replaced by ``places``.
        up: Upward direction, (1, 3).
        thresholds: (n, WATCH_THRESHOLDS).
        settings: (WATCH_SETTINGS,).
        state: (n, WATCH_STATE).
    """
    for i in range(places.shape[0]):
        place = load(places, i, 0)
        moved, height = norm(sub(place, load(before, i, 0))), dot(place, load(up, 0, 0))
        store(before, i, 0, place)
        stood = state[i, STANDS] > F(0)
        low = height < thresholds[i, ENDS if stood else BEGINS]
        state[i, SLOW] = state[i, SLOW] + F(1) if moved < settings[SLOW_BEGINS] else F(0)
        state[i, STILL] = state[i, STILL] + F(1) if moved < settings[RESTS] else F(0)
        waited = state[i, SLOW] >= settings[SLOW_FOR] and height < thresholds[i, TIPTOE]
        waited = waited or state[i, STILL] >= settings[RESTS_FOR]
        away = not low and (waited or state[i, AWAY] > F(0))
        stands = moved < settings[SLOW_ENDS if stood else SLOW_BEGINS] and (low or away)
        state[i, AWAY] = F(1) if away and stands else F(0)
        state[i, STANDS] = F(1) if stands else F(0)


@inline
def _ease(u):
    """Return a step from 0 to 1, for u from 0, whose speed and acceleration are 0 at both ends."""
    u = min(u, F(1))
    return u * u * u * (u * (F(6) * u - F(15)) + F(10))


@inline
def _held(known, own, begin, settings, state):
    """Return where a planted point stays: at the known place, else where it was, or at ``begin`` in a new contact."""
    if math.isfinite(known[0]):
        return known[0], known[1], known[2]
    if state[PLANTED] <= F(0):
        return begin
    up, hold = (settings[UP], settings[UP + 1], settings[UP + 2]), (state[HOLD], state[HOLD + 1], state[HOLD + 2])
    return axpy(settings[LEVELING] * dot(sub(own, hold), up), up, hold)


@entry
def plant_feet(own, stands, mates, settings, state, holds, places):
    """Write where ankles and toes should be; the two are one rigid foot.

    Planted points keep their places. While only the toe is planted, the foot rotates about it. While both are, the foot
    keeps its direction, which it takes and leaves within TURN frames. After a contact, the displacement of the foot
    fades within SWING frames.

    Args:
        own: Positions of the points without contacts, ankles before toes, (T, n, 3).
        stands: Above 0 for points that are planted, (T, n).
        mates: The other point of the same foot, (n,), -1 without one.
        settings: (PLANT_SETTINGS,).
        state: (n, PLANT_STATE).
        holds: Places of planted points that are known in advance, else NaN, (T, n, 3). A point without one stays where
            its contact begins.
        places: (T, n, 3), written.

    Returns:
        1 if a point is planted or displaced, else 0.
    """
    active = False
    for t in range(own.shape[0]):
        for i in range(own.shape[1]):
            m = mates[i]
            if 0 <= m < i:  # a toe
                continue
            heel, toe = stands[t, i] > F(0), m >= 0 and stands[t, m] > F(0)
            ankle, line = load(own[t], i, 0), (F(0), F(0), F(0))
            own_line = line
            faded = F(1) - _ease((state[i, SINCE] + F(1)) / settings[SWING])
            if m >= 0:
                own_line = sub(load(own[t], m, 0), ankle)
                length, flat = norm(own_line), load(state, i, FLAT)
                ago = state[i, AGO] if heel and toe and state[i, AGO] <= F(0) else state[i, AGO] + F(1)
                s, away = t, F(0)
                while s < own.shape[0] and away < min(ago, settings[TURN]):
                    if math.isfinite(holds[s, i, 0]) and math.isfinite(holds[s, m, 0]):
                        ago, flat = away, sub(load(holds[s], m, 0), load(holds[s], i, 0))
                        break
                    s, away = s + 1, away + F(1)
                share = _ease(ago / settings[TURN])
                line = add(scale(share, own_line), scale(F(1) - share, flat))
                line = scale(length / max(norm(line), F(1e-12)), line)
                state[i, AGO] = ago
            at = add(ankle, scale(faded, load(state, i, SHIFT)))
            if heel:
                begin = sub(load(state, m, HOLD), line) if toe and state[m, PLANTED] > F(0) else at
                at = _held(holds[t, i], ankle, begin, settings, state[i])
                store(state, i, HOLD, at)
            if toe:
                place = _held(holds[t, m], add(ankle, own_line), add(at, line), settings, state[m])
                store(state, m, HOLD, place)
                state[m, PLANTED] = F(1)
                if heel:
                    state[i, AGO] = F(0)
                    store(state, i, FLAT, sub(place, at))
                else:
                    at = sub(place, line)
            elif m >= 0:
                state[m, PLANTED] = F(0)
            state[i, PLANTED] = F(1) if heel else F(0)
            state[i, SINCE] += F(1)
            shift = sub(at, ankle)
            if heel or toe:
                state[i, SINCE] = F(0)
                store(state, i, SHIFT, shift)
            store(places[t], i, 0, at)
            turn = sub(line, own_line)
            if m >= 0:
                store(places[t], m, 0, add(at, line))
            active = active or heel or toe or norm(shift) > settings[NONE] or norm(turn) > settings[NONE]
    return 1 if active else 0
