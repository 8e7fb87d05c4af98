"""Compile helpers for linking only, which halves the time of a first compilation.

By default, numba optimises every function, even a function that is only inlined into others: it links all callees into
the function, and optimises them again inside each caller. Here a helper stays an unoptimised LLVM module. An entry
point links each helper that it calls once, and is optimised once as a whole.

CPU seconds until the first answer of a new process without cached code, numba 0.68, with and without this linking:
``lm`` 11 and 15, ``fabrik`` 34 and 68, ``ccd`` 25 and 55.

The libraries below override private methods of numba's code generator. If they fail, on import or in a compilation,
``jit`` compiles the ordinary way instead: slower, with the same results. See ``compile_events.guard``.
"""

from typing import Any

from synovia.kernels.compiler import compile_events  # changes in it do not change the kernels' hash

helper_pipeline: Any = None  # used by ``jit``; None if numba lacks the parts that this file needs
separate_pipeline: Any = None
entry_pipeline: Any = None

try:
    import gc

    from llvmlite.binding import Linkage, parse_assembly
    from numba.core.codegen import JITCodeLibrary
    from numba.core.compiler import Compiler
    from numba.core.dispatcher import Dispatcher

    class _Entry(JITCodeLibrary):
        """The library of an entry point: every helper below it is linked once."""

        def add_linking_library(self, library):
            """Add a library, and the libraries that it needs."""
            for one in (library, *(library._linking_libraries if isinstance(library, _Helper) else ())):
                if one not in self._linking_libraries:
                    super().add_linking_library(one)

        def _link_into(self, module, linkage=Linkage.internal):
            """Link the added libraries into a module; helpers may be dropped once they are inlined."""
            for one in self._linking_libraries:
                helper = isinstance(one, _Helper)
                module.link_in(one._final_module if helper else one._get_module_for_linking(), preserve=True)
            for one in self._linking_libraries:
                for name in getattr(one, "defined", ()):
                    function = module.get_function(name)
                    function.linkage = linkage
                    if linkage is Linkage.internal:
                        # LLVM's loader also finds local symbols: an ordinary function of numba that shares this helper
                        # would call this copy, whose arguments the optimiser may have changed
                        function.name = f"{name}.own"

        def finalize(self):
            """Link, optimise once (numba's second round is for reference counts), and prepare to run."""
            self._raise_if_finalized()
            self._inherit_reloads()
            self._link_into(self._final_module)
            for one in self._final_module.functions:  # a call of an undefined function would end the process
                if one.is_declaration and one.name.startswith("_ZN"):
                    raise RuntimeError(f"{one.name} is not linked")
            passes, builder = self._codegen._module_pass_manager()
            passes.run(self._final_module, builder)
            self._final_module.verify()
            self._finalize_final_module()

        def _inherit_reloads(self):
            if hasattr(self, "_reload_init"):  # numba 0.63 and newer
                for library in self._linking_libraries:
                    self._reload_init.update(library._reload_init)

    class _Helper(_Entry):
        """The library of a helper: linked into other libraries, never run by itself."""

        inlined = True
        defined: tuple[str, ...] = ()
        whole: Any = None

        def add_ir_module(self, ir_module):
            """Add a module; mark its functions as noinline if the library is not ``inlined``."""
            for function in ir_module.functions:
                if not (self.inlined or function.is_declaration):
                    function.attributes.add("noinline")
            super().add_ir_module(ir_module)

        def _optimize_functions(self, ll_module):
            ll_module.data_layout = self._codegen._data_layout

        def finalize(self):
            """Finalise the module without optimisation."""
            self._inherit_reloads()
            self.defined = tuple(one.name for one in self._final_module.functions if not one.is_declaration)
            self._finalize_dynamic_globals()
            self._finalized = True

        def _get_module_for_linking(self):
            """Return this helper with all its callees, for functions that numba compiles the ordinary way."""
            if self.whole is None:
                self.whole = self._final_module.clone()
                self._link_into(self.whole, Linkage.linkonce_odr)
                for name in self.defined:
                    self.whole.get_function(name).linkage = Linkage.linkonce_odr
            return self.whole

        def get_pointer_to_function(self, name):
            """Return 0, as for functions without a Python wrapper.

            After this call, numba sets the function's environment. No code reads it, but numba needs memory for it.
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

    class _Separate(_Helper):
        """The library of a helper that is not inlined, so that large kernels compile in time."""

        inlined = False

    def _compiler(kind, *arguments):
        """Return numba's compiler for one function, with a library of this kind."""
        compile_events.handle_interrupt()
        if not compile_events.linking.active:
            return Compiler(*arguments)
        typing, target, library, *rest = arguments
        if library is None:
            library = kind(target.codegen(), kind.__name__)
            if kind is _Entry:
                library.enable_object_caching()
        return Compiler(typing, target, library, *rest)

    def _helper_compiler(*arguments):
        return _compiler(_Helper, *arguments)

    def _separate_compiler(*arguments):
        return _compiler(_Separate, *arguments)

    def _entry_compiler(*arguments):
        return _compiler(_Entry, *arguments)

    def _forget_helpers():
        """Discard the code compiled for linking and the failures, both of which numba caches."""
        for one in gc.get_objects():
            if issubclass(type(one), Dispatcher):
                one._compiler._failed_cache.clear()
                if any(isinstance(made.library, _Helper) for made in one.overloads.values()):
                    one._reset_overloads()

    helper_pipeline, separate_pipeline, entry_pipeline = _helper_compiler, _separate_compiler, _entry_compiler
    compile_events.linking.forget_helpers = _forget_helpers
except Exception as error:  # noqa: BLE001 - private parts of a numba that is built differently may fail in any way
    compile_events.linking.active = False
    compile_events.linking.failure = error  # the first compilation reports it
