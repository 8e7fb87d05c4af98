"""Read typed arrays: accessors of buffer views, dense or sparse, packed or interleaved, normalised or not."""

from __future__ import annotations

from typing import Final

import numpy as np

from synovia.io.gltf.container import Document
from synovia.io.gltf.fields import Element
from synovia.model.geometry import Array

FLOAT: Final = 5126
_TYPES: Final = {5120: "<i1", 5121: "<u1", 5122: "<i2", 5123: "<u2", 5125: "<u4", FLOAT: "<f4"}
_WIDTHS: Final = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4, "MAT4": 16}
_INDEX_TYPES: Final = (5121, 5123, 5125)


def read_accessor(document: Document, owner: Element, key: str, width: int, *, unit: bool = False) -> Array:
    """Read the elements of an accessor as float64, (count, width).

    Args:
        document: The file.
        owner: Object that refers to the accessor.
        key: Field that holds the index of the accessor.
        width: Required number of components of an element.
        unit: Whether integers must be normalised, that is, fractions of 1 (rotations).

    Raises:
        FormatError: If a count, an offset or a type contradicts the bytes of the file, or a value is not finite.
    """
    element = document.referred(owner, key, "accessors")
    kind = element.text("type", "")
    if _WIDTHS.get(kind) != width:
        wanted = next(name for name, w in _WIDTHS.items() if w == width)
        raise element.error("accessor has another type", "type", value=kind, expected=wanted)
    component = _component(element, tuple(_TYPES))
    normalized = element.flag("normalized")
    if unit and component != FLOAT and not normalized:
        raise element.error("integers that hold rotations must be normalized", "normalized", expected="true")
    count = element.integer("count", least=1)
    if element.has("bufferView"):
        raw = _view(document, element, component, count, width)
        document.spend(count * width, element)
    else:
        document.spend(count * width, element)  # before the allocation, because nothing else limits the number of zeros
        raw = np.zeros((count, width), _TYPES[component])
    sparse = element.child("sparse")
    if sparse is not None:
        raw = raw.copy()
        rows, values = _sparse(document, sparse, component, count, width)
        raw[rows] = values
    out = raw.astype(np.float64)
    if normalized and component != FLOAT:
        out = np.maximum(out / np.iinfo(raw.dtype).max, -1.0)
    if not np.isfinite(out).all():
        bad = int(np.flatnonzero(~np.isfinite(out).all(1))[0])
        raise element.error(f"element {bad} is not finite", value=out[bad].tolist(), expected="finite numbers")
    return out


def _component(element: Element, allowed: tuple[int, ...]) -> int:
    """Return the component type of an accessor or of sparse indices."""
    component = element.integer("componentType")
    if component not in allowed:
        raise element.error(
            "component type cannot be used", "componentType", value=component, expected=f"one of {allowed}"
        )
    return component


def _view(document: Document, element: Element, component: int, count: int, width: int) -> np.ndarray:
    """Return the elements of a buffer view without a copy."""
    dtype = np.dtype(_TYPES[component])
    view = document.referred(element, "bufferView", "bufferViews")
    buffer = document.buffer(view)
    start = view.integer("byteOffset", default=0)
    length = view.integer("byteLength", least=1)
    if start + length > len(buffer):
        raise view.error(
            "buffer view ends outside its buffer", value=start + length, expected=f"at most {len(buffer)} bytes"
        )
    size = dtype.itemsize * width
    stride = view.integer("byteStride", default=size, least=1, most=252) if view.has("byteStride") else size
    if stride < size:
        raise view.error("stride is shorter than an element", "byteStride", value=stride, expected=f"at least {size}")
    offset = element.integer("byteOffset", default=0)
    if offset + stride * (count - 1) + size > length:
        raise element.error(
            "accessor ends outside its buffer view",
            "count" if element.has("count") else "",
            value=count,
            expected=f"elements that fit in {length} bytes from byte {offset} on",
        )
    return np.ndarray((count, width), dtype, buffer, start + offset, (stride, dtype.itemsize))


def _sparse(
    document: Document, sparse: Element, component: int, count: int, width: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows that a sparse accessor replaces, and their new values."""
    many = sparse.integer("count", least=1, most=count)
    indices, values = sparse.child("indices"), sparse.child("values")
    if indices is None or values is None:
        raise sparse.error("sparse accessor lacks indices or values")
    rows = _view(document, indices, _component(indices, _INDEX_TYPES), many, 1)[:, 0].astype(np.int64)
    if np.any(rows[1:] <= rows[:-1]) or rows[-1] >= count:
        raise indices.error("indices are out of order or out of range", expected=f"strictly increasing, below {count}")
    return rows, _view(document, values, component, many, width)
