"""Damage to files: bytes, words and numbers, JSON and XML trees, zip archives, chunks of a GLB.

Everything is drawn from the generator that is given, so that a case comes back from its number.
"""

from __future__ import annotations

import copy
import functools
import io
import json
import re
import struct
import warnings
import zipfile
from collections.abc import Callable
from random import Random
from xml.etree import ElementTree as ET

import numpy as np

from fuzzing.seeds import Seed

LARGEST = 300_000  # bytes of a changed file
SWOLLEN = 2**20  # bytes of one of a door
NUMBERS = (
    "0", "-0", "1", "-1", "2", "0.5", "1e-320", "1e-170", "1e-9", "1e9", "1e15", "1e77", "1e155", "1e300", "-1e300",
    "1e309", "-1e309", "nan", "NaN", "inf", "-inf", "Infinity", "255", "256", "65536", "2147483647", "2147483648",
    "4294967295", "-2147483648", "1000000", "100000000", "9007199254740993", "18446744073709551616", "9" * 400,
    "9" * 5000, "1_0", "\u0661\u0662", "\uff11", "0x10", "0x" + "f" * 5000, "1e", "1.", ".5", "+1", "--1", "1,5",
    "true", "null", "1e-5000", "0." + "3" * 5000,
)  # fmt: skip
TEXTS = (
    "", " ", "a", "é", "\U0001f600", "\\ud800", "\\udc00x", "\\u0000", "\0", "\ufeff", "\u2028", "\u202e",
    "../../etc/passwd", "/dev/zero", "/dev/stdin", "http://localhost/x", "data:,", "data:;base64,A",
    "file:///etc/passwd", "a/../b", "~", "nul", "x" * 300, "x" * 20_000, "é" * 3000, "${x}", "$(find x)", "%00", "{}",
    "[]", "a.b.c", "null", "\\", "\"", "'", "]]>", "--", "world", "nan", "body",
)  # fmt: skip
RUNS = (
    " ", "\t", "\n", "\r", "0", "9", ".", "-", "a", "a.", "a.b ", '"', '\\"', "'", "[", "{", "(", "<", "<a>", "]",
    "}", ",", "1 ", "1,", "e", "+", "=", "\\", "\0", "{}", "[[", "a=1\n", "#", "/", "\r\n", ":", "é", "[a]\n", "1.0 ",
    "'''", '"""',
)  # fmt: skip
WORDS = {
    "bvh": (
        "HIERARCHY", "ROOT", "JOINT", "End Site", "{", "}", "OFFSET", "CHANNELS", "MOTION", "Frames:", "Frame Time:",
        "Xrotation", "Yposition", "CHANNELS 0", "CHANNELS 6",
    ),
    "fbx": (
        "Properties70: {", "}", "*9 {", "*1 {", "*999999999 {", "a: 1,2,3", '"Lcl Rotation"', '"LimbNode"',
        '"Model::a"', 'C: "OO",1001,1002', 'C: "OO",1001,1001', '"InheritType", "enum", "", "A", 2', "1e999",
    ),
    "urdf": (
        "<link/>", "<joint/>", '<mimic joint="jb"/>', "<xacro:macro/>", "<!--", "-->", "<![CDATA[", "<?xml ?>",
        '<!DOCTYPE a [<!ENTITY b "c">]>', "&b;", "&#0;", "&lt;", "<gazebo/>", "continuous", "planar", "floating",
        "fixed", "prismatic",
    ),
    "mjcf": (
        '<replicate count="1000">', "</replicate>", '<include file="x.xml"/>', '<sensor><user dim="9"/></sensor>',
        "<!--", "-->", "<![CDATA[", '<!DOCTYPE a [<!ENTITY b "c">]>', "&b;", "<freejoint/>", '<joint type="ball"/>',
        '<geom type="ellipsoid" size="1 2 3"/>', '<mesh builtin="supertorus" params="9 1 1 1"/>', "free", "ball",
        "slide", "hinge", "supersphere", "sphere", "hemisphere", "cone", "plate", "wedge", "prism", "supertorus",
    ),
    "toml": (
        "[[joint]]", "[joint]", "[a.b.c]", "a.b.c = 1", "{ a = 1 }", "'''", '"""', "1979-05-27", "inf", "nan",
        'mimic = { leader = "middle" }', "true", "parent = 0", 'kind = "free"', 'kind = "slide"', "# x",
    ),
    "csv": (
        "time", ",", '"', '""', ";", "\n", "\r", "\r\n", "\n\n", "joint1", "joint1.x", "nan", "a.x", "a.confidence",
    ),
    "trc": (
        "PathFileType", "\t", "\t\t", "DataRate", "Units", "mm", "Frame#", "Time", "\n\n", "X1", "nan", ",",
    ),
    "targets": (
        "tool.x", "tool.position", "tool.transform", "tool.qw", "start.joint1", "start.", "status", ",", '"', "\n",
        "nan", "INVALID", "id",
    ),
    "scene": (
        "* a", "*", ".", "1", "99999999", "box", "sphere", "cylinder", "cone", "plane", "mesh", "torus", "0 0 0 1",
    ),
    "ledger": (
        "input", "output", "sha256", "settings", "done", "failed", "crashed", "gone", ",", '"', "\n", '"event": "done"',
        '"row"', '"claim"', "{", "}", "null", "../x",
    ),
    "lerobot": (
        '"features"', '"names"', '"shape"', '"dtype"', '"fps"', '"codebase_version"', "null", "{}", "[]", '"v3.0"',
        '"observation.state"', '"joint1.pos"', "NaN",
    ),
    "json": (
        "{", "}", "[", "]", ":", ",", '"schema"', '"q"', "null", "true", "1e999", '"\\ud800"', '"joint"', "//", "/*",
    ),
}  # fmt: skip
FAMILY = {
    "bvh": "bvh", "fbx": "fbx", "gltf": "json", "urdf": "urdf", "mjcf": "mjcf", "toml": "toml", "npz": "csv",
    "csv": "csv", "points": "csv", "map": "toml", "pose": "json", "goals": "json", "track": "json", "tracker": "csv",
    "smpl": "csv", "amass": "csv", "unitree": "csv", "markers": "trc", "table": "targets", "ledger": "ledger",
    "lerobot": "lerobot", "world": "scene", "live lines": "json", "live landmarks": "json", "live vmc": "vmc",
    "osc": "vmc", "csv file": "csv", "hand file": "csv", "calibration file": "toml", "toml file": "toml",
    "layers file": "json", "world file": "scene",
}  # fmt: skip
_TOKEN = re.compile(r"[+-]?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|[A-Za-z_][\w.]*|\"[^\"\n]*\"")


