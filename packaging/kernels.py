"""Compile all entry points of the kernels ahead, into extension modules that need neither numba nor a compiler.

    python packaging/kernels.py                                   # into src/synovia/kernels/prebuilt
    python packaging/kernels.py --levels x86_64_v3 --jobs 4

There is one module for each level of the instruction set: three for x86-64, one for arm64 (on such a machine). A module
is built for CPython's stable ABI, so it serves every version from 3.11 on. numba writes the LLVM code of an entry point
once, with everything that it calls. LLVM optimises that code for each level, with the passes that numba uses. C code
that this script writes takes the arguments. The same sources and versions give the same bytes.

Objects are kept in the cache folder by a hash of their sources without comments and docstrings, so that after an edit
only what it changes is compiled. The modules are kept, too: a clone without its own uses those that another clone of
the same sources has compiled for this processor. The script needs numba, a C compiler and NumPy's headers.
"""

from __future__ import annotations

import argparse
import ast
import ctypes
import functools
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import suppress
from importlib.util import find_spec
from itertools import groupby
from multiprocessing import get_all_start_methods, get_context
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).resolve().parents[1] / "src"
FOLDER = SOURCE / "synovia" / "kernels" / "prebuilt"
MACHINE = platform.machine().lower().replace("amd64", "x86_64")
# What LLVM compiles for, by level; the highest level that a processor supports is chosen at run time.
LEVELS = {
    "x86_64": {"x86_64": "x86-64", "x86_64_v3": "x86-64-v3", "x86_64_v4": "x86-64-v4"},
    "aarch64": {"arm64": "generic"},
    "arm64": {"arm64": "generic"},
}
C_TYPES = {
    "float64": ("double", "NPY_DOUBLE"),
    "float32": ("float", "NPY_FLOAT"),
    "int32": ("int32_t", "NPY_INT32"),
    "int64": ("int64_t", "NPY_INT64"),
    "uint64": ("uint64_t", "NPY_UINT64"),
}
SCALARS = {  # type that a kernel takes, type that is read, and what reads it; -1 with an error set is a failure
    "bool": ("uint8_t", "int", "PyObject_IsTrue"),
    "int64": ("int64_t", "int64_t", "PyLong_AsLongLong"),
    "float64": ("double", "double", "PyFloat_AsDouble"),
}
_POLL = 0.2  # seconds between two looks whether another run has compiled what this one needs
FORM = "2"  # of the object files; another one for each change in how they are made
C_FLAGS = ("-O2", "-fPIC", "-fvisibility=hidden", "-ffunction-sections", "-Wall", "-Werror", "-Wno-unused-function")


class Symbol(NamedTuple):
    """One compiled function: an entry point for one signature."""

    entry: str  # by module and function
    name: str  # in C
    arguments: list[tuple[str, int]]  # kind of number, and dimensions; 0 for a number itself
    returns: bool  # an int64, or nothing


# One process compiles the entry points of one module ------------------------------------------------------------------


def compile_entries(names: list[str], folders: dict[str, Path]) -> None:
    """Write the object files of some entry points, and a description of them, into a folder for each level."""
    import gc

    import llvmlite.binding as llvm
    from numba.core.codegen import create_pass_builder

    gc.disable()  # the compiler makes many objects that live to its end
    symbols: list[Symbol] = []
    for symbol, function, code in lower(names):
        alone = renamed(code, {function: symbol.name})
        for level, folder in folders.items():
            module = llvm.parse_bitcode(alone, llvm.create_context())  # shares no constants with what came before
            machine = llvm.Target.from_triple(module.triple).create_target_machine(
                cpu=LEVELS[MACHINE][level], opt=3, reloc="pic", codemodel="default"
            )
            passes = create_pass_builder(machine, opt=3, loop_vectorize=True, slp_vectorize=False)
            passes.getModulePassManager().run(module, passes)
            module.verify()
            (folder / f"{symbol.name}.o").write_bytes(machine.emit_object(module))
        symbols.append(symbol)
    for folder in folders.values():
        (folder / "symbols.json").write_text(json.dumps(symbols))


