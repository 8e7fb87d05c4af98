"""Find the source files of a kernel's compiled code, and hash them to detect stale cached code.

numba does not notice an edit in the file of a helper. So the hash of a kernel file covers the file itself and all files
of this package that it imports, directly or indirectly, in any form:

    from synovia.kernels.a.b import f         import synovia.kernels.a.b as b
    from synovia.kernels.a import b           from .b import f
    from synovia.kernels import (a, b)        import synovia.kernels

Files have dotted names below ``synovia.kernels``. Imports are found by regular expressions, without parsing, because
this runs at every start. Any text that looks like an import is used: an unnecessary file costs a compilation, but a
missing file would leave stale code. A file that imports the bare package depends on all its files.
"""

import functools
import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

PACKAGE = "synovia.kernels"
ROOT = Path(__file__).parents[1]

# Files that do not affect compiled code, with the reason; editing them compiles no kernel again.
CHANGE_NO_CODE = {
    "compiler.cache": "stores and loads compiled code, by keys of its own",
    "compiler.compile_events": "messages, Ctrl-C and the fallback around a compilation",
    "compiler.ahead": "compiles entry points ahead of use",
    "compiler.entries": "lists entry points",
    "compiler.kept": "the cache folder on disk",
    "compiler.prebuilt": "loads kernels that were compiled before, if they fit",
    "compiler.sources": "this file, which decides what is hashed",
}

# ``re`` compiles these patterns at their first use, which never happens with prebuilt kernels.
_JOINED = rb"\\\r?\n"  # a line continued by a backslash
_COMMENT = rb"#[^\n]*"
_NAMES = rb"(\([^)]*\)|[^\n;]*)"
_FROM = rb"\bfrom\s+(\.*)\s*([\w.]*)\s+import\s*" + _NAMES
_IMPORT = rb"(?m)(?:^|[;:])[ \t]*import\s+([^\n;]*)"
_WORD = rb"[\w.]+"


@functools.cache
def modules() -> dict[str, Path]:
    """Return the files of the package by their dotted names below the package; ``""`` is the package itself."""
    out: dict[str, Path] = {}
    for folder, _, files in os.walk(ROOT):
        parts = Path(folder).relative_to(ROOT).parts
        for file in files:
            if file.endswith(".py"):
                out[".".join(parts if file == "__init__.py" else (*parts, file[:-3]))] = Path(folder, file)
    return out


@functools.cache
def _names() -> dict[Path, str]:
    return {file: name for name, file in modules().items()}


def name_of(file: Path) -> str | None:
    """Return the dotted name of a file of the package, None for a file from elsewhere."""
    return _names().get(file)


def imports_of(text: bytes, package: str | None) -> set[str]:
    """Return the modules below the package that a source text imports, by their dotted names.

    Args:
        text: The source.
        package: Dotted name (below ``synovia.kernels``) of the package that the file lies in, for relative imports;
            None for a file from elsewhere, whose relative imports are ignored.
    """
    text = re.sub(_JOINED, b" ", re.sub(_COMMENT, b"", text))
    found: set[str] = set()
    for dots, module, names in re.findall(_FROM, text):
        base = _absolute(len(dots), module.decode(), package)
        if base is None:
            continue
        each = [word.decode() for word in re.findall(_WORD, names)]
        if base == "synovia":
            found.update(modules() if "kernels" in each or "*" in names.decode() else ())
        elif base == PACKAGE or base.startswith(f"{PACKAGE}."):
            below = base[len(PACKAGE) + 1 :]
            found.update(_existing(below))
            for name in each:
                found.update(_existing(f"{below}.{name}".lstrip(".")))
            if not below and "*" in names.decode():
                found.update(modules())
    for listed in re.findall(_IMPORT, text):
        for one in listed.split(b","):
            name = one.split(b" as ")[0].strip().decode()
            if name == PACKAGE:
                found.update(modules())
            elif name.startswith(f"{PACKAGE}."):
                found.update(_existing(name[len(PACKAGE) + 1 :]))
    return found - CHANGE_NO_CODE.keys()


def _absolute(dots: int, module: str, package: str | None) -> str | None:
    """Return the absolute module name of a ``from`` statement, None if it is outside the package."""
    if not dots:
        return module
    if package is None:
        return None
    parts = [*PACKAGE.split("."), *filter(None, package.split("."))]
    if dots - 1 >= len(parts):
        return None
    return ".".join([*parts[: len(parts) - (dots - 1)], *filter(None, [module])])


def _existing(name: str) -> Iterator[str]:
    """Yield a module and its parent packages, if they exist: importing the module runs them all."""
    parts = name.split(".") if name else []
    for k in range(len(parts) + 1):
        part = ".".join(parts[:k])
        if part in modules():
            yield part


def sources_of(file: Path) -> dict[str, bytes]:
    """Return the text of a kernel file and of all files of the package that it imports, by dotted names.

    The key of a file from elsewhere is its path.
    """
    own = name_of(file)
    sources: dict[str, bytes] = {}
    left: list[tuple[str, Path]] = [(own or str(file), file)]
    while left:
        name, path = left.pop()
        if name not in sources:
            sources[name], imported = _read(path)
            left.extend((one, modules()[one]) for one in imported)
    return sources


@functools.cache
def _read(file: Path) -> tuple[bytes, set[str]]:
    """Return the text of a file and the modules of the package that it imports."""
    text = file.read_bytes()
    name = name_of(file)
    package = name if name is None or file.name == "__init__.py" else name.rpartition(".")[0]
    return text, imports_of(text, package)


def digest(file: Path, versions: tuple[str, ...]) -> str:
    """Return a hash of a kernel file, of all files that it imports, and of the versions of the compilers.

    The location of the files is not hashed, so environments with the same versions share compiled code. For a file from
    outside the package, the path is not hashed either, only the content.
    """
    out = hashlib.sha256("\0".join(versions).encode())
    for name, text in sorted(sources_of(file).items()):
        shown = name if name in modules() else ""
        out.update(shown.encode() + b"\0" + text + b"\0")
    return out.hexdigest()[:16]


def digests_of_all() -> dict[str, str]:
    """Return the hashes of all files that affect compiled code, by dotted names."""
    return {name: _digest_of(file) for name, file in sorted(modules().items()) if name not in CHANGE_NO_CODE}


def changed_since(digests: Mapping[str, str]) -> str | None:
    """Return the path of a file that has changed since these hashes were made, None if none has.

    Files without a hash are ignored: no file with a hash imports them.
    """
    for name, digest_before in digests.items():
        file = modules().get(name)
        if file is None or _digest_of(file) != digest_before:
            return f"{name.replace('.', '/') or '__init__'}.py" if file is None else file.relative_to(ROOT).as_posix()
    return None


def _digest_of(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()[:16]