def mutated(seed: Seed, rng: Random) -> bytes:
    """Return the content of a file with a few changes, most often one."""
    data = seed.data
    for _ in range(rng.choice((1, 1, 1, 1, 2, 2, 3, 5, 9))):
        ways = _ways(seed, data)
        try:
            data = rng.choice(ways)(data, rng)
        except Exception:  # noqa: BLE001  earlier damage leaves no tree to change
            data = flip(data, rng)
        data = data[:LARGEST]
    return swell(data, rng) if seed.door and rng.random() < 0.4 else data


def _ways(seed: Seed, data: bytes) -> list[Callable[[bytes, Random], bytes]]:
    """Return the changes that suit a file."""
    raw = [flip, cut, drop, double, insert, overwrite, shuffle]
    if seed.ending in (".vmc", ".osc"):
        return [*raw, floats, floats, osc_types, osc_bundle, osc_name]
    if data[:4] == b"PK\x03\x04":
        return [*raw, *[zip_members, zip_fields, zip_arrays, zip_arrays] * 3]
    if data[:4] == b"glTF":
        return [*raw, *[glb_fields, glb_json, glb_json, glb_json] * 3]
    if data[:6] == b"\x93NUMPY":
        return [*raw, npy_header, npy_header, npy_header]
    if seed.ending in (".parquet", ".arrow", ".frames.parquet", ".episodes.parquet", ".c3d") or data[:7] == b"Kaydara":
        return [*raw, flip, flip, overwrite, overwrite, ends]
    words = WORDS["toml" if seed.ending == ".toml" else FAMILY[seed.reader]]

    def word(data: bytes, rng: Random) -> bytes:
        return put(data, rng.choice(words).encode(), rng)

    text = [number, number, number, token, token, run, lines, lines, deep, word, word, encode]
    if seed.ending.endswith((".json", ".gltf")):
        text += [json_tree] * 14
    if seed.reader in ("urdf", "mjcf"):
        text += [xml_tree] * 14
    return [*raw, *text, *text]


