"""Views of a flat array without cost: a pointer and a shape, without the reference count of an ordinary slice.

Each call opens a problem as two dozen tables; ordinary slices took longer than a step of the solver. A view must not
outlive its array, so it never leaves a kernel. This file uses only numba's extension API.
"""

import numpy as np

from synovia.kernels.compiler import numba

if numba is not None:
    from llvmlite import ir
    from numba.core import types
    from numba.extending import intrinsic

    _WORD = ir.IntType(64)

    def pointer_of(context, builder, array_type, array):
        """Return the LLVM pointer to the elements of an array."""
        return context.data_model_manager[array_type].get(builder, array, "data")

    def view(context, builder, pointer, offset, shape, array_type):
        """Return the LLVM value of a C-contiguous array of a type and shape, ``offset`` elements after a pointer."""
        model = context.data_model_manager[array_type]
        element = context.get_data_type(array_type.dtype)
        itemsize = _WORD(context.get_abi_sizeof(element))
        data = builder.gep(pointer, [offset])
        if data.type.pointee != element:
            data = builder.bitcast(data, element.as_pointer())
        strides = [itemsize] if len(shape) == 1 else [builder.mul(shape[1], itemsize), itemsize]
        parts = {
            "nitems": shape[0] if len(shape) == 1 else builder.mul(*shape),
            "itemsize": itemsize,
            "data": data,
            "shape": _packed(builder, shape),
            "strides": _packed(builder, strides),
        }
        out = ir.Constant(model.get_value_type(), None)  # the view has no owner
        for name, value in parts.items():
            out = builder.insert_value(out, value, model.get_field_position(name))
        return out

    def _packed(builder, values):
        """Return the LLVM array of some LLVM integers."""
        out = ir.Constant(ir.ArrayType(_WORD, len(values)), ir.Undefined)
        for k, value in enumerate(values):
            out = builder.insert_value(out, value, k)
        return out

    def _view_of(source, dtype, dimensions):
        """Return signature and code generator of a view of this type; its arguments are source, offset and shape."""
        out = types.Array(dtype, dimensions, "C")

        def codegen(context, builder, signature, args):
            pointer = pointer_of(context, builder, signature.args[0], args[0])
            return view(context, builder, pointer, args[1], args[2:], out)

        return out(source, *[types.intp] * (1 + dimensions)), codegen

    @intrinsic
    def vector(typingctx, source, offset, n):  # pyright: ignore[reportRedeclaration]  # defined twice
        """Return elements offset to offset + n of a flat array."""
        return _view_of(source, source.dtype, 1)

    @intrinsic
    def matrix(typingctx, source, offset, n, m):  # pyright: ignore[reportRedeclaration]  # defined twice
        """Return n * m elements of a flat array from offset on, as n rows."""
        return _view_of(source, source.dtype, 2)

    @intrinsic
    def bits(typingctx, source, offset, n):  # pyright: ignore[reportRedeclaration]  # defined twice
        """Return elements of a flat float64 array as uint64, for the state of a generator."""
        return _view_of(source, types.uint64, 1)

    @intrinsic
    def stack(typingctx, like, rows, columns):  # pyright: ignore[reportRedeclaration]  # defined twice
        """Return a (rows, columns) array on the stack, of the type of the array ``like``; the sizes are constants.

        The compiler then knows that no other array overlaps it, which it needs for vector instructions.
        """
        if not isinstance(rows, types.IntegerLiteral) or not isinstance(columns, types.IntegerLiteral):
            return None
        sizes = [rows.literal_value, columns.literal_value]

        def codegen(context, builder, signature, args):
            kind = context.get_data_type(like.dtype)
            with builder.goto_entry_block():
                memory = builder.alloca(ir.ArrayType(kind, sizes[0] * sizes[1]))
                memory.align = 64
            pointer = builder.bitcast(memory, kind.as_pointer())
            return view(context, builder, pointer, _WORD(0), [*map(_WORD, sizes)], signature.return_type)

        return types.Array(like.dtype, 2, "C")(like, rows, columns), codegen

else:

    def stack(like, rows, columns):
        """Return a (rows, columns) array of the type of the array ``like``."""
        return np.empty((rows, columns), like.dtype)

    def vector(source, offset, n):
        """Return elements offset to offset + n of a flat array."""
        return source[offset : offset + n]

    def matrix(source, offset, n, m):
        """Return n * m elements of a flat array from offset on, as n rows."""
        return source[offset : offset + n * m].reshape((n, m))

    def bits(source, offset, n):
        """Return elements of a flat float64 array as uint64, for the state of a generator."""
        return source[offset : offset + n].view(np.uint64)
