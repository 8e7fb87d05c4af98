"""View flat arrays as the tables that ``layout`` declares, without cost in compiled code.

``record`` makes the named tuple of some declarations. ``opener`` makes the kernel function that fills this tuple from a
packed problem, which holds the starts of its tables. ``cutter`` makes such a function for memory in which the tables
follow each other. ``changer`` makes a function that replaces the values of fields.

In plain Python a record is a named tuple of views. In compiled code it is a few pointers and numbers, and a field is
computed where it is read. A tuple of views would be about three hundred values, which each call of a function would
list one by one; such lists were most of the code that the compiler had to read. The head of a problem does not change
during a call, so its loads are marked as invariant (``invariant.load``), and LLVM moves them out of loops.

This file uses only numba's extension API.
"""

import math
from collections import namedtuple
from collections.abc import Sequence
from typing import Any

import numpy as np

from synovia.kernels.compiler import numba
from synovia.kernels.layout import COUNTS, FLOAT_HEAD, INT_TABLES, PROBLEM, STARTS, WORK, Table


def tables_of(group: str) -> list[Table]:
    """Return the tables of a group: the part of a table's name before the dot, "" for names without a dot.

    Tables of problems and of their scratch memory are searched.
    """
    return [table for table in (*PROBLEM, *WORK) if table.name.rpartition(".")[0] == group]


def record(name: str, tables: Sequence[Table], *others: str) -> Any:
    """Return a named tuple type with fields for some tables, then other fields."""
    return namedtuple(name, [*map(_field, tables), *others])  # pyright: ignore[reportUntypedNamedTuple]  # dynamic


def _field(table: Table) -> str:
    """Return the name of a table in its record."""
    return table.name.rpartition(".")[2]


def _known_starts() -> dict[str, int]:
    """Return the start offsets of those tables whose offset is the same in every problem.

    These are all tables up to the first table with a variable size.
    """
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

if numba is not None:
    from llvmlite import ir
    from numba.core import types
    from numba.core.typing.templates import AttributeTemplate
    from numba.extending import infer_getattr, intrinsic, lower_getattr_generic, models, register_model

    from synovia.kernels.compiler.views import pointer_of, view

    _number = ir.IntType(64)

    class _Record(types.Type):
        """The type of a record in compiled code.

        ``stored``: names and types of the stored values; names of pointers begin with a star.
        ``computed``: for each field, its type and a function of (builder, stored values) that writes its code.
        """

        def __init__(self, name, stored, computed):
            self.stored, self.computed = dict(stored), computed
            super().__init__(f"{name}({', '.join(str(kind) for _, kind in stored)})")

    @register_model(_Record)
    class _RecordModel(models.StructModel):
        def __init__(self, manager, kind):
            super().__init__(manager, kind, list(kind.stored.items()))

    @infer_getattr
    class _RecordFields(AttributeTemplate):
        key = _Record

        def generic_resolve(self, value, attr):
            """Return the type of a field, None if no field has this name."""
            return value.computed[attr][0] if attr in value.computed else value.stored.get(attr)

    @lower_getattr_generic(_Record)
    def _read_field(context, builder, kind, value, attr):
        """Write the code that reads a field."""
        if attr in kind.computed:
            return kind.computed[attr][1](context, builder, _Stored(builder, kind, value))
        return _Stored(builder, kind, value)[attr]

    class _Stored:
        """The stored values of a record, by name."""

        def __init__(self, builder, kind, value):
            self._builder, self._names, self._value = builder, list(kind.stored), value

        def __getitem__(self, name):
            return self._builder.extract_value(self._value, self._names.index(name))

    def _made(context, builder, kind, values):
        """Return the LLVM value of a record that stores these values."""
        out = ir.Constant(context.get_value_type(kind), ir.Undefined)
        for k, value in enumerate(values):
            out = builder.insert_value(out, value, k)
        return out

    def _constant_load(builder, pointer, place):
        """Return the LLVM value of an element that does not change during a call, so that it is loaded only once."""
        out = builder.load(builder.gep(pointer, [_number(place)]))
        out.set_metadata("invariant.load", builder.module.add_metadata([]))
        return out

    def _integer(builder, stored, place):
        """Return the LLVM value of integer ``place`` of a problem, one of those before its tables."""
        return builder.sext(_constant_load(builder, stored["*ints"], place), _number)

    def _integer_field(place):
        return types.int64, lambda _, builder, stored: _integer(builder, stored, place)

    def _real_field(place, kind):
        return kind, lambda _, builder, stored: _constant_load(builder, stored["*floats"], place)

    def _table_field(table, pointer, dtype):
        """Return the type of a table of a problem, and the function that writes its view."""
        kind = types.Array(dtype, len(table.shape), "C")

        def write(context, builder, stored):
            start = _KNOWN.get(table.name)
            start = _integer(builder, stored, STARTS[table.name]) if start is None else _number(start)
            shape = [
                _integer(builder, stored, COUNTS[size]) if isinstance(size, str) else _number(size)
                for size in table.shape
            ]
            return view(context, builder, stored[pointer], start, shape, kind)

        return kind, write


