"""Small FBX files, ASCII and binary: a tree of nodes with any transform, takes of several layers, and a skin."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Sequence

import numpy as np

SECOND = 46_186_158_000  # ticks
ORDERS = "XYZ", "XZY", "YZX", "YXZ", "ZXY", "ZYX"  # by their number; the first axis turns first


class Record:
    """A record: name, values, records inside. A list of numbers is an array."""

    def __init__(self, name: str, *values: object, inner: Iterable[Record] | None = None) -> None:
        self.name, self.values = name, values
        self.inner = None if inner is None else list(inner)


def prop(name: str, kind: str, *values: object, more: str = "") -> Record:
    return Record("P", name, kind, more, "A", *values)


def ascii_of(records: Sequence[Record], version: int = 7400) -> bytes:
    """Return the text of a file."""
    out = [f"; FBX {version // 1000}.{version // 100 % 10}.0 project file"]

    def put(record: Record, deep: int) -> None:
        tabs = "\t" * deep
        if len(record.values) == 1 and isinstance(record.values[0], list):
            numbers = ",".join(map(repr, record.values[0]))
            out.append(f"{tabs}{record.name}: *{len(record.values[0])} {{\n{tabs}\ta: {numbers}\n{tabs}}}")
            return
        values = ", ".join(f'"{value}"' if isinstance(value, str) else repr(value) for value in record.values)
        out.append(f"{tabs}{record.name}: {values}" + (" {" if record.inner is not None else ""))
        for inner in record.inner or ():
            put(inner, deep + 1)
        if record.inner is not None:
            out.append(f"{tabs}}}")

    for record in records:
        put(record, 0)
    return ("\n".join(out) + "\n").encode()


def binary_of(records: Sequence[Record], version: int = 7400, *, packed: bool = True) -> bytes:
    """Return the binary form of a file; arrays are packed."""
    head = struct.Struct("<QQQB" if version >= 7500 else "<IIIB")

    def value(one: object) -> bytes:
        if isinstance(one, str):
            name, mark, kind = one.partition("::")
            text = (f"{kind}\0\1{name}" if mark else one).encode()
            return b"S" + struct.pack("<I", len(text)) + text
        if isinstance(one, list):
            whole = all(isinstance(number, int) for number in one)
            large = whole and any(abs(number) >= 2**31 for number in one)
            data = np.array(one, "<i8" if large else "<i4" if whole else "<f8").tobytes()
            stored = zlib.compress(data) if packed else data
            return (
                (b"l" if large else b"i" if whole else b"d")
                + struct.pack("<III", len(one), packed, len(stored))
                + stored
            )
        if isinstance(one, int):
            return (b"L" + struct.pack("<q", one)) if abs(one) >= 2**31 or one > 1000 else b"I" + struct.pack("<i", one)
        return b"D" + struct.pack("<d", one)

    def put(record: Record, at: int) -> bytes:
        body = b"".join(map(value, record.values))
        name = record.name.encode()
        out = name + body
        start = at + head.size
        for inner in record.inner or ():
            out += put(inner, start + len(out))
        if record.inner is not None:
            out += bytes(head.size)
        return head.pack(start + len(out), len(record.values), len(body), len(name)) + out

    out = b"Kaydara FBX Binary  \0\x1a\0" + struct.pack("<I", version)
    for record in records:
        out += put(record, len(out))
    return out + bytes(head.size + 160)


def file_of(
    nodes: dict[str, dict[str, object]],
    takes: dict[str, list[dict[str, object]]] | None = None,
    *,
    mesh: dict[str, object] | None = None,
    up: str = "y",
    centimetres: float = 100.0,
    mode: int = 6,
    version: int = 7400,
    span: tuple[float, float] = (0.0, 1.0),
    more: Sequence[Record] = (),
) -> list[Record]:
    """Return the records of a file.

    Args:
        nodes: Properties by name: ``parent``, ``kind`` (LimbNode), and those of the transform, such as
            ``Lcl Translation``, ``PreRotation``, ``RotationOrder`` (a number), ``InheritType`` (a number).
        takes: Layers of each take: keys by (node, property, axis): times (s) and values; ``additive`` adds its values.
        mesh: Vertices, triangles, and the weights by node: (vertices, weights), with the mesh's own node at the origin.
        up: Axis that points up.
        centimetres: Unit of length.
        mode: Number of the frame rate; 6 is 30.
        version: Version of the file.
        span: Begin and end of each take, seconds.
        more: Further objects.
    """
    axes = {"y": (1, 2, 0), "z": (2, 1, 0)}[up]
    settings = [
        prop("UpAxis", "int", axes[0], more="Integer"), prop("UpAxisSign", "int", 1, more="Integer"),
        prop("FrontAxis", "int", axes[1], more="Integer"),
        prop("FrontAxisSign", "int", 1 if up == "y" else -1, more="Integer"),
        prop("CoordAxis", "int", 0, more="Integer"), prop("CoordAxisSign", "int", 1, more="Integer"),
        prop("UnitScaleFactor", "double", float(centimetres), more="Number"), prop("TimeMode", "enum", mode),
    ]  # fmt: skip
    objects: list[Record] = []
    links: list[Record] = []
    numbers = {name: 1001 + row for row, name in enumerate(nodes)}
    for name, given in nodes.items():
        own = {key: value for key, value in given.items() if key not in ("parent", "kind")}
        props = [prop("RotationActive", "bool", 1)]
        for key, value in own.items():
            whole = isinstance(value, int)
            props.append(
                prop(key, "enum", value) if whole else prop(key, "Vector3D", *map(float, value), more="Vector")
            )
        kind = str(given.get("kind", "LimbNode"))
        inner = [Record("Version", 232), Record("Properties70", inner=props)]
        objects.append(Record("Model", numbers[name], f"Model::{name}", kind, inner=inner))
        links.append(Record("C", "OO", numbers[name], numbers.get(str(given.get("parent")), 0)))
        if kind == "LimbNode":
            objects.append(Record("NodeAttribute", 100 + numbers[name] * 10, "NodeAttribute::", "LimbNode", inner=[]))
            links.append(Record("C", "OO", 100 + numbers[name] * 10, numbers[name]))
    if mesh is not None:
        _mesh(mesh, numbers, objects, links)
    free = 500_001
    for name, layers in (takes or {}).items():
        stack = free
        begin, end = (round(at * SECOND) for at in span)
        limits = [prop("LocalStart", "KTime", begin, more="Time"), prop("LocalStop", "KTime", end, more="Time")]
        inner = [Record("Properties70", inner=limits)]
        objects.append(Record("AnimationStack", stack, f"AnimStack::{name}", "", inner=inner))
        free += 1
        for keys in layers:
            layer, additive = free, bool(keys.get("additive"))
            inner = (
                [
                    Record(
                        "Properties70",
                        inner=[prop("BlendMode", "enum", 0), prop("RotationAccumulationMode", "enum", 1)],
                    )
                ]
                if additive
                else []
            )
            objects.append(Record("AnimationLayer", layer, f"AnimLayer::L{free}", "", inner=inner))
            links.append(Record("C", "OO", layer, stack))
            free += 1
            nodes_of: dict[tuple[str, str], int] = {}
            for key, (times, values) in ((key, pair) for key, pair in keys.items() if key != "additive"):
                node, what, axis = key
                if (node, what) not in nodes_of:
                    nodes_of[node, what] = free
                    base = (0.0, 0.0, 0.0) if additive else nodes[node].get(what, (float("Sca" in what),) * 3)
                    props = [prop(f"d|{axis}", "Number", float(one)) for axis, one in zip("XYZ", base, strict=True)]
                    inner = [Record("Properties70", inner=props)]
                    objects.append(Record("AnimationCurveNode", free, f"AnimCurveNode::{what[4:5]}", "", inner=inner))
                    links.append(Record("C", "OO", free, layer))
                    links.append(Record("C", "OP", free, numbers[node], what))
                    free += 1
                inner = [
                    Record("Default", 0.0), Record("KeyVer", 4009),
                    Record("KeyTime", [round(at * SECOND) for at in times]),
                    Record("KeyValueFloat", [float(one) for one in values]),
                    Record("KeyAttrFlags", [4]),
                    Record("KeyAttrDataFloat", [0.0, 0.0, 0.0, 0.0]),
                    Record("KeyAttrRefCount", [len(times)]),
                ]  # fmt: skip
                objects.append(Record("AnimationCurve", free, "AnimCurve::", "", inner=inner))
                links.append(Record("C", "OP", free, nodes_of[node, what], f"d|{axis}"))
                free += 1
    return [
        Record("FBXHeaderExtension", inner=[Record("FBXHeaderVersion", 1003), Record("FBXVersion", version)]),
        Record("GlobalSettings", inner=[Record("Version", 1000), Record("Properties70", inner=settings)]),
        Record("Objects", inner=[*objects, *more]),
        Record("Connections", inner=links),
    ]


def _mesh(mesh: dict[str, object], numbers: dict[str, int], objects: list[Record], links: list[Record]) -> None:
    """Add a mesh with a skin: vertices, triangles, matrices of the bones when it was bound, and weights."""
    vertices = [float(x) for point in mesh["vertices"] for x in point]
    corners = [int(x) if k < 2 else -int(x) - 1 for face in mesh["faces"] for k, x in enumerate(face)]
    objects.append(Record("Model", 2001, "Model::skin", "Mesh", inner=[Record("Version", 232)]))
    shape = [Record("Vertices", vertices), Record("PolygonVertexIndex", corners)]
    objects.append(Record("Geometry", 2002, "Geometry::", "Mesh", inner=shape))
    objects.append(Record("Deformer", 2003, "Deformer::", "Skin", inner=[]))
    links += [Record("C", "OO", 2001, 0), Record("C", "OO", 2002, 2001), Record("C", "OO", 2003, 2002)]
    for row, (bone, (matrix, at, weights)) in enumerate(mesh["bones"].items()):
        inner = [
            Record("Indexes", [int(x) for x in at]), Record("Weights", [float(x) for x in weights]),
            Record("Transform", np.linalg.inv(matrix).T.ravel().tolist()),
            Record("TransformLink", np.asarray(matrix, float).T.ravel().tolist()),
        ]  # fmt: skip
        objects.append(Record("Deformer", 2010 + row, "SubDeformer::", "Cluster", inner=inner))
        links += [Record("C", "OO", 2010 + row, 2003), Record("C", "OO", numbers[bone], 2010 + row)]


def turn(angles: Sequence[float], order: int = 0) -> np.ndarray:
    """Return the rotation of angles about the axes, degrees, in an order of FBX."""
    out = np.eye(3)
    for axis in ORDERS[order]:
        a = np.radians(angles["XYZ".index(axis)])
        c, s = np.cos(a), np.sin(a)
        one = {"X": [[1, 0, 0], [0, c, -s], [0, s, c]], "Y": [[c, 0, s], [0, 1, 0], [-s, 0, c]]}
        out = np.array(one.get(axis, [[c, -s, 0], [s, c, 0], [0, 0, 1]])) @ out
    return out


def local(given: dict[str, object]) -> np.ndarray:
    """Return the matrix of a node from its properties, as Autodesk's documentation defines it."""

    def move(name: str, sign: float = 1.0) -> np.ndarray:
        out = np.eye(4)
        out[:3, 3] = sign * np.asarray(given.get(name, (0.0, 0.0, 0.0)), float)
        return out

    def turned(name: str, order: int = 0) -> np.ndarray:
        out = np.eye(4)
        out[:3, :3] = turn(given.get(name, (0.0, 0.0, 0.0)), order)
        return out

    scale = np.diag([*given.get("Lcl Scaling", (1.0, 1.0, 1.0)), 1.0])
    return (
        move("Lcl Translation") @ move("RotationOffset") @ move("RotationPivot") @ turned("PreRotation")
        @ turned("Lcl Rotation", int(given.get("RotationOrder", 0))) @ np.linalg.inv(turned("PostRotation"))
        @ move("RotationPivot", -1.0) @ move("ScalingOffset")
        @ move("ScalingPivot") @ scale @ move("ScalingPivot", -1.0)
    )  # fmt: skip


