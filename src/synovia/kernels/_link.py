"""Helpers compiled for linking only: no machine code and no optimisation before they are inside an entry point.

numba turns every compiled function into optimised machine code, also one that is only ever inlined into others, and
optimises it again inside each caller. For a hundred small helpers that is half of the time of a cold start. Here a
helper's LLVM module is kept as it is written, and the entry point that links it is optimised once, as a whole.

numba's ``pipeline_class`` is the place it provides for this; the library below overrides three of its methods. If a
future numba arranges them otherwise, ``pipeline`` is None and helpers are compiled the ordinary way: slower, same code.
"""

from typing import Any

pipeline: Any = None

try:
    from llvmlite.binding import parse_assembly
    from numba.core.codegen import JITCodeLibrary
    from numba.core.compiler import Compiler

    class _HelperLibrary(JITCodeLibrary):
        """A library that is linked into others and never run by itself."""

        def _optimize_functions(self, ll_module):
            ll_module.data_layout = self._codegen._data_layout

        def _optimize_final_module(self):
            pass

        def _finalize_final_module(self):
            self._finalize_dynamic_globals()
            self._verify_declare_only_symbols()
            self._finalized = True

        def get_pointer_to_function(self, name):
            """Return 0, as where there is no wrapper for Python.

            numba then sets the function's environment, which nothing here reads: give it a place for that.
            """
            engine = self._codegen._engine
            environment = "_ZN08NumbaEnv" + name.removeprefix("_ZN7cpython")
            if not engine.is_symbol_defined(environment):
                place = parse_assembly(f'@"{environment}" = global i8* null')
                place.triple, place.data_layout = self._final_module.triple, self._codegen._data_layout
                engine.add_module(place)
                engine.finalize_object()  # pyright: ignore[reportCallIssue]  # a decorated method of llvmlite
            return 0

    class _HelperCompiler(Compiler):
        """numba's own passes, ending in a library for linking."""

        def __init__(self, typingctx, targetctx, library, args, return_type, flags, locals):  # noqa: A002 - numba's name
            if library is None:
                library = _HelperLibrary(targetctx.codegen(), "helper")
            super().__init__(typingctx, targetctx, library, args, return_type, flags, locals)

    _OVERRIDDEN = ("_optimize_functions", "_optimize_final_module", "_finalize_final_module", "get_pointer_to_function")
    if all(hasattr(JITCodeLibrary, name) for name in _OVERRIDDEN):
        pipeline = _HelperCompiler
except (ImportError, AttributeError):  # pragma: no cover - a numba that is built differently, or none
    pass