def opener(
    kind: Any,
    group: str,
    integers: Sequence[int] = (),
    reals: Sequence[int] = (),
    *,
    scratch: str = "",
    changes: Sequence[str] = (),
) -> Any:
    """Return a kernel function ``open(ints, floats, others)`` of a packed problem or its scratch memory (``floats``).

    Args:
        kind: The named tuple type: tables of the group, tables of ``scratch``, integers, reals, then the tuple
            ``others``.
        group: See ``tables_of``.
        integers: Indices of the integers in ``ints``.
        reals: Indices of the reals in ``floats``.
        scratch: A group of tables in scratch memory. If given, this memory is the last element of ``others``.
        changes: Fields that a ``changer`` can replace without a new type, because their values are stored.
    """
    tables, more = tables_of(group), tables_of(scratch) if scratch else []
    named = [*map(_field, (*tables, *more))]
    numbers = kind._fields[len(named) : len(named) + len(integers) + len(reals)]
    if numba is None:

        def opened(ints, floats, others):
            views = []
            *rest, memory = others if scratch else (*others, None)
            for table in (*tables, *more):
                shape = [int(ints[COUNTS[size]]) if isinstance(size, str) else size for size in table.shape]
                source = ints if table.integers else floats if table in tables else memory
                views.append(_cut(source, int(ints[STARTS[table.name]]), shape))
            values = [*(np.int64(ints[place]) for place in integers), *(floats[place] for place in reals)]
            return kind(*views, *values, *rest)

        return opened

    @intrinsic
    def compiled(typingctx, ints, floats, others):
        given = list(others)
        sources = {"*ints": ints, "*floats": floats, **({"*scratch": given.pop()} if scratch else {})}
        computed = {}
        for table in (*tables, *more):
            pointer = "*ints" if table.integers else "*floats" if table in tables else "*scratch"
            computed[_field(table)] = _table_field(table, pointer, sources[pointer].dtype)
        computed |= dict(zip(numbers, map(_integer_field, integers), strict=False))
        computed |= {
            name: _real_field(at, floats.dtype) for name, at in zip(numbers[len(integers) :], reals, strict=True)
        }
        stored = [(name, types.CPointer(source.dtype)) for name, source in sources.items()]
        first = [(name, computed.pop(name)) for name in changes]
        others_named = zip(kind._fields[len(kind._fields) - len(given) :], given, strict=True)
        out = _Record(kind.__name__, [*stored, *((name, one[0]) for name, one in first), *others_named], computed)

        def codegen(context, builder, signature, args):
            pointers = {"*ints": (ints, args[0]), "*floats": (floats, args[1])}
            items = [builder.extract_value(args[2], k) for k in range(len(others))]
            if scratch:
                pointers["*scratch"] = (sources["*scratch"], items.pop())
            stored = {name: pointer_of(context, builder, *one) for name, one in pointers.items()}
            values = [*stored.values(), *(one[1](context, builder, stored) for _, one in first), *items]
            return _made(context, builder, out, values)

        return out(ints, floats, others), codegen

    return compiled


def cutter(kind: Any, tables: Sequence[Table], names: Sequence[str]) -> Any:
    """Return a kernel function ``open(memory, numbers)`` of tables that follow each other in flat memory.

    Args:
        kind: The named tuple type of the tables.
        tables: The tables.
        names: Names of the numbers of rows and columns in the tuple ``numbers``.
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

    def sizes(stored, table):
        return [stored[f"*{size}"] if isinstance(size, str) else _number(size) for size in table.shape]

    def field(place, dtype):
        array = types.Array(dtype, len(tables[place].shape), "C")

        def write(context, builder, stored):
            start = _number(0)
            for one in tables[:place]:
                shape = sizes(stored, one)
                start = builder.add(start, shape[0] if len(shape) == 1 else builder.mul(*shape))
            return view(context, builder, stored["*memory"], start, sizes(stored, tables[place]), array)

        return array, write

    @intrinsic
    def compiled(typingctx, memory, numbers):
        computed = {_field(table): field(k, memory.dtype) for k, table in enumerate(tables)}
        stored = [("*memory", types.CPointer(memory.dtype)), *((f"*{name}", types.intp) for name in names)]
        out = _Record(kind.__name__, stored, computed)

        def codegen(context, builder, signature, args):
            given = [builder.extract_value(args[1], k) for k in range(len(names))]
            return _made(context, builder, out, [pointer_of(context, builder, memory, args[0]), *given])

        given = types.UniTuple(types.intp, len(names)) if names else numbers
        return out(memory, given), codegen

    return compiled


def changer(kind: Any, *names: str) -> Any:
    """Return a kernel function ``change(record, values)`` that replaces the named fields by a tuple of values."""
    if numba is None:

        def changed(record, values):
            return record._replace(**dict(zip(names, values, strict=True)))

        return changed

    @intrinsic
    def compiled(typingctx, record, values):
        kinds = record.stored | dict(zip(names, values, strict=True))
        out = _Record(kind.__name__, list(kinds.items()), record.computed)

        def codegen(context, builder, signature, args):
            stored = _Stored(builder, record, args[0])
            items = [
                builder.extract_value(args[1], names.index(name)) if name in names else stored[name] for name in kinds
            ]
            return _made(context, builder, out, items)

        return out(record, values), codegen

    return compiled


def _cut(source: Any, start: int, shape: Sequence[int]) -> Any:
    """Return a view with a given shape of a flat array, beginning at element ``start``."""
    return source[start : start + math.prod(shape)].reshape(shape)
