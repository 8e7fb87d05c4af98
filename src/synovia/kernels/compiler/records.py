"""Open flat arrays as the tables that ``layout`` declares: named tuples of views, without cost in compiled code.

``record`` makes the named tuple of some declarations. ``opener`` makes the kernel function that fills it from a packed
problem, which holds the starts of its tables. ``cutter`` makes one for memory in which the tables follow each other.
``changer`` makes one that gives fields other values. They write LLVM code, which takes less time to compile than a call
for each table. This file uses only numba's extension API.
"""

import math
from collections import namedtuple
from collections.abc import Sequence
from typing import Any

import numpy as np

from synovia.kernels.compiler import numba
from synovia.kernels.layout import COUNTS, FLOAT_HEAD, INT_TABLES, PROBLEM, STARTS, WORK, Table

if numba is not None:
    from llvmlite import ir
    from numba.core import types
    from numba.extending import intrinsic

    from synovia.kernels.compiler.views import view

    _number = ir.IntType(64)


def tables_of(group: str) -> list[Table]:
    """Return the tables of a problem or its scratch memory that belong to a group: "" or what a dot ends."""
    return [table for table in (*PROBLEM, *WORK) if table.name.rpartition(".")[0] == group]


def record(name: str, tables: Sequence[Table], *others: str) -> Any:
    """Return a named tuple of some tables, then of other fields."""
    fields = [*(table.name.rpartition(".")[2] for table in tables), *others]
    return namedtuple(name, fields)  # pyright: ignore[reportUntypedNamedTuple]  # declared in ``layout``


def _known_starts() -> dict[str, int]:
    """Return the starts that are the same in every problem: of tables that come before any with a number of rows."""
    out: dict[str, int] = {}
    for integers, start in ((True, INT_TABLES), (False, FLOAT_HEAD)):
        for table in PROBLEM:
            if table.integers == integers:
                out[table.name] = start
                if any(isinstance(size, str) for size in table.shape):
                    break
                start += math.prod(size for size in table.shape if isinstance(size, int))
    return out


_KNOWN = _known_starts()


def opener(kind: Any, group: str, integers: Sequence[int] = (), reals: Sequence[int] = ()) -> Any:
    """Return a kernel function ``open(ints, floats, others)`` of a packed problem or its scratch memory (``floats``).

    Args:
        kind: The named tuple: the tables of the group, integers, reals, then ``others``, a tuple.
        group: See ``tables_of``.
        integers: Places of the integers in ``ints``.
        reals: Places of the reals in ``floats``.
    """
    tables = tables_of(group)
    if numba is None:

        def opened(ints, floats, others):
            views = []
            for table in tables:
                shape = [int(ints[COUNTS[size]]) if isinstance(size, str) else size for size in table.shape]
                views.append(_cut(ints if table.integers else floats, int(ints[STARTS[table.name]]), shape))
            numbers = [*(np.int64(ints[place]) for place in integers), *(floats[place] for place in reals)]
            return kind(*views, *numbers, *others)

        return opened

    @intrinsic
    def compiled(typingctx, ints, floats, others):
        arrays = [types.Array((ints if one.integers else floats).dtype, len(one.shape), "C") for one in tables]
        numbers = [*[types.int64] * len(integers), *[floats.dtype] * len(reals)]

        def codegen(context, builder, signature, args):
            sources = {True: (signature.args[0], args[0]), False: (signature.args[1], args[1])}
            data = {
                key: context.make_array(kind)(context, builder, array).data for key, (kind, array) in sources.items()
            }
            read: dict[int, Any] = {}  # integers of the head, each one once

            def integer(place):
                if place not in read:
                    read[place] = builder.sext(builder.load(builder.gep(data[True], [_number(place)])), _number)
                return read[place]

            items = []
            for table in tables:
                start = _number(_KNOWN[table.name]) if table.name in _KNOWN else integer(STARTS[table.name])
                shape = [integer(COUNTS[size]) if isinstance(size, str) else _number(size) for size in table.shape]
                array_type, array = sources[table.integers]
                items.append(view(context, builder, array_type, array, start, shape, array_type.dtype))
            items += [integer(place) for place in integers]
            items += [builder.load(builder.gep(data[False], [_number(place)])) for place in reals]
            items += [builder.extract_value(args[2], k) for k in range(len(signature.args[2]))]
            return context.make_tuple(builder, signature.return_type, items)

        out: Any = types.BaseTuple.from_types([*arrays, *numbers, *others], kind)
        return out(ints, floats, others), codegen

    return compiled


def cutter(kind: Any, tables: Sequence[Table], names: Sequence[str]) -> Any:
    """Return a kernel function ``open(memory, numbers)`` of tables that follow each other in flat memory.

    Args:
        kind: The named tuple of the tables.
        tables: The tables.
        names: Names of the ``numbers``, a tuple, which count rows and columns.
    """
    if numba is None:

        def opened(memory, numbers):
            given, start, views = dict(zip(names, map(int, numbers), strict=True)), 0, []
            for table in tables:
                views.append(
                    _cut(memory, start, [given[size] if isinstance(size, str) else size for size in table.shape])
                )
                start += views[-1].size
            return kind(*views)

        return opened

    @intrinsic
    def compiled(typingctx, memory, numbers):
        arrays = [types.Array(memory.dtype, len(table.shape), "C") for table in tables]

        def codegen(context, builder, signature, args):
            given = {name: builder.extract_value(args[1], k) for k, name in enumerate(names)}
            start, items = _number(0), []
            for table in tables:
                shape = [given[size] if isinstance(size, str) else _number(size) for size in table.shape]
                items.append(view(context, builder, signature.args[0], args[0], start, shape, memory.dtype))
                start = builder.add(start, shape[0] if len(shape) == 1 else builder.mul(*shape))
            return context.make_tuple(builder, signature.return_type, items)

        given = types.UniTuple(types.intp, len(names)) if names else numbers
        out: Any = types.BaseTuple.from_types(arrays, kind)
        return out(memory, given), codegen

    return compiled


def changer(kind: Any, *names: str) -> Any:
    """Return a kernel function ``change(record, values)`` that gives the named fields other values, in a tuple."""
    if numba is None:

        def changed(record, values):
            return record._replace(**dict(zip(names, values, strict=True)))

        return changed

    new = {kind._fields.index(name): k for k, name in enumerate(names)}
    fields = range(len(kind._fields))

    @intrinsic
    def compiled(typingctx, record, values):
        def codegen(context, builder, signature, args):
            items = [builder.extract_value(args[k in new], new.get(k, k)) for k in fields]
            return context.make_tuple(builder, signature.return_type, items)

        kinds = [values[new[k]] if k in new else record[k] for k in fields]
        out: Any = types.BaseTuple.from_types(kinds, kind)
        return out(record, values), codegen

    return compiled


def _cut(source: Any, start: int, shape: Sequence[int]) -> Any:
    """Return a view of a flat array from a start on."""
    return source[start : start + math.prod(shape)].reshape(shape)
