"""The buffer of a live source: packets that are late, lost, doubled, exchanged, or of another clock."""

import numpy as np
import pytest

import synovia as sy
from synovia.retargeting.live.playout import SAMPLES, Playout

RATE = 60.0


def source():
    """Return a body of one slide and one ball, whose place shows the time."""
    return sy.Skeleton(
        [sy.Joint("slide", None, sy.Kind.SLIDE, axis=np.array([1.0, 0, 0])), sy.Joint("ball", "slide", sy.Kind.BALL)]
    )


def sample(time):
    """Return joint values at a time: as far as seconds, turned by as many radians."""
    return np.array([time, 0.0, 0.0, np.sin(0.5 * time), np.cos(0.5 * time)])


def played(packets, ticks, rate=RATE, offset=0.0):
    """Return the times that ticks play; packets are (arrival, stamp), and ticks begin at 0."""
    playout, out, packets = Playout(source(), rate), [], sorted(packets)
    for k in range(ticks):
        while packets and packets[0][0] <= k / rate + 1e-12:
            stamp = packets.pop(0)[1]
            playout.put(sample(stamp), stamp + offset)
        q, _ = playout.advance()
        out.append(np.nan if q is None else q[0])
        if q is not None:
            angle = 2.0 * np.arctan2(q[3], q[4])
            assert (angle - q[0] + np.pi) % (2.0 * np.pi) - np.pi == pytest.approx(0.0, abs=1e-9)
    return np.array(out), playout


def test_regular_samples_are_played_one_frame_late():
    times, playout = played([(k / RATE, k / RATE) for k in range(300)], 300)
    np.testing.assert_allclose(times[1:], (np.arange(299)) / RATE, atol=1e-9)
    assert playout.behind == pytest.approx(1.0 / RATE)
    assert not playout.counts


def test_lost_doubled_and_exchanged_packets_leave_no_jump_and_no_delay():
    rng, packets = np.random.default_rng(0), []
    for k in range(3600):
        u = rng.uniform()
        if u < 0.05:
            continue
        packets.append((k / RATE, k / RATE))
        if u < 0.10:
            packets.append((k / RATE, k / RATE))
        elif u < 0.15:
            packets[-1] = ((k + 1) / RATE, k / RATE)
    times, playout = played(packets, 3600)
    steps = np.diff(times[10:])
    assert steps.min() > 0.5 / RATE
    assert steps.max() < 1.6 / RATE
    behind = np.arange(3600) / RATE - times
    assert behind[-600:].mean() == pytest.approx(behind[100:700].mean(), abs=0.2 / RATE)
    assert behind[100:].max() < 3.0 / RATE
    assert playout.counts["doubled"] > 50


@pytest.mark.parametrize("factor", [0.98, 1.02])
def test_the_clock_of_the_source_is_followed(factor):
    packets = [(k / RATE / factor, k / RATE) for k in range(3600)]
    times, _ = played(packets, 3000)
    now = np.arange(3000) / RATE * factor
    assert np.abs(now - times)[600:].max() < 3.0 / RATE


def test_another_clock_is_followed_after_some_samples_and_a_stray_is_not():
    packets = [(k / RATE, k / RATE) for k in range(120)]
    packets.append((1.5, 500.0))
    packets += [((120 + k) / RATE, 1000.0 + k / RATE) for k in range(120)]
    times, playout = played(packets, 240)
    assert times[119] == pytest.approx(118 / RATE, abs=0.5 / RATE)
    assert times[-1] == pytest.approx(1000.0 + 118 / RATE, abs=1.0 / RATE)
    assert not (np.abs(times - 500.0) < 1.0).any()
    assert playout.counts["out of order"] == 3


def test_a_source_that_comes_back_is_played_from_there():
    packets = [(k / RATE, k / RATE) for k in range(60)] + [(61.0 + k / RATE, 61.0 + k / RATE) for k in range(60)]
    times, _ = played(packets, round(62.0 * RATE))
    assert times[60 * 30] == pytest.approx(59 / RATE, abs=2.0 / RATE)
    assert times[-1] == pytest.approx(62.0 - 2.0 / RATE, abs=1.0 / RATE)


def test_memory_stays_small():
    playout = Playout(source(), RATE)
    for k in range(10_000):
        playout.put(sample(0.0), 1e-4 * k)
    assert len(playout._times) <= SAMPLES
    assert playout.counts["too many"] >= 10_000 - 2 * SAMPLES
