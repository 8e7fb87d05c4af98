"""Read the container of a glTF file: JSON, chunks and buffers."""

from __future__ import annotations

import base64
import binascii
import json
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any, Final, NoReturn, cast
from urllib.parse import unquote, unquote_to_bytes

from synovia.errors import FileError, FormatError, UnsupportedError
from synovia.io.base import LARGEST_FILE, most_numbers, read_bytes
from synovia.io.gltf.fields import Element

EXTENSIONS: Final = (".gltf", ".glb", ".vrm")
MAGIC: Final = b"glTF"
JSON_CHUNK: Final = 0x4E4F534A
BIN_CHUNK: Final = 0x004E4942
_MARKS: Final = (b'"asset"', b'"nodes"', b'"scenes"', b'"accessors"', b'"bufferViews"', b'"buffers"', b'"meshes"')
# Required extensions that do not change nodes, skins or animations; using a compressed buffer raises an error.
_HARMLESS: Final = (
    "KHR_materials_", "KHR_texture_", "EXT_texture_", "MSFT_texture_", "MSFT_packing_", "KHR_draco_", "KHR_mesh_",
    "EXT_mesh_", "EXT_meshopt_", "KHR_meshopt_", "KHR_lights_", "EXT_lights_", "KHR_xmp", "KHR_techniques_",
    "KHR_gaussian_", "VRM", "ADOBE_materials_",
)  # fmt: skip


class Document:
    """The JSON of a file, and its buffers, which are read only when needed.

    Args:
        path: The file.
        root: Root object of the JSON.
        chunk: Binary chunk of a GLB; None if there is none.
        size: Size of the file, bytes.
    """

    def __init__(self, path: Path, root: Element, chunk: memoryview | None, size: int) -> None:
        """Store the parts; buffers are read when accessors need them."""
        self.path = path
        self.root = root
        self.chunk = chunk
        self._buffers: dict[int, memoryview] = {}
        self._size = size
        self._loaded = 0
        self._spent = 0

    def spend(self, numbers: int, element: Element) -> None:
        """Count values that will be stored; raise an error for too many values in a file of this size."""
        self._spent += numbers
        most = most_numbers(self._size + self._loaded)
        if self._spent > most:
            raise element.error("needs too much memory", value=self._spent, expected=f"at most {most} numbers")

    def referred(self, element: Element, key: str, kind: str) -> Element:
        """Return the element to which an index field refers.

        Args:
            element: The object that has the field.
            key: The field.
            kind: List of the file into which the field is an index, for example ``accessors``.
        """
        return self.root.item(kind, element.integer(key, most=max(len(self.root.list(kind)) - 1, 0)))

    def buffer(self, view: Element) -> memoryview:
        """Return the bytes of the buffer of a buffer view, cut to its declared length."""
        element, number = self.referred(view, "buffer", "buffers"), view.integer("buffer")
        if number not in self._buffers:
            length = element.integer("byteLength", least=1)
            data = self._bytes_of(element, number)
            if len(data) < length:
                raise element.error(
                    "buffer is shorter than declared", "byteLength", value=length, expected=f"at most {len(data)}"
                )
            self._buffers[number] = data[:length]
        return self._buffers[number]

    def _bytes_of(self, element: Element, number: int) -> memoryview:
        """Return the bytes of a buffer: the binary chunk if the buffer has no URI, else the data of the URI."""
        if not element.has("uri"):
            if number == 0 and self.chunk is not None:
                return self.chunk
            if element.has("extensions"):
                raise UnsupportedError(
                    "buffer is compressed",
                    where=f"{element.file}: {element.place}",
                    hint="export without mesh compression, for example with gltfpack -noq or without meshopt",
                )
            raise element.error("buffer has no uri and the file no binary chunk")
        return memoryview(self.linked(element))

    def linked(self, element: Element) -> bytes:
        """Return the bytes that the URI of a buffer or an image refers to: a data URI or a file next to this one."""
        uri = element.text("uri", "")
        data = _decode_data(element, uri) if uri[:5].lower() == "data:" else self._sibling(element, uri)
        self._loaded += len(data)
        if self._loaded > LARGEST_FILE:
            raise element.error("buffers are too large", value=self._loaded, expected=f"at most {LARGEST_FILE} bytes")
        return data

    def _sibling(self, element: Element, uri: str) -> bytes:
        """Read a file in this file's folder or below it; raise an error for any other location."""
        try:
            target = _place(self.path, uri)
            if target is None:
                hint = "put the buffer next to the file"
                raise element.error("buffer is outside the file's folder", "uri", value=uri, hint=hint)
            return read_bytes(target)
        except FileError as error:
            place = f"{element.file}: {element.place}.uri"
            raise FileError(error.what, where=place, value=uri, expected=error.expected, hint=error.hint) from error
        except (OSError, RuntimeError, ValueError) as error:  # for a loop of links, a long name, half a surrogate pair
            raise FileError("buffer cannot be read", where=f"{element.file}: {element.place}.uri", value=uri) from error


def _place(path: Path, uri: str) -> Path | None:
    """Return the file to which a URI refers, in the folder of a glTF or below it; None for any other location.

    Raises:
        OSError: If the path cannot be resolved (loop of links, name too long); also RuntimeError and ValueError.
    """
    name = unquote(uri)
    relative = PurePosixPath(name)
    if not name or ":" in name or "\\" in name or "\0" in name or relative.is_absolute() or ".." in relative.parts:
        return None
    folder = path.parent.resolve()
    target = (folder / relative).resolve()
    return target if target.is_relative_to(folder) else None


