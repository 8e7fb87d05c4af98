"""The objects of an FBX file, their properties and their connections, on top of its records."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np

from synovia.errors import FormatError, InputError, UnsupportedError
from synovia.io.base import SAME_TIME, read_bytes
from synovia.io.fbx.records import CREATED, FILE_ID, Record, Tree, is_binary, read_tree, write_tree
from synovia.io.fbx.text import read_text_tree
from synovia.model.geometry import Array

CLASS: Final = "\0\1"  # separator between the name of an object and its class
_TICKS: Final = 46_186_158_000  # ticks per second, unless TCDefinition selects another number
_NEW_TICKS: Final = 141_120_000  # ticks per second in files whose TCDefinition selects this number
_FIRST: Final = 1_000_000  # smallest number of a new object; 0 is the scene
_LARGEST: Final = 2**62  # upper bound of object numbers and of ticks, so that both fit in 64 bits
_OLD_TIME: Final = 127  # value of TCDefinition that means ``_TICKS``
_OLDEST: Final = 7000  # first version in which objects have numbers and takes are objects
_NEW: Final = 7400  # version of new files, which all programs read
_CREATOR: Final = "Synovia"
# Code of each frame rate in the global settings. Other rates are "custom", also those of NTSC, which readers round.
_RATES: Final = {
    120.0: 1, 100.0: 2, 60.0: 3, 50.0: 4, 48.0: 5, 30.0: 6, 25.0: 10, 24.0: 11, 1000.0: 12, 96.0: 15, 72.0: 16,
}  # fmt: skip
_CUSTOM: Final = 14
_SAME_RATE: Final = 1e-9  # relative difference of two rates that counts as equal
# Axes (up, front, right), each with its sign, by the axis that points up. Front is where the viewer stands.
_AXES: Final = {
    "x": ((0, 1), (2, 1), (1, -1)),
    "-x": ((0, -1), (2, 1), (1, 1)),
    "y": ((1, 1), (2, 1), (0, 1)),
    "-y": ((1, -1), (2, 1), (0, -1)),
    "z": ((2, 1), (1, -1), (0, 1)),
    "-z": ((2, -1), (1, 1), (0, 1)),
}


class Document:
    """An FBX file.

    Args:
        tree: Records of the file.
        where: Name for messages.

    Raises:
        FormatError: If the file has no objects or connections.
        UnsupportedError: If the version of the file is so old that objects have no numbers.
    """

    def __init__(self, tree: Tree, where: str) -> None:
        """Index objects and connections."""
        self.tree, self.where = tree, where
        if tree.version < _OLDEST:
            raise UnsupportedError(
                "FBX files of this version cannot be written to",
                where=where,
                value=f"{tree.version / 1000:g}",
                expected="7.0 or newer",
                hint="save it again with Blender, Maya or MotionBuilder",
            )
        self.objects = self.section("Objects")
        self.connections = self.section("Connections")
        self.by_id: dict[int, Record] = {}
        for record in self.objects.below:
            number = whole(record.values[0]) if record.values else None
            if number is not None:
                self.by_id[number] = record
        self._last = max([number for number in self.by_id if number < _LARGEST], default=0) + _FIRST
        self._templates: dict[str, dict[str, list[Any]]] = {}

    def section(self, name: str) -> Record:
        """Return a top-level record by name.

        Raises:
            FormatError: If the file has none of that name.
        """
        for record in self.tree.below:
            if record.name == name:
                return record
        raise FormatError(f"file has no {name}", where=self.where, hint="it is damaged, or not from an FBX exporter")

    def of(self, kind: str) -> list[tuple[int, Record]]:
        """Return the number and the record of all objects of a kind, such as ``"Model"``."""
        return [(number, record) for number, record in self.by_id.items() if record.name == kind]

    def links(self) -> list[tuple[int, int, str]]:
        """Return all connections: source object, target object, and the target's property ("" for the object)."""
        out: list[tuple[int, int, str]] = []
        for record in self.connections.below:
            values = record.values
            if len(values) < 3 or not record.begins("OO", "OP"):
                continue
            source, target = whole(values[1]), whole(values[2])
            if source is not None and target is not None:
                out.append((source, target, str(values[3]) if values[0] == "OP" and len(values) > 3 else ""))
        return out

    def properties(self, record: Record) -> dict[str, list[Any]]:
        """Return the properties of an object by name, with defaults from its template."""
        return {**self._template(record.name), **own_properties(record)}

    def _template(self, kind: str) -> dict[str, list[Any]]:
        """Return the default properties of objects of a kind."""
        if kind not in self._templates:
            self._templates[kind] = {}
            definitions = next((record for record in self.tree.below if record.name == "Definitions"), Record(""))
            for each in definitions.all("ObjectType"):
                template = each.first("PropertyTemplate")
                if each.begins(kind) and template is not None:
                    self._templates[kind] = own_properties(template)
        return self._templates[kind]

    def add(self, kind: str, name: str, of: str, subkind: str = "", *, before: str | None = None) -> Record:
        """Add an object and return its record.

        Args:
            kind: Kind of the object, such as ``"Model"``.
            name: Name of the object.
            of: Class that is stored with the name.
            subkind: Third value of the record, such as ``"LimbNode"``.
            before: Put the new object before the first object of this kind; None for the end.
        """
        self._last += 1
        record = Record(kind, [np.int64(self._last), name + CLASS + of, subkind], block=True)
        at = len(self.objects.below)
        if before is not None:
            at = next((k for k, other in enumerate(self.objects.below) if other.name == before), at)
        self.objects.below.insert(at, record)
        self.by_id[self._last] = record
        self._count(kind)
        return record

    def _count(self, kind: str) -> None:
        """Count a new object in the definitions."""
        definitions = next((record for record in self.tree.below if record.name == "Definitions"), None)
        if definitions is None:
            return
        mine = next((each for each in definitions.all("ObjectType") if each.begins(kind)), None)
        if mine is None:
            mine = definitions.add("ObjectType", kind)
            mine.add("Count", 0)
        for record in (definitions, mine):
            count = record.first("Count")
            if count is not None and count.values:
                count.values[0] = (whole(count.values[0]) or 0) + 1

    def link(self, source: Record | int, target: Record | int, name: str | None = None) -> None:
        """Connect an object to another object (0: the scene), or to a property of the other object."""
        numbers = [np.int64(each if isinstance(each, int) else each.values[0]) for each in (source, target)]
        self.connections.add("C", "OO" if name is None else "OP", *numbers, *([] if name is None else [name]))

    @property
    def meters_per_unit(self) -> float:
        """Length unit of the file, metres."""
        value = self._setting("UnitScaleFactor", 1.0)
        return 0.01 * value if value > 0.0 else 0.01

    @property
    def axes(self) -> Array:
        """Rotation from the file's axes to x right, y up and z towards the viewer, (3, 3).

        Raises:
            UnsupportedError: If the file's axes are left-handed or invalid.
        """
        out = np.zeros((3, 3))
        for row, (name, usual) in enumerate((("Coord", 0), ("Up", 1), ("Front", 2))):
            axis = int(self._setting(f"{name}Axis", usual))
            out[row, axis if 0 <= axis < 3 else usual] = np.sign(self._setting(f"{name}AxisSign", 1.0))
        if np.linalg.det(out) < 0.5:
            raise UnsupportedError("axes of the file are not right-handed", where=self.where, value=out.tolist())
        return out

    def ticks(self, seconds: Any) -> Any:
        """Convert seconds to whole ticks."""
        return np.rint(np.asarray(seconds, np.float64) * self._ticks_a_second()).astype(np.int64)[()]

    def check_rate(self, fps: float, frames: int, name: str) -> None:
        """Check that the frame times of a take can be stored as whole ticks.

        Args:
            fps: Frames per second.
            frames: Number of frames.
            name: Name of the take, for the message.

        Raises:
            InputError: If rounding would change the times of frames, or if the last time is too large.
        """
        unit = self._ticks_a_second()
        last = (frames - 1) / fps
        if 0.5 * fps / unit > SAME_TIME * frames or last * unit > _LARGEST:
            most, least = 2.0 * SAME_TIME * frames * unit, (frames - 1) * unit / _LARGEST
            raise InputError(
                "an FBX cannot hold this frame rate",
                where=f"{self.where}: {name}",
                value=fps,
                expected=f"{least:.3g} to {most:.3g} frames per second for {frames} frames",
                hint="NPZ and BVH hold any; motion.resample(fps), or 'synovia edit --resample', changes it",
            )

    def seconds(self, ticks: Any) -> Array:
        """Convert ticks to seconds."""
        return np.asarray(ticks, np.float64) / self._ticks_a_second()

    def set_rate(self, fps: float) -> None:
        """Set the frame rate."""
        settings = block_of(self.section("GlobalSettings"))
        mode = next((mode for rate, mode in _RATES.items() if abs(rate / fps - 1.0) <= _SAME_RATE), _CUSTOM)
        set_property(settings, "TimeMode", "enum", mode)
        set_property(settings, "CustomFrameRate", "double", float(fps))

    def _setting(self, name: str, usual: float) -> float:
        """Return a number from the global settings; ``usual`` if the number is missing or invalid."""
        settings = next((record for record in self.tree.below if record.name == "GlobalSettings"), Record(""))
        values = own_properties(settings).get(name, ())
        return real(values[0], usual) if values else usual

    def _ticks_a_second(self) -> int:
        """Return the ticks per second of the file."""
        head = next((record for record in self.tree.below if record.name == "FBXHeaderExtension"), Record(""))
        flags = head.first("OtherFlags")
        definition = None if flags is None else flags.value("TCDefinition")
        return _TICKS if definition is None or definition == _OLD_TIME else _NEW_TICKS

    def pack(self) -> bytes:
        """Return the binary file."""
        return write_tree(self.tree)