def worlds(nodes: dict[str, dict[str, object]]) -> dict[str, np.ndarray]:
    """Return the world places of all nodes by name, in the file's axes and unit.

    The scale of a parent is inherited along the axes of the child (type 0, RrSs), along its own (type 1, RSrs), or not
    at all (type 2, Rrs, which has that of the grandparents if the parent is of type 0); it always moves the child.
    """
    places: dict[str, np.ndarray] = {}
    known: dict[str, tuple[np.ndarray, np.ndarray]] = {}  # of the frame: linear part, and that without the own scale
    scales: dict[str, tuple[np.ndarray, np.ndarray]] = {}  # own with what is inherited, and what is inherited
    one = np.ones(3)
    for name, given in nodes.items():
        matrix = local(given)
        own = np.asarray(given.get("Lcl Scaling", one), float)
        rotation = matrix[:3, :3] / own
        parent = str(given.get("parent", ""))
        linear, bare = known.get(parent, (np.eye(3), np.eye(3)))
        total, before = scales.get(parent, (one, one))
        places[name] = places.get(parent, np.zeros(3)) + linear @ matrix[:3, 3]
        kind = int(given.get("InheritType", 0)) if parent else 1
        if kind == 1:
            known[name], scales[name] = (linear @ matrix[:3, :3], linear @ rotation), (own, one)
        else:
            inherited = total if kind == 0 else before
            scales[name] = own * inherited, inherited
            known[name] = bare @ rotation * (own * inherited), bare @ rotation
    return places


