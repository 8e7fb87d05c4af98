"""The VMC protocol: poses of humanoid avatars over UDP, in and out.

A message ``/VMC/Ext/Bone/Pos`` has the name of a bone of Unity's Humanoid, and its position and rotation relative to
its parent bone. ``/VMC/Ext/Root/Pos`` has position and rotation of the whole body, ``/VMC/Ext/T`` the sender's time,
and ``/VMC/Ext/OK`` the number 1. The root may also have a scale and an offset, which only fit the avatar to a picture
of the person; they are ignored. In a T-pose, all rotations are the identity, as in VRM avatars. Unity's axes are
left-handed: x to the right, y up, z ahead, in metres. Here x points to the left of the body: x changes its sign, and y
and z of quaternions.

See https://protocol.vmc.info (MIT licence), the version 2.0.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Final

import numpy as np

from synovia.io.bundled import bundled
from synovia.model import Joint, Kind, Pose, Skeleton
from synovia.model.anatomy.names import SIDES
from synovia.model.geometry import Array, matrix_to_quat, quat_product, quat_to_matrix, rigid
from synovia.retargeting.body import Body
from synovia.retargeting.rest_pose import standing_target
from synovia.retargeting.straight import straightened
from synovia.streams.base import Datagrams, Sample, Sender
from synovia.streams.osc import Message, OscError, bundle, message, read_messages

PORT: Final = 39539
_BONE, _ROOT, _TIME, _OK = "/VMC/Ext/Bone/Pos", "/VMC/Ext/Root/Pos", "/VMC/Ext/T", "/VMC/Ext/OK"
_BODY: Final = "body"  # key for the root's message, which moves the whole body
_MIRROR: Final = np.array([-1.0, 1.0, 1.0])
_MIRROR_QUAT: Final = np.array([1.0, -1.0, -1.0, 1.0])
_FARTHEST: Final = 1e4  # metres; larger values are not positions
_UNIT: Final = 0.1  # a quaternion's length may deviate from 1 by this much
_SIZE: Final = 1300  # bytes: datagrams are not larger, so that networks do not split them
# the sender has restarted if its time goes back by this many seconds, or goes back in more datagrams than this
_RESTART: Final = 1.0, 10
_FIRST: Final = 3  # the body is complete after this number of frames with the same bones
_PATIENCE: Final = 30  # number of frames to wait for missing ancestors of received bones, such as the hand of a finger
_NO_LENGTH: Final = 1e-6  # metres: shorter limb bones count as sent without an offset

_TRUNK: Final = ("hips", "spine", "chest", "upper_chest", "neck", "head", "jaw", "left_eye", "right_eye")
_LIMBS: Final = ("shoulder", "upper_arm", "lower_arm", "hand", "upper_leg", "lower_leg", "foot", "toes")
_PHALANGES: Final = ("Proximal", "Intermediate", "Distal")


def _names() -> dict[str, tuple[str, tuple[str, ...]]]:
    """Return, for each role, Unity's name of the bone and the roles of its ancestors, the nearest first."""
    out: dict[str, tuple[str, tuple[str, ...]]] = {}
    spine = ("upper_chest", "chest", "spine", "hips")
    above: dict[str, tuple[str, ...]]
    above = {"hips": (), "spine": ("hips",), "chest": ("spine", "hips"), "upper_chest": spine[1:], "neck": spine}
    above |= {"head": ("neck", *spine)} | dict.fromkeys(_TRUNK[6:], ("head",))
    for part in _TRUNK:
        out[part] = _title(part), above[part]
    for side in SIDES:
        arm = [f"{side}_{part}" for part in _LIMBS[:4]]
        leg = [f"{side}_{part}" for part in _LIMBS[4:]]
        for line, base in ((arm, spine), (leg, ("hips",))):
            for k, part in enumerate(line):
                out[part] = _title(part), (*line[:k][::-1], *base)
        for finger in ("thumb", "index", "middle", "ring", "little"):
            joints = [f"{side}_{finger}_{k}" for k in (1, 2, 3)]
            for k, part in enumerate(joints):
                name = f"{side.title()}{finger.title()}{_PHALANGES[k]}"
                out[part] = name, (*joints[:k][::-1], f"{side}_hand")
    return out


