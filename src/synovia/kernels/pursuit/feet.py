"""Contacts of feet, tick by tick: find which points of the source's feet stand, and where the target's points stay."""

import math

from synovia.kernels.compiler.jit import F, entry
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

# Settings of corrections: seconds per tick; fraction of its height error that a standing point loses in a tick; largest
# correction that counts as zero; rates (1/s) at which corrections of swinging and of rolling points change; upward
# direction
STEP, LEVELING, NONE, SWING, ROLL, UP = 0, 1, 2, 3, 4, 5
# Columns of the state of a point: what it does (``SWINGS`` and the following); its position while it stands; its
# correction, the velocity and the goal of the correction, the offset from the goal and the velocity of the offset, (3,)
# each; the rate at which the offset fades; what the point does next
DOES, HOLD, NOW, SPEED, GOAL, OFF, DRIFT, PACE, NEXT = 0, 1, 4, 7, 10, 13, 16, 19, 20
PLANT_SETTINGS, PLANT_STATE = 8, 21
SWINGS, STAYS, ROLLS = F(0), F(1), F(2)


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


@entry
def plant_points(own, stands, mates, settings, state, places):
    """Write where points of the target's feet should be.

    A point that begins to stand keeps its position. After any other change, its correction moves to the new goal with
    critical damping, solved exactly over each tick.

    Args:
        own: Positions of the points without corrections, (n, 3).
        stands: Above 0 for points that stand, (n,).
        mates: The other point of the same foot, (n,), -1 without one.
        settings: (PLANT_SETTINGS,).
        state: (n, PLANT_STATE).
        places: (n, 3), written.

    Returns:
        1 if a point stands or a correction is above zero, else 0.
    """
    h, up = settings[STEP], (settings[UP], settings[UP + 1], settings[UP + 2])
    active = False
    for i in range(own.shape[0]):
        place, goal, does = load(own, i, 0), (F(0), F(0), F(0)), SWINGS
        if stands[i] > F(0):
            does, active = STAYS, True
            hold = load(state, i, HOLD) if state[i, DOES] == STAYS else add(place, load(state, i, NOW))
            hold = axpy(settings[LEVELING] * dot(sub(place, hold), up), up, hold)
            store(state, i, HOLD, hold)
            goal = sub(hold, place)
        elif mates[i] >= 0 and stands[mates[i]] > F(0):
            does = ROLLS
        state[i, NEXT] = does
        store(state, i, GOAL, goal)
    for i in range(own.shape[0]):
        does = state[i, NEXT]
        if does == ROLLS:
            store(state, i, GOAL, load(state, mates[i], GOAL))
        if does == state[i, DOES]:
            continue
        off, drift = sub(load(state, i, NOW), load(state, i, GOAL)), load(state, i, SPEED)
        if does == STAYS:
            off, drift = (F(0), F(0), F(0)), (F(0), F(0), F(0))
        elif does == ROLLS:
            drift = sub(drift, load(state, mates[i], SPEED))
        store(state, i, OFF, off)
        store(state, i, DRIFT, drift)
        state[i, PACE] = settings[ROLL if does == ROLLS else SWING]
    for i in range(own.shape[0]):
        off, drift, w = load(state, i, OFF), load(state, i, DRIFT), state[i, PACE]
        fade, push = math.exp(-h * w), scale(h, axpy(w, off, drift))
        off, drift = scale(fade, add(off, push)), scale(fade, axpy(-w, push, drift))
        now = add(load(state, i, GOAL), off)
        store(state, i, SPEED, scale(F(1) / h, sub(now, load(state, i, NOW))))
        store(state, i, OFF, off)
        store(state, i, DRIFT, drift)
        store(state, i, NOW, now)
        store(places, i, 0, add(load(own, i, 0), now))
        state[i, DOES] = state[i, NEXT]
        active = active or max(abs(now[0]), abs(now[1]), abs(now[2])) > settings[NONE]
    return 1 if active else 0
