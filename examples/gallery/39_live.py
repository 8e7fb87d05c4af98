"""Two bodies follow a live source
===============================

A recorded walk plays a tracker that sends VMC packets, and two bodies follow while the packets come: a character with
short legs, and a humanoid whose joints are slow. One packet in ten is lost on the way, one in ten comes twice, and in
the middle the tracker loses its person for a second. Both bodies hold, then go over to where the person is again.
"""

from pathlib import Path

import numpy as np

import synovia as sy

EXAMPLES = Path("..") if Path("../walk.bvh").exists() else Path("examples")
walk = sy.load_motion(EXAMPLES / "walk.bvh")
bodies = {"character": sy.load_skeleton(EXAMPLES / "character.glb"), "slow humanoid": sy.bundled("humanoid")}
limits = {"character": {}, "slow humanoid": {"velocity": 5.0, "acceleration": 50.0}}

source = sy.streams.VmcSource(port=0)  # any free port
tracker = sy.streams.VmcSink(walk.skeleton, port=source.address[1])
rng, follows, clips = np.random.default_rng(0), {}, {name: [] for name in bodies}
for frame in range(len(walk)):
    if not 45 <= frame < 75 and rng.uniform() > 0.1:
        for _ in range(1 + (rng.uniform() < 0.1)):
            tracker.send(walk[frame], frame / walk.fps)
    samples = source.poll()
    if source.skeleton is None:
        continue  # the first packets show which bones there are
    for name, body in bodies.items():
        if name not in follows:
            follows[name] = sy.LiveRetarget(source.skeleton, body, rate=walk.fps, learn=0, **limits[name])
        for sample in samples:
            follows[name].receive(sample.pose, sample.time)
        clips[name].append(follows[name].step())
tracker.close()
source.close()

left, right = (sy.Motion(follows[name].skeleton, [pose.q for pose in poses], walk.fps) for name, poses in clips.items())
for name, live in follows.items():
    print(f"{name}: {live.report()}\n")
sy.render(right, "live.gif", next_to=left, titles=tuple(bodies), size=(640, 360), fps=15, force=True)