def _title(part: str) -> str:
    """Return Unity's name of a bone, given its role."""
    return "".join(word.title() for word in part.split("_"))


BONES: Final = _names()
_PART_OF: Final = {name: part for part, (name, _) in BONES.items()}


def _above(part: str, known: Iterable[str]) -> str | None:
    """Return the nearest ancestor of a role among known roles; None if there is none."""
    return next((one for one in BONES[part][1] if one in known), None)


def _attached(known: Iterable[str]) -> dict[str, str | None]:
    """Return the known roles that are connected to the hips, parents first, each with its parent."""
    known, out = set(known), dict[str, str | None]()
    for part in BONES:
        if part in known and (part == "hips" or _above(part, out) is not None):
            out[part] = _above(part, out)
    return out


@cache
def _usual_places() -> dict[str, Array]:
    """Return the position (3,) of each role in the bundled body's T-pose; missing bones get their parents'."""
    body = Body.of(bundled("humanoid_hands"))
    straight = straightened(body, body.basis[:, 1], body.basis[:, 2])[:, 9:] @ body.basis
    out: dict[str, Array] = {}
    for part in BONES:
        above = _above(part, out)
        out[part] = out[above] if part not in body.roles and above is not None else straight[body.roles[part]]
    return out


def _offsets(bones: Mapping[str, Array], above: Mapping[str, str | None]) -> dict[str, Array]:
    """Return each bone's offset from its parent, (3,), by role.

    Some senders know only rotations and send 0 for all offsets; the offsets of the bundled body then replace them. If
    only some limb bones have offset 0, they get offsets of the bundled body, scaled to the size of the sender's body.
    """
    usual = _usual_places()
    ways = {part: usual[part] - usual[one] for part, one in above.items() if one is not None}
    given = {part: bones[part][:3] for part in ways}
    lengths = {part: float(np.linalg.norm(place)) for part, place in given.items()}
    known = [length for length in lengths.values() if length > _NO_LENGTH]
    whole = sum(float(np.linalg.norm(ways[part])) for part in ways if lengths[part] > _NO_LENGTH)
    size = sum(known) / whole if whole > 0.0 else 1.0
    limbs = {part for part in ways if part.split("_", 1)[-1] in _LIMBS} if known else set(ways)
    return {part: size * ways[part] if part in limbs and lengths[part] <= _NO_LENGTH else given[part] for part in ways}