def read_document(path: Path) -> Document:
    """Read an FBX file, binary or text.

    Raises:
        FileError: If the file cannot be read.
        FormatError: If the file is malformed.
        UnsupportedError: If its version is too old.
    """
    data, where = read_bytes(path), str(path)
    if is_binary(data):
        return Document(read_tree(data, where), where)
    return Document(read_text_tree(data.decode(errors="surrogateescape"), where), where)


def axes_for(up: str) -> Array:
    """Return ``Document.axes`` of a new file in which an axis, such as ``"z"``, points up."""
    out = np.zeros((3, 3))
    for row, (axis, sign) in zip((1, 2, 0), _AXES[up], strict=True):
        out[row, axis] = sign
    return out


def new_document(where: str, up: str) -> Document:
    """Return a file without objects, in centimetres.

    Args:
        where: Name for messages.
        up: Axis that points up.
    """
    head = Record("FBXHeaderExtension")
    head.add("FBXHeaderVersion", 1003)
    head.add("FBXVersion", _NEW)
    head.add("EncryptionType", 0)
    time = head.add("CreationTimeStamp")
    parts = zip(("Year", "Month", "Day", "Hour", "Minute", "Second"), (1970, 1, 1, 10, 0, 0), strict=True)
    for part, value in (("Version", 1000), *parts, ("Millisecond", 0)):
        time.add(part, value)
    head.add("Creator", _CREATOR)
    info = head.add("SceneInfo", "GlobalInfo" + CLASS + "SceneInfo", "UserData")
    info.add("Type", "UserData")
    info.add("Version", 100)
    properties = info.add("Properties70")
    for stem in ("Original", "LastSaved"):
        properties.add("P", stem, "Compound", "", "")
        properties.add("P", f"{stem}|ApplicationVendor", "KString", "", "", _CREATOR)
        properties.add("P", f"{stem}|ApplicationName", "KString", "", "", _CREATOR)

    settings = Record("GlobalSettings")
    settings.add("Version", 1000)
    properties = settings.add("Properties70")
    for name, (axis, sign) in zip(("Up", "Front", "Coord"), _AXES[up], strict=True):
        set_property(properties, f"{name}Axis", "int", axis)
        set_property(properties, f"{name}AxisSign", "int", sign)
    set_property(properties, "OriginalUpAxis", "int", -1)
    set_property(properties, "OriginalUpAxisSign", "int", 1)
    set_property(properties, "UnitScaleFactor", "double", 1.0)
    set_property(properties, "OriginalUnitScaleFactor", "double", 1.0)
    set_property(properties, "AmbientColor", "ColorRGB", 0.0, 0.0, 0.0)
    set_property(properties, "DefaultCamera", "KString", "Producer Perspective")

    documents = Record("Documents")
    documents.add("Count", 1)
    scene = documents.add("Document", np.int64(_FIRST), "Scene", "Scene")
    properties = scene.add("Properties70")
    properties.add("P", "SourceObject", "object", "", "")
    set_property(properties, "ActiveAnimStackName", "KString", "")
    scene.add("RootNode", np.int64(0))

    definitions = Record("Definitions")
    definitions.add("Version", 100)
    definitions.add("Count", 1)
    definitions.add("ObjectType", "GlobalSettings").add("Count", 1)
    below = [
        head, Record("FileId", [FILE_ID]), Record("CreationTime", [CREATED]), Record("Creator", [_CREATOR]), settings,
        documents, Record("References", block=True), definitions, Record("Objects", block=True),
        Record("Connections", block=True), Record("Takes", block=True),
    ]  # fmt: skip
    return Document(Tree(_NEW, below), where)