def renamed(code: bytes, public: dict[str, str]) -> bytes:
    """Return LLVM code whose functions and variables are its own, except some that get public names.

    numba counts all functions of a process in their names, and the length of names shows in object files. So the others
    are counted within this code: it gives the same bytes whatever the process has compiled before.
    """
    import llvmlite.binding as llvm

    module = llvm.parse_bitcode(code)
    for i, one in enumerate((*module.functions, *module.global_variables)):
        if one.is_declaration:
            continue
        shown = public.get(one.name)
        one.linkage = llvm.Linkage.internal if shown is None else llvm.Linkage.external
        one.name = shown or f"own{i}"
    return module.as_bitcode()


def lower(names: list[str]) -> Iterator[tuple[Symbol, str, bytes]]:
    """Yield each signature of some entry points, the name of its function in LLVM, and its code before any pass."""
    from importlib import import_module

    import numba

    from synovia.kernels.compiler import entries, link

    if link.helper_pipeline is None:
        raise SystemExit("kernels: this version of numba is built differently from what compiler/link.py knows")
    for name in names:
        module, _, function = name.rpartition(".")
        kernel = getattr(import_module(f"synovia.kernels.{module}"), function)
        options = {key: value for key, value in kernel.targetoptions.items() if key != "nopython"}
        # the library of a helper is the code that numba writes, linked with all helpers below it and not optimised
        helper = numba.njit(**options, no_cpython_wrapper=True, pipeline_class=link.helper_pipeline)(kernel.py_func)
        for types in entries.signatures(name):
            helper.compile(types)
            made = helper.overloads[types]
            returns = numba.types.unliteral(made.signature.return_type)
            if returns not in (numba.int64, numba.none):
                raise SystemExit(f"kernels: {name} returns {returns}, expected int64 or none")
            arguments = [(str(getattr(one, "dtype", one)), getattr(one, "ndim", 0)) for one in types]
            precision = "_single" if ("float32", 1) in arguments else ""
            symbol = Symbol(name, f"synovia_{name.replace('.', '__')}{precision}", arguments, returns == numba.int64)
            yield symbol, made.fndesc.llvm_func_name, made.library._get_module_for_linking().as_bitcode()


