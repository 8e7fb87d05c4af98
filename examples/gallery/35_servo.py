"""A servo beside a plain loop
===========================

A target moves, jumps by 40 cm, gets lost, and comes back elsewhere. A plain loop solves for the newest target
and goes there at once: its velocity and acceleration have no limit. A `Servo` gets the same targets, and keeps both
limits in every tick. What it pays is time: it arrives later.
"""

import matplotlib.pyplot as plt
import numpy as np

import synovia as sy

RATE, VELOCITY, ACCELERATION = 200, 2.0, 10.0  # ticks per second, rad/s, rad/s²

arm = sy.bundled("arm7")
down = sy.Rotation.from_euler("x", 180, degrees=True)
times = np.arange(0, 5, 1 / RATE)
targets = np.stack([0.45 + 0.05 * np.cos(3 * times), -0.2 + 0.05 * np.sin(3 * times), 0.3 + 0.0 * times], axis=1)
targets[times >= 1.0] += (-0.05, 0.4, 0.1)  # the jump
lost = (times >= 2.4) & (times < 3.4)
targets[times >= 3.4] -= (0.0, 0.3, 0.0)

ik = sy.IK(arm, sy.PoseGoal("tool"))
start = ik.solve((targets[0], down), {"joint2": 0.6, "joint4": -1.8, "joint6": 2.4}).pose
servo = sy.Servo(ik, rate=RATE, velocity=VELOCITY, acceleration=ACCELERATION, timeout=0.2)
servo.reset(start)

pose, plain, led = start, [start], [start]
for target, gone in zip(targets, lost, strict=True):
    if not gone:
        pose = ik.solve((target, down), pose, follow=True).pose
    plain.append(pose)
    led.append(servo.step(None if gone else (target, down)).pose)

figure, (place, speed, push) = plt.subplots(3, figsize=(8, 8), sharex=True, layout="constrained")
seen = np.where(lost[:, None], np.nan, targets)
place.plot(times, seen[:, 1], color="black", linestyle=":", label="target")
for name, poses, colour in (("plain loop", plain, "tab:red"), ("servo", led, "tab:blue")):
    velocity = np.diff([one.q for one in poses], axis=0) * RATE
    acceleration = np.diff(velocity, axis=0, prepend=0.0 * velocity[:1]) * RATE
    fastest, hardest = np.abs(velocity).max(1), np.abs(acceleration).max(1)
    print(f"{name}: at most {fastest.max():.1f} rad/s and {hardest.max():.1f} rad/s²")
    place.plot(times, [one.position("tool")[1] for one in poses[1:]], color=colour, label=name)
    speed.plot(times, fastest, color=colour)
    push.plot(times, hardest, color=colour)
place.set(ylabel="y of the tool, m")
place.legend(loc="upper right")
for axes, limit, unit in ((speed, VELOCITY, "rad/s"), (push, ACCELERATION, "rad/s²")):
    axes.axhline(limit, color="tab:blue", linestyle="--", linewidth=1)
    axes.annotate("limit of the servo", (1.5, limit), va="bottom", color="tab:blue", fontsize="small")
    axes.set(ylabel=f"fastest joint, {unit}", yscale="symlog")
    axes.set_ylim(0, None)
for axes in (place, speed, push):
    axes.axvspan(2.4, 3.4, color="0.92", label="no target")
push.set(xlabel="seconds")
place.annotate("no target", (2.9, 0.0), ha="center", color="0.4")
figure.savefig("servo.png", dpi=120)