def own_properties(record: Record) -> dict[str, list[Any]]:
    """Return the values of the properties that an object itself has, by name."""
    block = record.first("Properties70")
    if block is None:
        return {}
    return {str(each.values[0]): each.values[4:] for each in block.all("P") if len(each.values) > 4}


# Type, data type and flags of properties, by type name. Other properties have the type name and empty texts.
_KINDS: Final = {
    "int": ("int", "Integer", ""),
    "double": ("double", "Number", ""),
    "KTime": ("KTime", "Time", ""),
    "ColorRGB": ("ColorRGB", "Color", ""),
    "Vector3D": ("Vector3D", "Vector", ""),
    "Number": ("Number", "", "A"),
    "Color": ("Color", "", "A"),
    "Lcl Translation": ("Lcl Translation", "", "A"),
    "Lcl Rotation": ("Lcl Rotation", "", "A"),
    "Lcl Scaling": ("Lcl Scaling", "", "A"),
    "User": ("KString", "", "U"),
}


def set_property(block: Record, name: str, kind: str, *values: Any) -> None:
    """Set a property in a ``Properties70`` record, or add it."""
    found = next((each for each in block.all("P") if each.begins(name)), None)
    if found is not None:
        found.values[4:] = values
        return
    block.add("P", name, *_KINDS.get(kind, (kind, "", "")), *values)


def block_of(record: Record, name: str = "Properties70") -> Record:
    """Return the property block of an object, after adding it if it is missing."""
    return record.first(name) or record.add(name)


def whole(value: Any) -> int | None:
    """Return a whole number as an ``int``; None for any other value."""
    return int(value) if isinstance(value, int) or type(value) in (np.int64, np.int16, np.int8, np.uint8) else None


def real(value: Any, usual: float) -> float:
    """Return a value as a float; ``usual`` for a value that is not a finite number."""
    number = float(value) if isinstance(value, float) or type(value) is np.float32 else whole(value)
    return float(number) if number is not None and np.isfinite(number) else usual


def name_of(record: Record) -> str:
    """Return the name of an object without its class."""
    return str(record.values[1]).partition(CLASS)[0] if len(record.values) > 1 else ""