@functools.cache
def _code_of(text: bytes) -> bytes:
    """Return the syntax tree of a source without docstrings."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node) is not None:
            node.body[0] = ast.Pass()
    return ast.dump(tree).encode()


def code_digest(module: str, versions: Sequence[str]) -> str:
    """Return a hash of a kernel module and of all modules that it imports, as code: texts for readers do not count.

    Args:
        module: Dotted name below ``synovia.kernels``.
        versions: What else determines the objects.
    """
    from synovia.kernels.compiler import sources

    out = hashlib.sha256("\0".join(versions).encode())
    for name, text in sorted(sources.sources_of(sources.modules()[module]).items()):
        out.update(name.encode() + b"\0" + _code_of(text) + b"\0")
    return out.hexdigest()[:16]


class Objects:
    """Processes that compile, and the folder where objects are kept.

    Args:
        jobs: How many processes.
    """

    def __init__(self, jobs: int) -> None:
        self._before = source_bytes()
        os.environ |= {  # of the processes, which start with their first work
            "PYTHONPATH": str(SOURCE),
            "PYTHONHASHSEED": "0",
            "SYNOVIA_KERNELS": "jit",
            "NUMBA_CPU_NAME": next(iter(LEVELS[MACHINE].values())),
            "NUMBA_CPU_FEATURES": "",
        }
        forks = "forkserver" in get_all_start_methods()
        context = get_context("forkserver" if forks else "spawn")
        if forks:
            context.set_forkserver_preload(["synovia.kernels.compiler.jit"])
        # A helper that leaves inlining open takes it from its first caller, so each module has a process of its own, or
        # its objects would depend on what came before. All of them fork from one that has imported the compiler.
        self._processes = ProcessPoolExecutor(jobs, context, max_tasks_per_child=1)

    def __enter__(self) -> Objects:
        return self

    def __exit__(self, *error: object) -> None:
        self._processes.shutdown(cancel_futures=True)

    def of(self, names: list[str], levels: Sequence[str]) -> list[Path]:
        """Return the folders, one a level, of the objects of some entry points of one module; compile what lacks."""
        from synovia.kernels.compiler import entries, kept

        module = names[0].rpartition(".")[0]
        versions = (*map(str, LEVELS[MACHINE].items()), *made_with().values(), FORM, entries.described(names), *names)
        key = code_digest(module, versions)
        root = kept.cache_root() / "objects"
        root.mkdir(parents=True, exist_ok=True)
        placed = {level: root / f"{module}.{level}-{key}" for level in levels}
        while any(not folder.exists() for folder in placed.values()):
            if not kept.lock(f"objects/{module}-{key}"):  # another run compiles the same
                time.sleep(_POLL)
                continue
            try:
                self._compile(names, {level: folder for level, folder in placed.items() if not folder.exists()}, root)
            finally:
                kept.unlock(f"objects/{module}-{key}")
        for folder in placed.values():
            kept.note_use(folder)
        return [*placed.values()]

    def _compile(self, names: list[str], places: dict[str, Path], root: Path) -> None:
        """Compile some entry points of one module, and put the folder of each level, whole, into its place."""
        from synovia.kernels.compiler import kept

        if not places:
            return
        with tempfile.TemporaryDirectory(dir=root) as made:
            folders = {level: Path(made, level) for level in places}
            for folder in folders.values():
                folder.mkdir()
            self._processes.submit(compile_entries, names, folders).result()
            if source_bytes() != self._before:  # its objects may be those of other sources than its name says
                raise SystemExit("kernels: a source was edited while it was compiled. Run this again.")
            for level, place in places.items():
                with suppress(OSError):  # another run was faster, with the same bytes
                    folders[level].rename(place)
                kept.remove_old(place)


def source_bytes() -> dict[str, bytes]:
    """Return the content of all files of the kernels."""
    folder = SOURCE / "synovia" / "kernels"
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*.py"))}


def made_with() -> dict[str, str]:
    """Return the versions that decide on the bytes."""
    from importlib.metadata import version

    return {name: version(name) for name in ("numba", "llvmlite", "numpy")}


# One C file takes the arguments ---------------------------------------------------------------------------------------

_HEAD = """\
#define Py_LIMITED_API 0x030B0000
#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#define NPY_TARGET_VERSION NPY_1_22_API_VERSION
#include <Python.h>
#include <stdint.h>
#include <numpy/arrayobject.h>

/* A kernel takes an array as numba does: owner (none), elements, bytes of one, data, shape, strides. */
#define ARRAY(a) NULL, NULL, (int64_t)PyArray_SIZE(a), (int64_t)PyArray_ITEMSIZE(a), PyArray_DATA(a)
#define SIZES1(a) (int64_t)PyArray_DIM(a, 0), (int64_t)PyArray_STRIDE(a, 0)
#define SIZES2(a) (int64_t)PyArray_DIM(a, 0), (int64_t)PyArray_DIM(a, 1), \\
    (int64_t)PyArray_STRIDE(a, 0), (int64_t)PyArray_STRIDE(a, 1)
#define SIZES3(a) (int64_t)PyArray_DIM(a, 0), (int64_t)PyArray_DIM(a, 1), (int64_t)PyArray_DIM(a, 2), \\
    (int64_t)PyArray_STRIDE(a, 0), (int64_t)PyArray_STRIDE(a, 1), (int64_t)PyArray_STRIDE(a, 2)

