"""A shorter way through numba's front end for our kernels: the same passes over the same types, without detours.

Nearly all of a cold start is numba's Python code, and much of that does nothing for kernels like ours, which hold
numbers, tuples of numbers and borrowed arrays:

- passes for what house style forbids (context managers, closures, generators, object mode, array expressions)
- the search for how to type ``float * float`` among sixty templates, anew for each operator in the text
- a compilation of its own for each literal argument: ``load(a, i, 3)``, ``load(a, i, 6)``, ...
- whole compilations behind ``min``, ``max`` and ``int`` of numbers

Everything here is made of numba's own parts, for our kernels alone. Where a future numba has them no longer, ``jit``
compiles the ordinary way: slower, same code.
"""

import operator
from typing import Any

from numba.core import compiler, typed_passes, types, untyped_passes
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.lowering import Lower
from numba.core.typing.context import Context
from numba.core.typing.templates import signature
from numba.cpython.builtins import do_minmax

from synovia.kernels.compiler import interrupts  # by way of the package: it changes no code, the hash leaves it out

_SIGNATURES: dict[Any, Any] = {}
_REMEMBERED = (types.Dispatcher, types.Function, types.NumberClass, str)  # ours, built-in ones, F(...), item access
_COMPARED = {min: operator.lt, max: operator.gt}


class _Typing(Context):
    """The typing context of numba's CPU target, with a memory."""

    @classmethod
    def beside(cls, context: Any) -> "_Typing":
        """Return a context that shares everything with another one."""
        own = cls.__new__(cls)
        own.__dict__ = context.__dict__
        return own

    def resolve_function_type(self, func, args, kws):
        """Return the signature of a call."""
        if type(func) is types.Dispatcher:  # one compilation for all literals
            args = tuple([types.unliteral(a) for a in args])
        if kws or type(func) not in _REMEMBERED:
            return super().resolve_function_type(func, args, kws)
        key = func, args
        try:
            found = _SIGNATURES.get(key)
        except TypeError:  # an index that has no hash: a slice
            return super().resolve_function_type(func, args, kws)
        if found is None:
            found = self._of_numbers(func, args) or super().resolve_function_type(func, args, kws)
            if found is not None:
                _SIGNATURES[key] = found
        return found

    def _of_numbers(self, func: Any, args: Any) -> Any:
        """Return the signature of min, max or int of numbers, None for other calls."""
        name = _name(func)
        numbers = [types.unliteral(a) for a in args]
        if not all(isinstance(a, types.Number) for a in numbers):
            return None
        if name in _COMPARED:
            unified = self.unify_types(*numbers)
            return signature(unified, *([unified] * len(numbers)))
        return signature(types.intp, *numbers) if name is int and len(numbers) == 1 else None


def _name(func: Any) -> Any:
    """Return the Python function that a function type stands for."""
    return func.typing_key if type(func) is types.Function else None


class _Lower(Lower):
    """Lowering with min, max and int of numbers in place; what should stay a function of its own says so."""

    def setup_function(self, fndesc):
        super().setup_function(fndesc)
        if getattr(self.library, "apart", False):
            self.function.attributes.add("noinline")

    def _lower_call_normal(self, fnty, expr, signature):
        name = _name(fnty)
        if name not in (min, max, int) or not all(isinstance(a, types.Number) for a in signature.args):
            return super()._lower_call_normal(fnty, expr, signature)
        values = self.fold_call_args(fnty, signature, expr.args, expr.vararg, expr.kws)
        if name is int:
            return self.context.cast(self.builder, values[0], signature.args[0], signature.return_type)
        return do_minmax(self.context, self.builder, list(signature.args), values, _COMPARED[name])


@register_pass(mutates_CFG=True, analysis_only=False)
class _NativeLowering(typed_passes.NativeLowering):
    """numba's lowering, by the class above."""

    _name = "synovia_lowering"

    @property
    def lowering_class(self):
        """The class that lowers."""
        return _Lower


class _Passes(PassManager):
    """Runs passes, and neither times nor announces them."""

    def _runPass(self, index, pss, internal_state):  # pyright: ignore[reportIncompatibleVariableOverride]  # decorated
        pss.analysis = self._analysis
        pss.run_initialization(internal_state)
        pss.run_pass(internal_state)
        pss.run_finalizer(internal_state)


_STEPS = (
    untyped_passes.TranslateByteCode,
    untyped_passes.FixupArgs,
    untyped_passes.IRProcessing,
    untyped_passes.RewriteSemanticConstants,
    untyped_passes.DeadBranchPrune,
    untyped_passes.GenericRewrites,
    untyped_passes.ReconstructSSA,
    typed_passes.NopythonTypeInference,
    typed_passes.PreLowerStripPhis,
    typed_passes.IRLegalization,
    _NativeLowering,
    typed_passes.NoPythonBackend,
)


class QuickCompiler(compiler.Compiler):
    """numba's compiler with the passes that kernels need."""

    def __init__(self, typingctx, targetctx, library, args, return_type, flags, locals):  # noqa: A002 - numba's name
        interrupts.heed()
        super().__init__(_Typing.beside(typingctx), targetctx, library, args, return_type, flags, locals)

    def define_pipelines(self) -> list[PassManager]:
        """Return the one pipeline."""
        passes: PassManager = _Passes("synovia")
        for step in _STEPS:
            passes.add_pass(step, step.__name__)
        passes.finalize()
        return [passes]