def sample() -> tuple[dict[str, dict[str, object]], dict[str, list[dict[str, object]]], dict[str, object]]:
    """Return nodes, two takes, one of them of two layers, and the mesh of a small file."""
    nodes: dict[str, dict[str, object]] = {
        "root": {"Lcl Translation": (0.0, 1.0, 0.0), "kind": "Null"},
        "upper": {
            "parent": "root", "Lcl Translation": (0.1, 0.2, 0.0), "PreRotation": (10.0, 20.0, -30.0),
            "RotationOrder": 3, "RotationPivot": (0.1, 0.0, 0.2),
        },
        "lower": {
            "parent": "upper", "Lcl Translation": (0.5, 0.0, 0.1), "Lcl Rotation": (5.0, -40.0, 20.0), "InheritType": 2,
        },
        "end": {"parent": "lower", "Lcl Translation": (0.4, 0.0, 0.0), "PostRotation": (0.0, 15.0, 0.0)},
    }  # fmt: skip
    takes = {
        "swing": [{("upper", "Lcl Rotation", "Z"): ((0.0, 0.5, 1.0), (0.0, 80.0, -20.0))}],
        "both": [
            {("root", "Lcl Translation", "X"): ((0.0, 1.0), (0.0, 2.0))},
            {"additive": True, ("root", "Lcl Translation", "X"): ((0.0, 1.0), (1.0, 0.0)),
             ("lower", "Lcl Rotation", "Y"): ((0.0, 1.0), (0.0, 90.0))},
        ],
    }  # fmt: skip
    place = np.eye(4)
    place[:3, 3] = (0.1, 1.2, 0.0)
    mesh = {
        "vertices": [(0, 1, 0), (1, 1, 0), (0, 2, 0)], "faces": [(0, 1, 2)],
        "bones": {"upper": (place, [0, 1], [1.0, 0.25]), "lower": (np.eye(4), [1, 2], [0.75, 1.0])},
    }  # fmt: skip
    return nodes, takes, mesh