static int is_array(PyObject *o, int type, int dimensions)
{
    PyArrayObject *a = (PyArrayObject *)o;
    return PyArray_CheckExact(o) && PyArray_TYPE(a) == type && PyArray_NDIM(a) == dimensions
        && PyArray_IS_C_CONTIGUOUS(a);
}

static PyObject *refuse(const char *name, Py_ssize_t i, const char *expected)
{
    return PyErr_Format(PyExc_TypeError, "%s: argument %zd: expected %s", name, i, expected);
}

"""

_TAIL = """\
static struct PyModuleDef definition = {{PyModuleDef_HEAD_INIT, "{name}", "Kernels compiled ahead.", -1, methods}};

PyMODINIT_FUNC PyInit_{name}(void)
{{
    import_array();
    return PyModule_Create(&definition);
}}
"""

_LEVEL = """\
#define Py_LIMITED_API 0x030B0000
#include <Python.h>

static PyObject *level(PyObject *self, PyObject *none)
{
    const char *name = "arm64";
#if defined(__x86_64__)
    __builtin_cpu_init();
    name = __builtin_cpu_supports("x86-64-v4") ? "x86_64_v4"
         : __builtin_cpu_supports("x86-64-v3") ? "x86_64_v3" : "x86_64";
#endif
    return PyUnicode_FromString(name);
}

static PyMethodDef methods[] = {{"level", level, METH_NOARGS, "Return the level of this processor."}, {NULL}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "processor", NULL, -1, methods};
PyMODINIT_FUNC PyInit_processor(void) { return PyModule_Create(&definition); }
"""


def wrapper(name: str, symbols: list[Symbol]) -> str:
    """Return the C code of the module of that name."""
    parts, methods = [_HEAD], []
    for entry, group in groupby(symbols, lambda one: one.entry):
        forms = list(group)
        parts += [f"extern int32_t {one.name}({_parameters(one)});\n" for one in forms]
        function = entry.replace(".", "__")
        parts.append(_method(function, entry, forms))
        methods.append(f'    {{"{function}", (PyCFunction)(void (*)(void))call_{function}, METH_FASTCALL, NULL}},\n')
    parts.append(f"static PyMethodDef methods[] = {{\n{''.join(methods)}    {{NULL}},\n}};\n\n")
    return "".join(parts) + _TAIL.format(name=name)


def _parameters(symbol: Symbol) -> str:
    """Return the types that a kernel takes, as numba passes them."""
    out = ["int64_t *", "void **"]
    for kind, dimensions in symbol.arguments:
        if dimensions:
            out += ["void *", "void *", "int64_t", "int64_t", "void *", *["int64_t"] * (2 * dimensions)]
        else:
            out.append(SCALARS[kind][0])
    return ", ".join(out)


def _method(function: str, entry: str, forms: list[Symbol]) -> str:
    """Return the C function that Python calls; of two forms it takes the one of the last array's precision."""
    first = forms[0].arguments
    lines = [
        f"static PyObject *call_{function}(PyObject *self, PyObject *const *args, Py_ssize_t count)\n{{\n",
        "    int64_t result = 0;\n    void *error = NULL;\n    int32_t status = 0;\n",
        f"    if (count != {len(first)})\n",
        f'        return PyErr_Format(PyExc_TypeError, "{entry}: expected {len(first)} arguments, got %zd", count);\n',
    ]
    given: list[str] = []
    for i, (kind, dimensions) in enumerate(first):
        if dimensions:
            kinds = sorted({one.arguments[i][0] for one in forms}, reverse=True)
            fits = " || ".join(f"is_array(args[{i}], {C_TYPES[one][1]}, {dimensions})" for one in kinds)
            expected = f"a C-contiguous array of {' or '.join(kinds)} with {dimensions} dimensions"
            lines.append(f'    if (!({fits}))\n        return refuse("{entry}", {i}, "{expected}");\n')
            array = f"(PyArrayObject *)args[{i}]"
            given.append(f"ARRAY({array}), SIZES{dimensions}({array})")
        else:
            passed, read, function_of = SCALARS[kind]
            lines.append(f"    {read} number{i} = {function_of}(args[{i}]);\n")
            lines.append(f"    if (number{i} == -1 && PyErr_Occurred())\n        return NULL;\n")
            given.append(f"({passed})number{i}")
    lines.append("    Py_BEGIN_ALLOW_THREADS\n")
    *others, last = forms
    for one in others:
        place = next(i for i, pair in enumerate(zip(one.arguments, last.arguments, strict=True)) if pair[0] != pair[1])
        test = f"PyArray_TYPE((PyArrayObject *)args[{place}]) == {C_TYPES[one.arguments[place][0]][1]}"
        lines.append(f"    if ({test})\n        status = {one.name}(&result, &error, {', '.join(given)});\n    else\n")
    lines.append(f"    status = {last.name}(&result, &error, {', '.join(given)});\n    Py_END_ALLOW_THREADS\n")
    lines.append("    if (status != 0)\n")
    lines.append(f'        return PyErr_Format(PyExc_RuntimeError, "{entry}: failed with %d", (int)status);\n')
    result = "PyLong_FromLongLong(result)" if last.returns else "(Py_INCREF(Py_None), Py_None)"
    lines.append(f"    return {result};\n}}\n\n")
    return "".join(lines)


