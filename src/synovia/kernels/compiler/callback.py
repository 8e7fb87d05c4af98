"""Calls from kernels to a Python function, which evaluates residuals and gradients of the user.

The function is a C function pointer made by ``ctypes`` (``FUNCTION``). Its address is one of the floats of a problem: a
64-bit address in use has at most 52 bits, so a float64 holds it exactly. ``ctypes`` takes the interpreter's lock during
the call, so kernels may run without the lock on any thread.
"""

import ctypes

from synovia.kernels.compiler import numba

# (quantity to evaluate, index of the goal, pointer to the joint values, pointer to the output) -> float
FUNCTION = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)

if numba is not None:
    from llvmlite import ir
    from numba.core import types
    from numba.extending import intrinsic

    @intrinsic
    def call_python(typingctx, address, quantity, goal, q, out):  # pyright: ignore[reportRedeclaration]  # defined twice
        """Return what the function at an address returns; it may read q and write ``out``."""

        def codegen(context, builder, signature, args):
            long = ir.IntType(64)
            data = [context.make_array(signature.args[i])(context, builder, args[i]).data for i in (3, 4)]
            given = [args[1], args[2], *(builder.bitcast(one, ir.IntType(8).as_pointer()) for one in data)]
            kind = ir.FunctionType(ir.DoubleType(), [one.type for one in given])
            return builder.call(builder.inttoptr(builder.fptoui(args[0], long), kind.as_pointer()), given)

        return types.float64(types.float64, types.int64, types.int64, q, out), codegen

else:

    def call_python(address, quantity, goal, q, out):
        """Return what the function at an address returns; it may read q and write ``out``."""
        return FUNCTION(int(address))(quantity, goal, q.ctypes.data, out.ctypes.data)