def linked_files(path: Path) -> Iterator[Path]:
    """Yield the buffer and image files to which a file refers.

    Raises:
        SynoviaError: If the file cannot be read.
    """
    data = read_bytes(path)
    text = _split(path, data)[0] if data.startswith(MAGIC) else data
    if b'"uri"' not in text and b"\\" not in text:  # the JSON of a self-contained file need not be parsed
        return
    content = _parse(path, text)
    for kind in ("buffers", "images"):
        entries: object = content.get(kind)
        for entry in cast("list[object]", entries) if isinstance(entries, list) else []:
            uri = cast("dict[str, object]", entry).get("uri") if isinstance(entry, dict) else None
            if isinstance(uri, str) and uri[:5].lower() != "data:":
                with suppress(OSError, RuntimeError, ValueError):
                    if (place := _place(path, uri)) is not None:
                        yield place


def looks_like(head: bytes) -> bool:
    """Return whether the first bytes of a file are those of a GLB or of a glTF in JSON."""
    if head.startswith(MAGIC):
        return True
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    return text.startswith(b"{") and any(mark in text for mark in _MARKS)


def read_document(path: Path) -> Document:
    """Read the JSON of a file, and check its version and required extensions.

    Raises:
        FileError: If the file cannot be read.
        FormatError: If the file is not glTF 2.
        UnsupportedError: If it requires an extension that may change nodes or animations.
    """
    data = read_bytes(path)
    text, chunk = _split(path, data) if data.startswith(MAGIC) else (data, None)
    root = Element(_parse(path, text), "", str(path))
    version = (root.child("asset") or root).text("version", "")
    if not version.startswith("2."):
        raise root.error("is not glTF 2", "asset.version", value=version, expected="'2.0'")
    required = root.list("extensionsRequired")
    for i, name in enumerate(required):
        if not isinstance(name, str) or not name.startswith(_HARMLESS):
            raise UnsupportedError(
                "file requires an unknown extension",
                where=f"{path}: extensionsRequired[{i}]",
                value=name,
                hint="export without it",
            )
    return Document(path, root, chunk, len(data))


def _parse(path: Path, text: bytes) -> dict[str, Any]:
    """Parse the JSON object; raise an error for NaN and Infinity, which JSON does not allow."""
    try:
        value: object = json.loads(text.decode("utf-8-sig"), parse_constant=_no_constant)
    except RecursionError as error:
        raise FormatError("JSON is nested too deeply", where=str(path)) from error
    except json.JSONDecodeError as error:
        raise FormatError(
            f"is not JSON ({error.msg})", where=f"{path}:{error.lineno}:{error.colno}", expected="a glTF or GLB file"
        ) from error
    except ValueError as error:  # wrong UTF-8, NaN, a number of thousands of digits
        raise FormatError(f"is not JSON ({error})", where=str(path), expected="a glTF or GLB file") from error
    if not isinstance(value, dict):
        raise FormatError("JSON is not an object", where=str(path), value=type(value).__name__, expected="an object")
    return cast("dict[str, Any]", value)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")


def _split(path: Path, data: bytes) -> tuple[bytes, memoryview | None]:
    """Return the JSON chunk and the binary chunk of a GLB."""

    def bad(what: str, at: int, value: object = None, expected: str | None = None) -> FormatError:
        return FormatError(what, where=f"{path}: byte {at}", value=value, expected=expected)

    if len(data) < 20:
        raise bad("GLB is cut off", len(data), expected="a header of 12 bytes and a chunk")
    version, length = struct.unpack_from("<II", data, 4)
    if version != 2:
        raise bad("GLB has another version", 4, version, "2")
    if not 20 <= length <= len(data):
        raise bad("GLB is cut off or its length is wrong", 8, length, f"20 to {len(data)}")
    text: bytes | None = None
    chunk: memoryview | None = None
    at = 12
    while at < length:
        if at + 8 > length:
            raise bad("chunk header is cut off", at)
        size, kind = struct.unpack_from("<II", data, at)
        if size > length - at - 8:
            raise bad("chunk is longer than the file", at, size, f"at most {length - at - 8}")
        body = memoryview(data)[at + 8 : at + 8 + size]
        if text is None:
            if kind != JSON_CHUNK:
                raise bad("first chunk is not JSON", at + 4, hex(kind), hex(JSON_CHUNK))
            text = bytes(body)
        elif kind == BIN_CHUNK and chunk is None:
            chunk = body
        at += 8 + size
    return text or b"", chunk


def _decode_data(element: Element, uri: str) -> bytes:
    """Return the bytes of a data URI, base64 or percent-encoded."""
    head, comma, body = uri.partition(",")
    if not comma:
        raise element.error("data URI has no data", "uri", value=uri[:60])
    if not head.lower().endswith(";base64"):
        return unquote_to_bytes(body.encode(errors="replace"))
    try:
        packed = unquote_to_bytes(body) if "%" in body else body.encode("ascii")
        return base64.b64decode(packed, validate=True)
    except (binascii.Error, ValueError) as error:
        raise element.error(f"data URI is not base64 ({error})", "uri", value=uri[:60]) from error