# All together ---------------------------------------------------------------------------------------------------------


def build(folder: Path, levels: dict[str, str], jobs: int, modules: Sequence[str] = ()) -> None:
    """Write the extension modules of some levels, and their description, into a folder in place of what was there.

    Args:
        folder: The folder.
        levels: What LLVM compiles for, by level.
        jobs: How many processes compile.
        modules: Modules of kernels, or single entry points; none for all. Other kernels then run as plain Python.
    """
    import numpy as np

    from synovia.kernels.compiler import sources
    from synovia.kernels.compiler.entries import ENTRIES

    if find_spec("numba") is None:
        raise SystemExit('kernels: numba is not installed. Run: pip install -e ".[jit]"')
    if shutil.which("cc") is None:
        raise SystemExit("kernels: expected a C compiler named cc, found none. On Debian: apt install gcc")
    wanted = [name for name in ENTRIES if not modules or {name, name.rpartition(".")[0]} & {*modules}]
    groups = [list(group) for _, group in groupby(wanted, lambda name: name.rpartition(".")[0])]

    def compiled(names: list[str]) -> list[Path]:
        begun = time.perf_counter()
        out = objects.of(names, [*levels])
        print(f"{', '.join(ENTRIES[name].words for name in names)}: {time.perf_counter() - begun:.1f} s", flush=True)
        return out

    with Objects(jobs) as objects, ThreadPoolExecutor(jobs) as pool:
        longest_first = sorted(groups, key=lambda names: -sum(ENTRIES[name].seconds for name in names))
        made = dict(zip([names[0] for names in longest_first], pool.map(compiled, longest_first), strict=True))
    kept = [made[names[0]] for names in groups]
    symbols = [
        Symbol(entry, name, [(kind, dimensions) for kind, dimensions in arguments], returns)
        for one in kept
        for entry, name, arguments, returns in json.loads((one[0] / "symbols.json").read_text())
    ]
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as temporary:
        for i, level in enumerate(levels):
            source = Path(temporary, f"{level}.c")
            source.write_text(wrapper(level, symbols))
            files = [str(one[i] / f"{symbol}.o") for one in kept for symbol in _names(one[i])]
            _link(source, [*files, "-lm"], folder / f"{level}.abi3.so", [f"-I{np.get_include()}"])
        source = Path(temporary, "processor.c")
        source.write_text(_LEVEL)
        _link(source, [], folder / "processor.abi3.so", [])
    described = {
        "sources": sources.digests_of_all(),
        "levels": list(levels),
        "bytes": {file.name: file.stat().st_size for file in sorted(folder.glob("*.so"))},
        "platform": platform_tag(folder.glob("*.so")),
        "made with": made_with(),
    }
    (folder / "made.json").write_text(json.dumps(described, indent=1) + "\n")
    if not modules:
        keep(folder, [*levels][-1])


