"""Write the contents of an FBX file, read by the package ``ufbx``, to the standard output as JSON and binary values.

``read.unpacked`` runs this file in a separate process, with only the standard library and ``ufbx``. So a damaged file
can neither crash the calling program nor use up its memory or time, and the process starts quickly.

``ufbx`` 0.0.5 hands out its elements (nodes, layers, clusters, ...) without counting the reference, so every returned
element goes through ``_held`` first. Otherwise the element would be freed while in use.
"""

from __future__ import annotations

import ctypes
import json
import os
import struct
import sys
from array import array
from importlib import import_module
from typing import Any

BINARY = b"Kaydara FBX Binary  \x00"
MOST_FRAMES = 2**20  # largest plausible number of frames of a take; above it, the key times define the length
RATES = 1.0, 1000.0  # plausible frames per second; other rates count only if a curve has a key in each frame
_ON_FRAME = 0.01  # tolerance, in frames, within which the length of a curve counts as a whole number of frames
_ARRAYS = {b"f": 4, b"d": 8, b"l": 8, b"i": 4, b"b": 1, b"c": 1}  # bytes of an array entry, by type code
_SCALARS = {b"Y": 2, b"C": 1, b"B": 1, b"I": 4, b"F": 4, b"D": 8, b"L": 8}
_UNPACKED = 2**28, 64  # largest size of unpacked arrays: bytes, and further bytes for each byte of the file
_MEMORY = 2**30, 96  # largest memory: bytes, and further bytes for each byte of the file
_SECONDS = 60.0, 1e-5  # largest processor time: seconds, and further seconds for each byte of the file
_DEPTH = 64  # largest nesting depth of records
_MOVING = {
    "Lcl Translation", "Lcl Rotation", "Lcl Scaling", "PreRotation", "PostRotation", "RotationOffset", "RotationPivot",
    "ScalingOffset", "ScalingPivot", "RotationOrder", "RotationActive",
}  # fmt: skip


_FAULTS = 2, 7, 9, 11, 12  # warning types of ufbx: truncated arrays, bad versions, names, connections, duplicate ids
_DUAL = 2, 3  # ufbx's skinning methods with dual quaternions


class Refused(Exception):  # noqa: N818  an error of the file, not of this program
    """The file cannot be read; the text says why."""


def _held(element: Any) -> Any:
    """Return an element after adding the reference that ``ufbx`` did not count."""
    if element is not None:
        _count(element)
    return element


_count = ctypes.pythonapi.Py_IncRef
_count.argtypes = [ctypes.py_object]
_count.restype = None


def check(data: bytes) -> None:
    """Check that the records of a binary file end where they say, and that its arrays do not unpack to too many bytes.

    Raises:
        Refused: If the check fails.
    """
    if not data.startswith(BINARY) or len(data) < 27:
        return
    order = ">" if data[22:23] == b"\x01" else "<"
    (version,) = struct.unpack_from(order + "I", data, 23)
    head = struct.Struct(order + ("QQQB" if version >= 7500 else "IIIB"))
    packed = struct.Struct(order + "III")
    length = struct.Struct(order + "I")
    total, most = 0, _UNPACKED[0] + _UNPACKED[1] * len(data)
    at, ends = 27, [len(data)]
    while at + head.size <= len(data):
        end, count, size, name = head.unpack_from(data, at)
        if end == 0:  # end of the nested records of a record, or of the file
            at += head.size
            if len(ends) == 1:
                return
            at = ends.pop()
            continue
        if not at < end <= ends[-1] or at + head.size + name + size > end or count > size:
            raise Refused(f"record at byte {at} does not end within its parent")
        at += head.size + name
        stop = at + size
        for _ in range(count):
            kind = data[at : at + 1]
            at += 1
            if kind in _SCALARS:
                at += _SCALARS[kind]
            elif kind in (b"S", b"R") and at + 4 <= stop:
                at += 4 + length.unpack_from(data, at)[0]
            elif kind in _ARRAYS and at + 12 <= stop:
                entries, _, stored = packed.unpack_from(data, at)
                total += entries * _ARRAYS[kind]
                at += 12 + stored
            else:
                break  # ufbx decides about unknown types
            if at > stop:
                raise Refused(f"value at byte {at} does not end within its record")
            if total > most:
                raise Refused(f"packed arrays hold {total} bytes or more, expected at most {most}")
        at = stop
        if at < end:
            ends.append(end)
            if len(ends) > _DEPTH:
                raise Refused(f"records are nested more than {_DEPTH} deep")


