"""Helpers compiled for linking only: no machine code and no optimisation before they are inside an entry point.

numba turns every compiled function into optimised machine code, also one that is only ever inlined into others, links
into it all that it calls, and optimises it again inside each caller. For a hundred small helpers that is half of the
time of a cold start. Here a helper's LLVM module is kept as it is written; the entry point links each module below it
once, and is optimised once, as a whole.

numba's ``pipeline_class`` is the place it provides for this; the libraries below override a few of its methods. If a
future numba arranges them otherwise, the pipelines are None and all is compiled the ordinary way: slower, same code.
"""

from typing import Any

helper_pipeline: Any = None
apart_pipeline: Any = None
entry_pipeline: Any = None

try:
    from llvmlite.binding import Linkage, parse_assembly
    from numba.core.codegen import JITCodeLibrary

    from synovia.kernels.compiler.frontend import QuickCompiler

    class _Linked(JITCodeLibrary):
        """A library that links every helper below it once."""

        def add_linking_library(self, library):
            """Note a library, and those that it needs."""
            for one in (library, *(library._linking_libraries if isinstance(library, _HelperLibrary) else ())):
                if one not in self._linking_libraries:
                    super().add_linking_library(one)

        def _link_all(self, module):
            """Link what was noted into a module; helpers may go once they are inlined."""
            for one in self._linking_libraries:
                helper = isinstance(one, _HelperLibrary)
                module.link_in(one._final_module if helper else one._get_module_for_linking(), preserve=True)
            for one in self._linking_libraries:
                for name in getattr(one, "defined", ()):
                    module.get_function(name).linkage = Linkage.linkonce_odr

        def finalize(self):
            """Link, optimise once (numba's other round is for reference counts), and make ready to run."""
            self._raise_if_finalized()
            self._collect_reloads()
            self._link_all(self._final_module)
            passes, builder = self._codegen._module_pass_manager()
            passes.run(self._final_module, builder)
            self._final_module.verify()
            self._finalize_final_module()

        def _collect_reloads(self):
            if hasattr(self, "_reload_init"):  # newer versions of numba
                for library in self._linking_libraries:
                    self._reload_init.update(library._reload_init)

    class _HelperLibrary(_Linked):
        """A library that is linked into others and never run by itself."""

        apart = False  # whether it stays a function of its own: not inlined, so that large kernels compile in time
        defined: tuple[str, ...] = ()
        whole: Any = None

        def _optimize_functions(self, ll_module):
            ll_module.data_layout = self._codegen._data_layout

        def finalize(self):
            """Close the module as it is."""
            self._collect_reloads()
            self.defined = tuple(one.name for one in self._final_module.functions if not one.is_declaration)
            self._finalize_dynamic_globals()
            self._finalized = True

        def _get_module_for_linking(self):
            """Return this helper with all below it, for functions that numba compiles the ordinary way."""
            if self.whole is None:
                self.whole = self._final_module.clone()
                self._link_all(self.whole)
                for name in self.defined:
                    self.whole.get_function(name).linkage = Linkage.linkonce_odr
            return self.whole

        def get_pointer_to_function(self, name):
            """Return 0, as where there is no wrapper for Python.

            numba then sets the function's environment, which nothing here reads: give it a place for that.
            """
            self._ensure_finalized()
            engine = self._codegen._engine
            environment = "_ZN08NumbaEnv" + name.removeprefix("_ZN7cpython")
            if not engine.is_symbol_defined(environment):
                place = parse_assembly(f'@"{environment}" = global i8* null')
                place.triple, place.data_layout = self._final_module.triple, self._codegen._data_layout
                engine.add_module(place)
                engine.finalize_object()  # pyright: ignore[reportCallIssue]  # a decorated method of llvmlite
            return 0

    class _EntryCompiler(QuickCompiler):
        """The quick passes, ending in a library that runs."""

        def __init__(self, typingctx, targetctx, library, args, return_type, flags, locals):  # noqa: A002 - numba's name
            if library is None:
                library = _Linked(targetctx.codegen(), "entry")
                library.enable_object_caching()
            super().__init__(typingctx, targetctx, library, args, return_type, flags, locals)

    class _HelperCompiler(QuickCompiler):
        """The quick passes, ending in a library for linking."""

        def __init__(self, typingctx, targetctx, library, args, return_type, flags, locals):  # noqa: A002 - numba's name
            if library is None:
                library = _HelperLibrary(targetctx.codegen(), "helper")
            super().__init__(typingctx, targetctx, library, args, return_type, flags, locals)

    class _ApartCompiler(_HelperCompiler):
        """The same for what stays a function of its own."""

        def __init__(self, typingctx, targetctx, library, args, return_type, flags, locals):  # noqa: A002 - numba's name
            super().__init__(typingctx, targetctx, library, args, return_type, flags, locals)
            self.state.library.apart = True

    helper_pipeline = _HelperCompiler
    apart_pipeline = _ApartCompiler
    entry_pipeline = _EntryCompiler
except (ImportError, AttributeError):  # pragma: no cover - a numba that is built differently, or none
    pass