def keep(folder: Path, level: str) -> None:
    """Copy modules into the cache folder, where other clones of the same sources find them.

    Args:
        folder: The modules.
        level: The highest level among them.
    """
    from synovia.kernels.compiler import kept
    from synovia.kernels.compiler.prebuilt import kept_folder

    place = kept_folder(level)
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent) as made:
        shutil.copytree(folder, Path(made, "all"))
        with suppress(OSError):  # they are there already
            Path(made, "all").rename(place)
    kept.remove_old(place)


def usable() -> list[str]:
    """Return the levels that this processor can run, the lowest first."""
    with tempfile.TemporaryDirectory() as temporary:
        source = Path(temporary, "processor.c")
        source.write_text(_LEVEL)
        _link(source, [], Path(temporary, "processor.so"), [])
        code = f"import sys; sys.path.insert(0, {temporary!r}); import processor; print(processor.level())"
        best = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()
    levels = list(LEVELS[MACHINE])
    return levels[: levels.index(best) + 1]


def platform_tag(files: Iterable[Path]) -> str:
    """Return the platform of a wheel with these modules; on Linux that is the oldest C library that serves."""
    if sys.platform != "linux":
        return sysconfig.get_platform().replace("-", "_").replace(".", "_")
    needed = subprocess.run(["objdump", "-T", *map(str, files)], check=True, capture_output=True, text=True).stdout
    newest = max((int(found) for found in re.findall(r"GLIBC_2\.(\d+)", needed)), default=17)
    return f"manylinux_2_{max(newest, 17)}_{platform.machine()}"


def _names(folder: Path) -> list[str]:
    """Return the symbols whose objects lie in a folder."""
    return [name for _, name, *_ in json.loads((folder / "symbols.json").read_text())]


def _link(source: Path, objects: list[str], out: Path, options: list[str]) -> None:
    """Compile one C file and link it with objects into a stripped extension module."""
    include = f"-I{sysconfig.get_path('include')}"
    prefix = f"-ffile-prefix-map={source.parent}=."
    ends = ("-Wl,-s", "-Wl,--gc-sections", "-Wl,--build-id=none", "-Wl,--exclude-libs,ALL")
    subprocess.run(
        ["cc", "-shared", *C_FLAGS, prefix, include, *options, str(source), *objects, *ends, "-o", str(out)], check=True
    )
    try:
        ctypes.PyDLL(str(out), mode=os.RTLD_NOW)  # finds all symbols, runs nothing of the kernels
    except OSError as error:  # such as a function of numba's runtime, which modules do not have
        raise SystemExit(f"kernels: {error}") from None


def main() -> None:
    """Build everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    known = LEVELS.get(MACHINE, {})
    parser.add_argument("--levels", nargs="+", choices=list(known), default=list(known))
    parser.add_argument("--list", action="store_true", help="print the levels that this processor can run, and end")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--modules", nargs="+", default=(), help="for tests: these modules or entry points alone")
    options = parser.parse_args()
    if not known:
        raise SystemExit(f"kernels: expected a machine among {', '.join(LEVELS)}, got {MACHINE}")
    if options.list:
        print(*usable())
        return
    levels = {level: processor for level, processor in known.items() if level in options.levels}  # the lowest first
    sys.path.insert(0, str(SOURCE))
    os.environ["SYNOVIA_KERNELS"] = "python"  # this process calls and compiles none
    build(options.folder, levels, options.jobs, options.modules)


if __name__ == "__main__":
    main()