class _Blobs:
    """Binary values for the output; the JSON refers to these values by offset and length."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.size = 0

    def add(self, numbers: array[Any] | bytes) -> list[int]:
        """Append values, and return their offset and length, bytes."""
        data = numbers if isinstance(numbers, bytes) else numbers.tobytes()
        self.parts.append(data)
        self.size += len(data)
        return [self.size - len(data), len(data)]


def _transform(out: array[float], transform: Any) -> None:
    """Append the ten numbers of a transform of ``ufbx``: translation, rotation (quaternion x, y, z, w), scale."""
    out.extend(transform.translation)
    out.extend(transform.rotation)
    out.extend(transform.scale)


def _matrix(out: array[float], matrix: Any) -> None:
    """Append the four columns of a matrix."""
    for column in matrix:
        out.extend(column)


def _unpack(data: bytes, most: int, *, meshes: bool) -> tuple[dict[str, Any], _Blobs]:
    """Read the skeleton with its takes, or with its meshes."""
    ufbx: Any = import_module("ufbx")
    try:
        scene = ufbx.load_memory(
            data,
            ignore_geometry=not meshes,
            ignore_animation=meshes,
            ignore_embedded=not meshes,
            space_conversion=ufbx.SpaceConversion.MODIFY_GEOMETRY,
            target_axes=ufbx.axes_right_handed_y_up,
            target_unit_meters=1.0,
            file_format=ufbx.FileFormat.FBX,
            node_depth_limit=20_000,
        )
    except ufbx.UfbxError as error:
        raise Refused(str(error)) from error
    _held(scene)  # the scene is kept until the process ends, because its elements refer to it
    blobs = _Blobs()
    nodes = [_held(node) for node in scene.nodes]
    rest = array("d")
    for node in nodes:
        _transform(rest, node.local_transform)
    settings, metadata = scene.settings, scene.metadata
    rate = settings.frames_per_second
    if not RATES[0] <= rate <= RATES[1] and not _is_keyed(scene, rate):
        rate = 30.0
    out: dict[str, Any] = {
        "version": metadata.version,
        "nodes": [_node(node) for node in nodes],
        "rest": blobs.add(rest),
        "rate": rate,
        "faults": [warning.description for warning in metadata.warnings if int(warning.type) in _FAULTS],
        "constraints": [_held(constraint).name for constraint in scene.constraints],
        "skins": _skins(scene, blobs),
    }
    if meshes:
        images: dict[int, list[Any]] = {}
        out["meshes"] = [_mesh(_held(mesh), blobs, images) for mesh in scene.meshes]
        out["images"] = list(images.items())
        places = array("d")
        for node in nodes:
            _matrix(places, node.node_to_world)
            _matrix(places, node.geometry_to_node)
        out["places"] = blobs.add(places)
    else:
        out["takes"], out["long"] = _takes(ufbx, scene, nodes, blobs, rate, most)
    return out, blobs


def _is_keyed(scene: Any, rate: float) -> bool:
    """Return whether any curve of a take has a key in each frame at a rate."""
    if not 0.0 < rate < float("inf"):
        return False
    for stack in scene.anim_stacks:
        for layer in _held(stack).layers:
            for prop in _held(layer).anim_props:
                _held(prop.element)
                for curve in _held(prop.anim_value).curves:
                    steps = 0 if _held(curve) is None else len(curve.keyframes) - 1
                    if steps > 0 and abs((curve.max_time - curve.min_time) * rate - steps) < _ON_FRAME:
                        return True
    return False


def _node(node: Any) -> list[Any]:
    """Return name, parent index, type, visibility, scale inheritance mode, and index of the node whose scale it has."""
    parent, source = _held(node.parent), _held(node.inherit_scale_node)
    return [
        node.name,
        -1 if parent is None else parent.typed_id,
        int(node.attrib_type),
        bool(node.visible),
        int(node.inherit_mode),
        -1 if source is None else source.typed_id,
    ]


def _skins(scene: Any, blobs: _Blobs) -> list[Any]:
    """Return, for each skin, the indices of the bones, and their matrices from mesh to bone."""
    out: list[Any] = []
    for skin in scene.skin_deformers:
        _held(skin)
        bones: list[int] = []
        binds = array("d")
        for cluster in skin.clusters:
            bone = _held(_held(cluster).bone_node)
            if bone is not None:
                bones.append(bone.typed_id)
                _matrix(binds, cluster.geometry_to_bone)
        out.append([bones, blobs.add(binds)])
    return out


def _mesh(mesh: Any, blobs: _Blobs, images: dict[int, list[Any]]) -> dict[str, Any]:
    """Return the polygons of a mesh, its materials, its nodes, its skin weights, and its blend shapes."""
    weights: list[Any] = []
    skins = list(mesh.skin_deformers)
    for skin in skins[:1]:
        for cluster in _held(skin).clusters:
            bone = _held(_held(cluster).bone_node)
            if bone is not None:
                bind = array("d")
                _matrix(bind, cluster.geometry_to_bone)
                parts = array("I", cluster.vertices), array("d", cluster.weights)
                weights.append([bone.typed_id, blobs.add(bind), *(blobs.add(part) for part in parts)])
    return {
        "name": mesh.name,
        "nodes": [_held(node).typed_id for node in mesh.instances],
        "vertices": blobs.add(bytes(memoryview(mesh.vertices))),
        "corners": blobs.add(array("I", mesh.vertex_indices)),
        "faces": blobs.add(bytes(memoryview(mesh.faces))),
        "normals": _of_corners(mesh.vertex_normal, blobs),
        "uvs": _of_corners(mesh.vertex_uv, blobs),
        "colours": _of_corners(mesh.vertex_color, blobs),
        "materials": blobs.add(array("I", mesh.face_material)),
        "paint": [_paint(_held(material), blobs, images) for material in mesh.materials],
        "skins": len(skins),
        "weights": weights,
        "dual": any(skin.skinning_method in _DUAL for skin in skins),
        "morphs": [
            _morph(_held(channel), blobs) for blend in mesh.blend_deformers for channel in _held(blend).channels
        ],
    }


def _of_corners(values: Any, blobs: _Blobs) -> list[list[int]]:
    """Return the values of a vertex attribute, and the index of the value of each polygon corner."""
    if not values.exists:
        return [blobs.add(b""), blobs.add(b"")]
    return [blobs.add(bytes(memoryview(values.values))), blobs.add(array("I", values.indices))]


def _morph(channel: Any, blobs: _Blobs) -> list[Any]:
    """Return name and weight of a blend shape, its vertices, and their offsets; of in-between shapes, only the last."""
    frames = list(channel.keyframes)
    shape = _held(frames[-1].shape) if frames else None
    if shape is None:
        return [channel.name, float(channel.weight), blobs.add(b""), blobs.add(b"")]
    moved = array("I", shape.offset_vertices), bytes(memoryview(shape.position_offsets))
    return [channel.name, float(channel.weight), *(blobs.add(part) for part in moved)]


def _paint(material: Any, blobs: _Blobs, images: dict[int, list[Any]]) -> list[Any] | None:
    """Return name, colour (red, green, blue, opacity; None for no colour) and image index of a material."""
    if material is None:
        return None
    colour: list[float] | None = None
    image = -1
    for found in (material.pbr.base_color, material.fbx.diffuse_color):
        texture = _held(found.texture)
        if texture is not None and image < 0:
            image = _image(texture, blobs, images)
        if colour is None and found.has_value:
            colour = list(found.value_vec4)[:3]
    factor, through = material.fbx.transparency_factor, material.fbx.transparency_color
    seen = 1.0
    if factor.has_value:
        seen -= factor.value_vec4[0] * (sum(list(through.value_vec4)[:3]) / 3.0 if through.has_value else 1.0)
    return [material.name, None if colour is None else [*colour, seen], image]


def _image(texture: Any, blobs: _Blobs, images: dict[int, list[Any]]) -> int:
    """Add the image of a texture, with its file names and any embedded bytes, and return its index."""
    files = list(texture.file_textures)
    first = _held(files[0]) if files else texture
    number = int(first.typed_id)
    if number not in images:
        names = [first.relative_filename, first.filename, first.absolute_filename]
        images[number] = [[name for name in names if name], blobs.add(bytes(first.content or b""))]
    return number


def _takes(
    ufbx: Any, scene: Any, nodes: list[Any], blobs: _Blobs, rate: float, most: int
) -> tuple[list[Any], list[str]]:
    """Return all takes, evaluated in each frame, and messages about takes that are too long."""
    out: list[Any] = []
    long: list[str] = []
    for stack in scene.anim_stacks:
        _held(stack)
        animated: set[int] = set()
        others: dict[str, None] = {}
        first, last = float("inf"), float("-inf")
        for layer in stack.layers:
            _held(layer)
            for prop in layer.anim_props:
                element = _held(prop.element)
                if not isinstance(element, ufbx.Node) or prop.prop_name not in _MOVING:
                    others[type(element).__name__] = None
                    continue
                animated.add(element.typed_id)
                for curve in _held(prop.anim_value).curves:
                    if _held(curve) is not None and len(curve.keyframes):
                        first, last = min(first, curve.min_time), max(last, curve.max_time)
        begin, end = float(stack.time_begin), float(stack.time_end)
        if not begin < end or (end - begin) * rate > MOST_FRAMES:
            begin, end = (first, last) if first <= last else (0.0, 0.0)
        if (end - begin) * rate > MOST_FRAMES:
            frames = (end - begin) * rate
            long.append(f"{stack.name!r} lasts {end - begin:,.0f} s, {frames:,.0f} frames, more than {MOST_FRAMES:,}")
            continue
        if not animated:
            continue
        rows = sorted(animated)
        count = max(int(-(-((end - begin) * rate - 0.01) // 1)), 0) + 1
        if count * len(rows) * 10 > most:
            long.append(f"{stack.name!r} has {count} frames of {len(rows)} nodes, too many for the size of the file")
            continue
        most -= count * len(rows) * 10
        values = array("d")
        anim = stack.anim
        for frame in range(count):
            time = begin + frame / rate
            for row in rows:
                _transform(values, ufbx.evaluate_transform(anim, nodes[row], time))
        out.append([stack.name, count, rows, blobs.add(values), list(others)])
    return out, long


def _limit(size: int) -> None:
    """Limit processor time and memory of this process for a file of ``size`` bytes."""
    try:
        resource: Any = import_module("resource")
    except ImportError:  # Windows has no module ``resource``
        return
    _lower(resource, resource.RLIMIT_CPU, int(_SECONDS[0] + _SECONDS[1] * size) + 1)
    if sys.platform == "linux":
        _lower(resource, resource.RLIMIT_AS, _MEMORY[0] + _MEMORY[1] * size)


def _lower(resource: Any, kind: int, most: int) -> None:
    """Set a limit of this process, at most its hard limit."""
    hard = resource.getrlimit(kind)[1]
    if hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    resource.setrlimit(kind, (most, most))


def main() -> None:
    """Read the file from the standard input; arguments: ``motions`` or ``meshes``, and the largest number of values."""
    data = sys.stdin.buffer.read()
    _limit(len(data))
    blobs = _Blobs()
    try:
        check(data)
        out, blobs = _unpack(data, int(sys.argv[2]), meshes=sys.argv[1] == "meshes")
    except Refused as refused:
        out = {"refused": str(refused)}
    except (MemoryError, RecursionError):
        out = {"refused": "describes more than fits in memory"}
    text = json.dumps(out).encode()
    body = b"".join(blobs.parts)
    stream = sys.stdout.buffer
    stream.write(struct.pack("<Q", len(text)) + text + body)
    stream.flush()
    os._exit(0)  # at its end, the interpreter would free elements that the scene has already freed


if __name__ == "__main__":
    main()
