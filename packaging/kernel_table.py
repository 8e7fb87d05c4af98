"""Print what the kernels of each module take to compile: processor seconds, and bytes of their objects.

    python packaging/kernel_table.py                              # all modules, for the highest level
    python packaging/kernel_table.py --modules search.classify heuristic.fabrik
    python packaging/kernel_table.py --source ../other/src        # of another checkout

Each module is compiled in a process of its own, as in the first use of one solver from a clone. The seconds leave out
the import of the compiler. Nothing is taken from or put into a cache.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parent / "src"


def measured(module: str, processor: str) -> tuple[list[str], float, int]:
    """Compile the entry points of a module; return their names, processor seconds and bytes."""
    llvm: Any = importlib.import_module("llvmlite.binding")
    kernels: Any = importlib.import_module("kernels")
    entries: Any = importlib.import_module("synovia.kernels.compiler.entries")
    code_generation: Any = importlib.import_module("numba.core.codegen")
    names = [name for name in entries.ENTRIES if name.rpartition(".")[0] == module]
    importlib.import_module(f"synovia.kernels.{module}")
    gc.disable()
    begun, size = time.process_time(), 0
    for _, function, code in kernels.lower(names):
        linked = llvm.parse_bitcode(code)
        for one in (*linked.functions, *linked.global_variables):
            if not one.is_declaration:
                one.linkage = llvm.Linkage.external if one.name == function else llvm.Linkage.internal
        machine = llvm.Target.from_triple(linked.triple).create_target_machine(cpu=processor, opt=3, reloc="pic")
        passes = code_generation.create_pass_builder(machine, opt=3, loop_vectorize=True, slp_vectorize=False)
        passes.getModulePassManager().run(linked, passes)
        size += len(machine.emit_object(linked))
    return [name.rpartition(".")[2] for name in names], time.process_time() - begun, size


def main() -> None:
    """Print the table, or be the process of one module."""
    sys.path.insert(0, str(HERE))
    kernels: Any = importlib.import_module("kernels")
    levels = kernels.LEVELS[kernels.MACHINE]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--level", choices=list(levels), default=list(levels)[-1])
    parser.add_argument("--modules", nargs="+", default=())
    parser.add_argument("--source", type=Path, default=SOURCE)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    sys.path.insert(0, str(options.source.resolve()))
    if options.one:
        print(json.dumps(measured(options.one, levels[options.level])))
        return
    lowest = next(iter(levels.values()))  # for which numba writes the code
    environment = {**os.environ, "SYNOVIA_KERNELS": "jit", "NUMBA_CPU_NAME": lowest, "NUMBA_CPU_FEATURES": ""}
    entries: Any = importlib.import_module("synovia.kernels.compiler.entries")
    print("| module | entry points | seconds | kB |\n|---|---|---:|---:|")
    count, seconds, size = 0, 0.0, 0
    for module in dict.fromkeys(name.rpartition(".")[0] for name in entries.ENTRIES):
        if options.modules and module not in options.modules:
            continue
        command = [sys.executable, __file__, "--one", module, "--level", options.level, "--source", options.source]
        found = subprocess.run(command, check=True, env=environment, stdout=subprocess.PIPE, text=True).stdout
        names, took, of_objects = json.loads(found)
        count, seconds, size = count + len(names), seconds + took, size + of_objects
        print(f"| {module} | {', '.join(names)} | {took:.1f} | {of_objects / 1000:.0f} |", flush=True)
    print(f"| all | {count} | {seconds:.0f} | {size / 1000:.0f} |")


if __name__ == "__main__":
    main()