# Bytes


def flip(data: bytes, rng: Random) -> bytes:
    """Change single bytes."""
    out = bytearray(data or b"\0")
    for _ in range(rng.choice((1, 1, 2, 8))):
        out[rng.randrange(len(out))] = rng.randrange(256)
    return bytes(out)


def cut(data: bytes, rng: Random) -> bytes:
    """Keep the beginning, or the end."""
    at = rng.randrange(len(data) + 1)
    return data[:at] if rng.random() < 0.8 else data[at:]


def span(data: bytes, rng: Random) -> tuple[int, int]:
    """Return a piece of the data."""
    at = rng.randrange(len(data) + 1)
    return at, min(len(data), at + int(2 ** rng.uniform(0, 11)))


def drop(data: bytes, rng: Random) -> bytes:
    """Take a piece out."""
    a, b = span(data, rng)
    return data[:a] + data[b:]


def double(data: bytes, rng: Random) -> bytes:
    """Repeat a piece."""
    a, b = span(data, rng)
    return data[:b] + data[a:b] * times(b - a, rng) + data[b:]


def times(size: int, rng: Random) -> int:
    """Return how often to repeat a piece of so many bytes."""
    return max(1, min(int(2 ** rng.uniform(0, 15)), LARGEST // max(size, 1)))


def put(data: bytes, piece: bytes, rng: Random) -> bytes:
    """Insert a piece anywhere."""
    at = rng.randrange(len(data) + 1)
    return data[:at] + piece + data[at:]


def insert(data: bytes, rng: Random) -> bytes:
    """Insert random bytes."""
    return put(data, rng.randbytes(int(2 ** rng.uniform(0, 8))), rng)


def overwrite(data: bytes, rng: Random) -> bytes:
    """Put a number of the machine over others."""
    value = rng.choice((b"\0", b"\xff", b"\x7f", b"\x80", b"\0\0\xc0\x7f", b"\0\0\x80\x7f", b"\xff\xff\xff\xff"))
    at = rng.randrange(len(data) + 1)
    return data[:at] + value + data[at + len(value) :]


def ends(data: bytes, rng: Random) -> bytes:
    """Change bytes near the end or the beginning, where binary files describe themselves."""
    out = bytearray(data or b"\0")
    for _ in range(rng.choice((1, 1, 2, 4))):
        near = min(len(out), int(2 ** rng.uniform(0, 10)))
        out[rng.choice((-near, near - 1))] = rng.choice((0, 1, 127, 128, 255, rng.randrange(256)))
    return bytes(out)


def shuffle(data: bytes, rng: Random) -> bytes:
    """Exchange two pieces."""
    (a, b), (c, d) = sorted((span(data, rng), span(data, rng)))
    return data if b > c else data[:a] + data[c:d] + data[b:c] + data[a:b] + data[d:]


def swell(data: bytes, rng: Random) -> bytes:
    """Repeat a word, a line, a run or a piece up to a megabyte."""
    size = min(int(2 ** rng.uniform(12, 20.5)), SWOLLEN)
    if data[:4] == b"PK\x03\x04":
        return bomb(size, rng)
    if data[:8] == b"#bundle\0" and rng.random() < 0.7:
        return osc_bundle(data, rng, size)
    lines, (a, b) = data.split(b"\n"), span(data, rng)
    found = spans(data, numbers=False)
    word = data[slice(*rng.choice(found))] if found else b"a"
    piece = rng.choice((word + b",", word + b" ", rng.choice(lines) + b"\n", data[a:b], rng.choice(RUNS).encode(),
                        rng.choice(SMALL).encode(), rng.choice(SMALL).encode()))  # fmt: skip
    at = rng.choice((0, len(data), a, *(found[0] if found else ()), *(rng.choice(found) if found else ())))
    count = max(1, (size - len(data)) // max(len(piece), 1))
    body = piece * count
    if rng.random() < 0.3:  # each one differs, as names do
        body = b"".join(piece.replace(b"@", str(k).encode()) for k in range(count))
    return (data[:at] + body + data[at:])[:SWOLLEN]


SMALL = (
    "[],", "{},", "[0],", "{\"a\":0},", "\"\",", "\"\\u00e9\",", "1e9,", "0,", "[[0,0,0]],", "null,", "1,1\n",
    ",", ",\n", "a@=1\n", "[a@]\n", "[[a@]]\n", "[[joint]]\n", "a@.b=1\n", "b@={}\n", "a@=[]\n", "\"a@\":0,", "0 0 0\n",
    "a@,", "* @\n", "[[layers]]\n", "[[obstacle]]\n", "a@={b=0}\n", "a.b.c@=0\n", "{},\n",
    "1970-01-01,",
)  # fmt: skip


def bomb(size: int, rng: Random) -> bytes:
    """Return an archive of a hand that unpacks to much more."""
    kind = rng.choice(("<f8", "<f4", "<i1", "<U9", "<f2", "|b1"))
    frames = size * rng.choice((1, 1, 30)) // (63 * 8)
    arrays = {rng.choice(("joints", "arr_0", "x")): np.zeros((frames, 21, 3), kind)}
    if rng.random() < 0.3:
        arrays["confidence"] = np.zeros((frames, 21), rng.choice(("<f8", "<U3", "<i1")))
    data = io.BytesIO()
    rng.choice((np.savez, np.savez_compressed))(data, **arrays)
    return data.getvalue()[:SWOLLEN]


# Datagrams


def floats(data: bytes, rng: Random) -> bytes:
    """Replace four bytes by a number that may not fit."""
    at = 4 * rng.randrange(max(1, len(data) // 4))
    value = rng.choice((float("nan"), float("inf"), 1e30, -1e30, 1e-30, 0.0, 1e4, 5.0))
    return data[:at] + struct.pack(">f", value) + data[at + 4 :]


def osc_types(data: bytes, rng: Random) -> bytes:
    """Return a message of VMC with other types and values."""
    address = rng.choice((b"/VMC/Ext/Bone/Pos\0\0\0", b"/VMC/Ext/T\0\0", b"/a\0\0"))
    types = b"," + bytes(rng.choice(b"ifsbTFNQ") for _ in range(int(2 ** rng.uniform(0, 12))))
    types += b"\0" * (4 - len(types) % 4)
    return address + types + rng.choice((data, b"\0" * len(types) * 4, rng.randbytes(64)))


def osc_name(data: bytes, rng: Random) -> bytes:
    """Replace the name of a bone."""
    names = (b"Hips", b"LeftHand", b"LeftFoot", b"LeftThumbProximal", b"Jaw", b"Spine")
    old, new = rng.choice(names), rng.choice(names)
    return data.replace(old, (new + b"\0" * len(old))[: len(old)])


def osc_bundle(data: bytes, rng: Random, size: int = 2000) -> bytes:
    """Return bundles in bundles of pieces of a datagram."""
    a, b = span(data, rng)
    piece = rng.choice((data, data[a : b - (b - a) % 4], b"/a\0\0", b"/a\0\0,\0\0\0", b"/a\0\0,i\0\0\0\0\0\0"))
    piece = piece + b"\0" * (-len(piece) % 4)
    out = b"#bundle\0" + bytes(8)
    out += (len(piece).to_bytes(4, "big") + piece) * max(1, min(size, 65_000) // (len(piece) + 4))
    for _ in range(rng.choice((0, 0, 1, 3, 5))):
        out = b"#bundle\0" + bytes(8) + len(out).to_bytes(4, "big") + out
    return out


# Words


def any_number(rng: Random) -> str:
    """Return a number that may not fit."""
    return rng.choice(NUMBERS) if rng.random() < 0.7 else repr(rng.choice((1, -1)) * 10 ** rng.uniform(-12, 12))


@functools.lru_cache(maxsize=256)  # most changes are the first ones of a file that others begin with, too
def spans(data: bytes, numbers: bool) -> list[tuple[int, int]]:
    """Return where the words of a file begin and end, or only its numbers."""
    found = _TOKEN.finditer(data.decode("latin-1"))
    return [match.span() for match in found if not numbers or match.group()[-1:].isdigit()]


def token(data: bytes, rng: Random) -> bytes:
    """Replace a word by another one of the file, a number by a number, or either by what does not fit."""
    found = spans(data, numbers=False)
    a, b = rng.choice(found)
    c, d = rng.choice(found)
    new = rng.choice((data[c:d], any_number(rng).encode(), rng.choice(TEXTS).encode()))
    return data[:a] + new + data[b:]


def number(data: bytes, rng: Random) -> bytes:
    """Replace a number."""
    a, b = rng.choice(spans(data, numbers=True))
    return data[:a] + any_number(rng).encode() + data[b:]


def run(data: bytes, rng: Random) -> bytes:
    """Insert many of the same sign."""
    piece = rng.choice(RUNS).encode()
    return put(data, piece * times(len(piece), rng), rng)


def lines(data: bytes, rng: Random) -> bytes:
    """Repeat, drop or move lines."""
    parts = data.split(b"\n")
    a = rng.randrange(len(parts))
    b = min(len(parts), a + rng.choice((1, 1, 2, 5, 20)))
    block = parts[a:b]
    way = rng.random()
    if way < 0.5:
        parts[b:b] = block * times(sum(map(len, block)) + len(block), rng)
    elif way < 0.8:
        del parts[a:b]
    else:
        at = rng.randrange(len(parts) + 1)
        parts[at:at] = block
    return b"\n".join(parts)


def deep(data: bytes, rng: Random) -> bytes:
    """Insert deep nesting."""
    left, right = rng.choice(((b"[", b"]"), (b"{", b"}"), (b'{"a":', b"1}"), (b"<body>", b"</body>"), (b"(", b")"),
                              (b"{ a = ", b" }"), (b"<link>", b"</link>"), (b"JOINT a { OFFSET 0 0 0 ", b"}"),
                              (b'<replicate count="2">', b"</replicate>"), (b"<frame>", b"</frame>")))  # fmt: skip
    n = times(len(left + right), rng)
    return put(data, left * n + right * rng.choice((n, n, 0, 1)), rng)


def encode(data: bytes, rng: Random) -> bytes:
    """Write the text in another encoding."""
    return data.decode("utf-8").encode(rng.choice(("utf-16", "utf-16-le", "utf-32", "utf-8-sig", "latin-1", "utf-7")))


# JSON


def json_tree(data: bytes, rng: Random) -> bytes:
    """Change a value, a key or a list of JSON."""
    tree = json.loads(data)
    places: list[tuple[object, object]] = []
    waiting = [tree]
    while waiting:
        value = waiting.pop()
        keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
        for key in keys:
            places.append((value, key))
            waiting.append(value[key])
    holder, key = rng.choice(places)
    new, raw = any_json(tree, holder[key], rng)
    way = rng.random()
    if way < 0.6:
        holder[key] = new
    elif way < 0.75:
        del holder[key]
    elif isinstance(holder, list):
        holder[key:key] = [copy.deepcopy(holder[key])] * times(30, rng)
    else:
        holder[rng.choice((f"{key} ", str(key).upper(), rng.choice(TEXTS), "name", "joints", "children"))] = new
    text = json.dumps(tree)
    if raw:
        text = text.replace('"@@"', raw)
    if way > 0.95:  # the same key twice, or many keys
        text = text.replace("{", "{" + ", ".join(f'"{k % 9}": 0' for k in range(times(8, rng))) + ",", 1)
    if rng.random() < 0.2:
        text = text.replace("\\\\u", "\\u")
    return text.encode("utf-8", "surrogatepass")


def any_json(tree: object, old: object, rng: Random) -> tuple[object, str]:
    """Return a value to put into a tree; "@@" stands for the raw text beside it, which no value writes."""
    way = rng.randrange(10)
    if way < 3:
        return "@@", any_number(rng)
    if way < 5:
        return rng.choice(TEXTS), ""
    if way == 5:
        return rng.choice((None, True, False, [], {}, [[]], [None], {"": 0}, [0] * 17)), ""
    if way == 6:
        n = times(2, rng)
        return "@@", "[" * n + "]" * n
    if way == 7 and isinstance(old, list):
        return old * times(30, rng), ""
    if way == 8 and isinstance(old, (int, float)):
        return old * rng.choice((-1, 2, 10, 1e3, 1e6, 1e9)) + rng.choice((0, 1, -1)), ""
    return copy.deepcopy(tree) if len(json.dumps(tree)) < 10_000 else [], ""


# XML


def xml_tree(data: bytes, rng: Random) -> bytes:
    """Change an attribute or an element of XML."""
    root = ET.fromstring(data)
    parents = {child: parent for parent in root.iter() for child in parent}
    everything = list(root.iter())
    element = rng.choice(everything)
    way = rng.random()
    if way < 0.55 and element.attrib:
        key = rng.choice(list(element.attrib))
        words = element.attrib[key].split()
        if words and rng.random() < 0.7:
            words[rng.randrange(len(words))] = any_number(rng)
            if rng.random() < 0.2:
                words *= times(8, rng)
            element.attrib[key] = " ".join(words)
        else:
            element.attrib[key] = rng.choice(TEXTS)
    elif way < 0.65:
        other = rng.choice(everything)
        key = rng.choice((*other.attrib, "name", "count", "type", "size", "file", "builtin", "params"))
        element.attrib[key] = other.attrib.get(key, any_number(rng))
    elif way < 0.72 and element.attrib:
        del element.attrib[rng.choice(list(element.attrib))]
    elif way < 0.8:
        element.tag = rng.choice(everything).tag
    elif element in parents:
        holder = parents[element]
        if way < 0.86:
            holder.remove(element)
        elif way < 0.93:
            holder.extend([copy.deepcopy(element)] * times(len(ET.tostring(element)), rng))
        else:
            holder.remove(element)
            rng.choice(everything).append(element)
    text = ET.tostring(root)
    return text.replace(b"&#0;", b"") if b"\0" not in text else text


# NumPy archives


def zip_members(data: bytes, rng: Random) -> bytes:
    """Rename, repeat, leave out or exchange members, or pack them otherwise."""
    members = _members(data)
    at = rng.randrange(len(members))
    name, content = members[at]
    way = rng.randrange(8)
    if way == 0:
        members[at] = (
            rng.choice((name[:-4], "a", "", "../a.npy", "/a.npy", "Q.npy", "x" * 3000, "é.npy", "a/")),
            content,
        )
    elif way == 1:
        members += [members[at]] * rng.choice((1, 1, 20))
    elif way == 2:
        del members[at]
    elif way == 3:
        members[at] = (name, rng.choice(members)[1])
    elif way == 4:
        members.append(
            (rng.choice(("unused.npy", "a.txt")), _npy(f"({2 ** rng.randrange(8, 26)},)", "|u1", b"") + b"\0" * 2**24)
        )
    elif way == 5:
        members[at] = (name, flip(content, rng))
    elif way == 6:
        members[at] = (name, cut(content, rng))
    else:
        members[at] = (name, content + b"\0" * int(2 ** rng.uniform(0, 24)))
    return _packed(members, rng)


def zip_arrays(data: bytes, rng: Random) -> bytes:
    """Change the head of an array, or put another array in its place."""
    members = _members(data)
    at = rng.randrange(len(members))
    name, content = members[at]
    if name == "skeleton.npy" and rng.random() < 0.7:
        text = content[content.index(b"\n") + 1 :]
        for _ in range(rng.choice((1, 1, 2, 4))):
            text = rng.choice((number, token, run, lines, flip, deep))(text, rng)
        members[at] = (name, _npy(f"({len(text)},)", "|u1", text))
    elif rng.random() < 0.5:
        members[at] = (name, npy_header(content, rng))
    else:
        kind = rng.choice(
            ("<f8", "<f4", ">f8", "<i8", "|u1", "|b1", "<U4", "|S3", "<c16", "<M8[s]", "|O", "|V4", "<f2", "<U0")
        )
        shape = rng.choice(("()", "(0,)", "(1,)", "(2, 7)", "(4, 3, 3)", "(3, 0)", "(0, 7)", "(4, 3)", "(3, 1, 3)"))
        members[at] = (name, _npy(shape, kind, rng.randbytes(600) if rng.random() < 0.5 else b"\0" * 3000))
    return _packed(members, rng)


def npy_header(content: bytes, rng: Random) -> bytes:
    """Change the head of an array's file."""
    size = struct.unpack_from("<H", content, 8)[0]
    head, body = content[10 : 10 + size].decode("latin-1"), content[10 + size :]
    way = rng.randrange(6)
    if way == 0:
        big = rng.choice(("(1000000000,)", "(2, 1000000000)", "(-1,)", "(18446744073709551615,)",
        "(0, 1000000000000)", "(1,)" * 40,
                          "(" + "1, " * 70 + ")", "(1.5,)", "(True,)", "[2, 7]",
                          "(99999999999999999999999, )"))  # fmt: skip
        head = re.sub(r"\(.*\)", big, head)
    elif way == 1:
        head = re.sub(
            r"'[<>|=]\w+'",
            repr(rng.choice(("|O", "<f16", "<U1000000", "<f8, <f8", "O", "x", "", "|V1000000000", "<f4"))),
            head,
        )
    elif way == 2:
        head = head.replace("False", "True")
    elif way == 3:
        head = rng.choice(
            ("(" * 5000, "[" * 200, "{" * 300, "9" * 9000, "{'a': __import__('os')}", "-" * 5000, "1j", "'" * 9)
        )
    elif way == 4:
        head = flip(head.encode("latin-1"), rng).decode("latin-1")
    else:
        return content[:6] + bytes([rng.choice((0, 1, 2, 3, 4, 255))]) + content[7:]
    text = head.encode("latin-1", "replace")[:60_000]
    return content[:6] + b"\x01\x00" + struct.pack("<H", len(text)) + text + body


def zip_fields(data: bytes, rng: Random) -> bytes:
    """Change a field of a member's local or central head, or of the end of the archive."""
    mark, fields = rng.choice((
        (b"PK\x03\x04", {4: "H", 6: "H", 8: "H", 14: "I", 18: "I", 22: "I", 26: "H", 28: "H"}),
        (b"PK\x01\x02", {4: "H", 6: "H", 8: "H", 10: "H", 16: "I", 20: "I", 24: "I", 28: "H", 30: "H", 32: "H",
        42: "I"}),
        (b"PK\x01\x02", {6: "H", 8: "H", 10: "H", 24: "I"}),
        (b"PK\x05\x06", {8: "H", 10: "H", 12: "I", 16: "I", 20: "H"}),
    ))  # fmt: skip
    at = rng.choice([match.start() for match in re.finditer(re.escape(mark), data)])
    offset = rng.choice(list(fields))
    values = (0, 1, 2, 8, 9, 12, 14, 20, 45, 63, 64, 93, 99, 255, 0xFFFF) if fields[offset] == "H" else (
        0, 1, 100, len(data), 2**20, 2**29, 2**30, 2**31 - 1, 2**31, 2**32 - 1
    )  # fmt: skip
    out = bytearray(data)
    struct.pack_into("<" + fields[offset], out, at + offset, rng.choice(values))
    return bytes(out)


def _members(data: bytes) -> list[tuple[str, bytes]]:
    """Return names and contents of an archive's members."""
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
        return [(entry.filename, packed.read(entry)) for entry in packed.infolist() if entry.file_size < 2**25]


def _packed(members: list[tuple[str, bytes]], rng: Random) -> bytes:
    """Return an archive of members."""
    way = rng.choice(
        (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
    )
    out = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(out, "w", way) as packed:
        warnings.simplefilter("ignore")  # names that repeat
        packed.comment = b"x" * rng.choice((0, 0, 70))
        for name, content in members:
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.compress_type = way if sum(len(inner) for _, inner in members) < LARGEST else zipfile.ZIP_DEFLATED
            packed.writestr(entry, content)
    return out.getvalue()


def _npy(shape: str, kind: str, body: bytes) -> bytes:
    """Return the file of an array."""
    head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + body


# GLB


def glb_fields(data: bytes, rng: Random) -> bytes:
    """Change a number of the file's head or of a chunk's."""
    out = bytearray(data)
    second = 20 + struct.unpack_from("<I", data, 12)[0]
    at = rng.choice((4, 8, 12, 16, second, second + 4))
    near = struct.unpack_from("<I", data, at)[0] + rng.choice((-9, -4, -1, 1, 4, 9))
    struct.pack_into("<I", out, at, rng.choice((0, 1, 2, 3, len(data), 2**31 - 1, 2**32 - 1, near % 2**32)))
    return bytes(out)


def glb_json(data: bytes, rng: Random) -> bytes:
    """Change the JSON in a GLB and keep the rest whole."""
    size = struct.unpack_from("<I", data, 12)[0]
    text, rest = data[20 : 20 + size].rstrip(), data[20 + size :]
    text = rng.choice((json_tree, json_tree, json_tree, number, token, run, deep))(text, rng)
    text += b" " * (-len(text) % 4)
    body = struct.pack("<II", len(text), 0x4E4F534A) + text + rest
    return data[:4] + struct.pack("<II", 2, 12 + len(body)) + body