class VmcSink:
    """Send poses in the form of a VRM avatar's poses.

    Args:
        skeleton: The body to send; its bones are found by role, as in ``retarget``.
        host: The address.
        port: The port.
        remote: Whether the address may be that of another machine.

    Raises:
        InputError: If the body has no hips and legs, or the address is that of another machine.

    Example:
        >>> import synovia as sy
        >>> sink = sy.streams.VmcSink(sy.bundled("humanoid").with_root("free"), port=39539)
        >>> sink.send(sink.skeleton.rest_pose(), 0.0)
        >>> sink.close()
    """

    def __init__(self, skeleton: Skeleton, host: str = "127.0.0.1", port: int = PORT, *, remote: bool = False) -> None:
        """Find the bones by role, and open the socket."""
        self.skeleton = skeleton
        body, _ = standing_target(Body.of(skeleton).required())
        self._parts = [part for part in BONES if part in body.roles]
        place = {part: k for k, part in enumerate(self._parts)}
        self._rows = np.array([body.roles[part] for part in self._parts])
        self._parents = np.array([-1 if (a := _above(p, place)) is None else place[a] for p in self._parts])
        B = body.basis
        straight = straightened(body, B[:, 1], B[:, 2])[self._rows, :9].reshape(-1, 3, 3)
        self._basis, self._local = B, np.swapaxes(straight, 1, 2) @ B  # R_Tᵀ B, where R_T is a rotation in the T-pose
        self._scale = skeleton.meters_per_unit or 1.0
        self._sender = Sender(host, port, remote=remote)

    def frames(self, pose: Pose) -> tuple[Array, Array]:
        """Return positions (bones, 3) and quaternions (bones, 4) relative to the parent bones, in Unity's axes."""
        frames = pose.frames[self._rows]
        turns = self._basis.T @ (frames[:, :9].reshape(-1, 3, 3) @ self._local)
        places = self._scale * (frames[:, 9:] @ self._basis)
        above = np.where(self._parents[:, None, None] < 0, np.eye(3), turns[self._parents])
        start = np.where(self._parents[:, None] < 0, 0.0, places[self._parents])
        back = np.swapaxes(above, 1, 2)
        offsets = (back @ (places - start)[:, :, None])[:, :, 0]
        return offsets * _MIRROR, matrix_to_quat(back @ turns) * _MIRROR_QUAT

    def send(self, pose: Pose, time: float) -> None:
        """Send a pose in one or several datagrams, each with the time."""
        places, quats = self.frames(pose)
        stamp = message(_TIME, (float(time),))
        root = message(_ROOT, ("root", 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0))
        parts = [message(_OK, (1,)), root]
        for part, place, quat in zip(self._parts, places.tolist(), quats.tolist(), strict=True):
            parts.append(message(_BONE, (BONES[part][0], *place, *quat)))
        group: list[bytes] = [stamp]
        for one in parts:
            if sum(map(len, group)) + len(one) + 4 * len(group) > _SIZE:
                self._sender.send(bundle(group))
                group = [stamp]
            group.append(one)
        self._sender.send(bundle(group))

    def close(self) -> None:
        """Close the socket."""
        self._sender.close()


