"""Views of a flat array without cost: a pointer and a shape, without the reference count of an ordinary slice.

Each call opens a problem as two dozen tables; as slices they took longer than a step of the solver. A view must not
outlive its array, so it never leaves a kernel. This file uses only numba's extension API.
"""

import numpy as np

from synovia.kernels.compiler import numba

if numba is not None:
    from llvmlite import ir
    from numba.core import types
    from numba.extending import intrinsic
    from numba.np.arrayobj import populate_array

    def view(context, builder, source_type, source, offset, shape, dtype):
        """Return the LLVM value of a C-contiguous array of a shape at an element of another array."""
        base = context.make_array(source_type)(context, builder, source)
        out_type = types.Array(dtype, len(shape), "C")
        out = context.make_array(out_type)(context, builder)
        pointer = builder.bitcast(builder.gep(base.data, [offset]), out.data.type)
        size = context.get_abi_sizeof(context.get_data_type(dtype))
        itemsize = ir.Constant(context.get_value_type(types.intp), size)
        strides = [itemsize] if len(shape) == 1 else [builder.mul(shape[1], itemsize), itemsize]
        populate_array(out, data=pointer, shape=shape, strides=strides, itemsize=itemsize, meminfo=None, parent=None)
        return out._getvalue()

    def _view_of(source, dtype, dimensions):
        """Return signature and code generator of a view of this type; its arguments are source, offset and shape."""

        def codegen(context, builder, signature, args):
            return view(context, builder, signature.args[0], args[0], args[1], args[2:], dtype)

        return types.Array(dtype, dimensions, "C")(source, *[types.intp] * (1 + dimensions)), codegen

    @intrinsic
    def vector(typingctx, source, offset, n):  # pyright: ignore[reportRedeclaration]  # or the one below
        """Return elements offset to offset + n of a flat array."""
        return _view_of(source, source.dtype, 1)

    @intrinsic
    def matrix(typingctx, source, offset, n, m):  # pyright: ignore[reportRedeclaration]  # or the one below
        """Return n * m elements of a flat array from offset on, as n rows."""
        return _view_of(source, source.dtype, 2)

    @intrinsic
    def bits(typingctx, source, offset, n):  # pyright: ignore[reportRedeclaration]  # or the one below
        """Return elements of a flat float64 array as uint64, for the state of a generator."""
        return _view_of(source, types.uint64, 1)

    @intrinsic
    def stack(typingctx, like, rows, columns):  # pyright: ignore[reportRedeclaration]  # or the one below
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
            size = context.get_abi_sizeof(kind)
            word = context.get_value_type(types.intp)
            shape = [ir.Constant(word, n) for n in sizes]
            strides = [ir.Constant(word, sizes[1] * size), ir.Constant(word, size)]
            out = context.make_array(signature.return_type)(context, builder)
            pointer = builder.bitcast(memory, out.data.type)
            item = ir.Constant(word, size)
            populate_array(out, data=pointer, shape=shape, strides=strides, itemsize=item, meminfo=None, parent=None)
            return out._getvalue()

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