class VmcSource:
    """Receive poses of an avatar.

    The skeleton has the bones and offsets of the first frames; if the sender has no offsets, it has those of the
    bundled body. Joints have the names of roles, such as ``left_hand``, and the rest pose is the T-pose. Bones whose
    parents never arrive, such as fingers without a hand, are left out. The bones of one frame may arrive in several
    datagrams; their time ``/VMC/Ext/T`` groups them. The sender's root moves the hips.

    Args:
        host: The address to listen on.
        port: The port; 0 for any free port, see ``address``.
        remote: Whether the address may be reachable from other machines.

    Raises:
        InputError: If the address is reachable from other machines, and ``remote`` is not set.
        FileError: If the port cannot be used.

    Example:
        >>> import synovia as sy
        >>> source = sy.streams.VmcSource(port=0)
        >>> source.poll(), source.skeleton
        ([], None)
        >>> source.close()
    """

    def __init__(self, host: str = "127.0.0.1", port: int = PORT, *, remote: bool = False) -> None:
        """Open the socket."""
        self._socket = Datagrams(host, port, remote=remote)
        self.address = self._socket.address
        self.skeleton: Skeleton | None = None
        self.ended = False
        self.dropped: Counter[str] = Counter()
        self._bones: dict[str, Array] = {}  # newest position and quaternion of each bone, by role
        self._root: Array | None = None  # newest position and rotation of the whole body
        self._group: set[str] = set()
        self._time: float | None = None
        self._sent = True
        self._frames = self._older = self._waited = self._known = 0

    def poll(self) -> list[Sample]:
        """Return the samples that have arrived."""
        out: list[Sample] = []
        for data in self._socket.read():
            self.take(data, out)
        if self._time is None and self._group:  # the sender sends no times
            self._emit(out)
        return out

    def take(self, data: bytes, out: list[Sample]) -> None:
        """Read a datagram, and append the samples that are complete with it; count and skip an unreadable datagram."""
        try:
            messages = read_messages(data)
            found, time = _content(messages)
        except OscError:
            self.dropped["not readable"] += 1
            return
        if time is not None and self._time is not None and time != self._time:
            if time < self._time and self._time - time < _RESTART[0] and self._older < _RESTART[1]:
                self._older += 1
                self.dropped["out of order"] += 1
                return
            self._emit(out)  # what remained of the previous frame
            self._group.clear()
        self._older = 0
        if time is not None and time != self._time:
            self._time, self._sent = time, False
        self._group |= found.keys()
        self._root = found.pop(_BODY, self._root)
        self._bones |= found
        if self._time is not None and self.skeleton is not None and self._group >= self._needed:
            self._emit(out)

    def _emit(self, out: list[Sample]) -> None:
        """Append the sample of the current frame, unless it was already appended or the body is not known yet."""
        if not self._group or (self._time is not None and self._sent):
            return
        self._sent = True
        if self.skeleton is None:
            self._frames = self._frames + 1 if len(self._bones) == self._known else 1
            self._waited, self._known = self._waited + 1, len(self._bones)
            above = _attached(self._bones)
            loose = len(above) < self._known and self._waited < _PATIENCE
            if self._frames < _FIRST or "hips" not in self._bones or loose:
                return
            self._build(above)
        q = self._rest.copy()
        for part, at in self._at.items():
            q[at : at + 4] = self._bones[part][3:]
        q[:3] = self._bones["hips"][:3]
        if self._root is not None:
            at = self._at["hips"]
            q[:3] = self._root[:3] + quat_to_matrix(self._root[3:]) @ q[:3]
            q[at : at + 4] = quat_product(self._root[3:], q[at : at + 4])
        out.append(Sample(q, self._time))
        if self._time is None:
            self._group.clear()

    def _build(self, above: Mapping[str, str | None]) -> None:
        """Build the skeleton from received bones; ``above`` has the parent of each."""
        offsets = {"hips": np.zeros(3)} | _offsets(self._bones, above)
        joints = [
            Joint(part, one, Kind.FREE if part == "hips" else Kind.BALL, rigid(offsets[part]))
            for part, one in above.items()
        ]
        self.skeleton = skeleton = Skeleton(joints, name="VMC", up="y", forward="z", meters_per_unit=1.0)
        self._rest = skeleton.rest_q.copy()
        self._at = {
            name: skeleton.q_slice(row).start + (3 if name == "hips" else 0)
            for row, name in enumerate(skeleton.joint_names)
        }
        self._needed = frozenset(self._at) | ({_BODY} & self._group)

    def close(self) -> None:
        """Close the socket."""
        self.ended = True
        self._socket.close()


def _content(messages: Iterable[Message]) -> tuple[dict[str, Array], float | None]:
    """Return position and quaternion of each bone and of the whole body, in right-handed axes, by role; and the time.

    Raises:
        OscError: If a value is invalid.
    """
    found: dict[str, Array] = {}
    time: float | None = None
    for address, values in messages:
        if address == _TIME and len(values) == 1:
            stamp = values[0]
            if not isinstance(stamp, int | float) or not math.isfinite(stamp):
                raise OscError("time")
            time = float(stamp)
        elif address in (_BONE, _ROOT) and len(values) >= 8:
            part = _BODY if address == _ROOT else _PART_OF.get(str(values[0]))
            if part is None:
                continue
            if not all(isinstance(value, float | int) for value in values[1:8]):
                raise OscError("numbers of a bone")
            numbers = np.array(values[1:8], np.float64)
            length = float(np.linalg.norm(numbers[3:]))
            if not np.abs(numbers).max() <= _FARTHEST or not abs(length - 1.0) <= _UNIT:
                raise OscError("numbers of a bone")
            found[part] = np.concatenate([numbers[:3] * _MIRROR, numbers[3:] * _MIRROR_QUAT / length])
    return found, time
