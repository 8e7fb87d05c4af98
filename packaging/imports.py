"""Counts the imports of the package that run up its layers or in circles. CI runs it; it fails if there are any.

    python packaging/imports.py [--list]

All forms count: at the top of a module, in functions, for types alone, and by name. A text that is the name of a module
("synovia.draw", in a call of ``import_module`` or in a table) is an import of it. So are all modules whose names an
f-string can have with the texts of its module (f"synovia.io.{module}"), also those of functions ("bvh.read").
"""

import ast
import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

REPO = Path(__file__).resolve().parents[1]
PACKAGE = REPO / "src" / "synovia"
ROOT = "synovia"

# What may name what is above it, with the reason.
TABLES = {
    "kernels.compiler.entries",  # names the kernels that it compiles when it is asked, after all are imported
}


class Import(NamedTuple):
    """An import of a module of the package.

    Args:
        line: Its line.
        target: The module, below the package; "" for the package itself.
        by_name: Whether a text names it.
    """

    line: int
    target: str
    by_name: bool


def dotted(path: Path) -> str:
    """Return the name of a module below the package, "" for the package itself."""
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix("__init__").rstrip(".")


def statements(nodes: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    """Yield line and dotted name of everything that statements import; ``from a import b`` gives ``a.b``."""
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for alias in node.names:
                yield node.lineno, f"{node.module}.{alias.name}"


def names(nodes: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    """Yield line and text of each text that may name a module, completed where it is the beginning of an f-string."""
    nodes = list(nodes)
    texts = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value
        elif isinstance(node, ast.JoinedStr) and node.values and isinstance(node.values[0], ast.Constant):
            beginning = str(node.values[0].value)
            if beginning.startswith(f"{ROOT}."):
                yield from ((node.lineno, beginning + text) for text in texts)
                yield from ((node.lineno, beginning + above) for text in texts if (above := text.rpartition(".")[0]))


def imports_of(tree: ast.AST, modules: Iterable[str]) -> list[Import]:
    """Return all imports of modules of the package in a module."""
    nodes, known = list(ast.walk(tree)), set(modules)
    found: set[Import] = set()
    for by_name, pairs in ((False, statements(nodes)), (True, names(nodes))):
        for line, text in pairs:
            if text != ROOT and not text.startswith(f"{ROOT}."):
                continue
            target = text.removeprefix(ROOT).removeprefix(".")
            above = target.rpartition(".")[0]  # a name in a module
            if target in known and (target or not by_name):  # the bare word is only the name of the package
                found.add(Import(line, target, by_name))
            elif above in known and not by_name:
                found.add(Import(line, above, by_name))
    return sorted(found)


def circles(graph: dict[str, set[str]]) -> list[set[str]]:
    """Return the sets of modules that import each other, directly or by way of others (Tarjan 1972)."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[set[str]] = []

    def visit(node: str) -> None:
        order[node] = low[node] = len(order)
        stack.append(node)
        for other in sorted(graph.get(node, ())):
            if other not in order:
                visit(other)
            if other in stack:
                low[node] = min(low[node], low[other])
        if low[node] == order[node]:
            at = stack.index(node)
            found.append(set(stack[at:]))
            del stack[at:]

    for node in graph:
        if node not in order:
            visit(node)
    return [circle for circle in found if len(circle) > 1]


def graph_of(imports: dict[str, list[Import]]) -> dict[str, set[str]]:
    """Return the modules that each one imports, without the tables that may name what is above them."""
    return {
        name: {
            one.target
            for one in found
            # by name a module means a package that contains it for its files, or for its logger
            if not one.by_name or (name not in TABLES and not f"{name}.".startswith(f"{one.target}."))
        }
        - {name}
        for name, found in imports.items()
    }


def upward(imports: dict[str, list[Import]], layers: list[str]) -> list[str]:
    """Return the imports that do not point down: ``module:line target``.

    Args:
        imports: The imports of each module.
        layers: The layers, the highest first; members of one layer, divided by ``|``, do not import each other.
    """
    level = {name: at for at, layer in enumerate(layers) for name in layer.replace("|", " ").split()}
    level[""] = -1  # the package itself, which shows all others

    def room(module: str) -> str:
        return module.split(".", maxsplit=1)[0]

    return [
        f"{name or ROOT}:{one.line} {one.target or ROOT}{' (by name)' if one.by_name else ''}"
        for name, found in imports.items()
        for one in found
        if room(name) != room(one.target) and level[room(one.target)] <= level[room(name)]
    ]


def main() -> int:
    """Print the counts, and return 1 if an import points up or there is a circle."""
    trees = {dotted(path): ast.parse(path.read_text(encoding="utf-8")) for path in sorted(PACKAGE.rglob("*.py"))}
    imports = {name: imports_of(tree, trees) for name, tree in trees.items()}
    config = tomllib.loads((REPO / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    layers = next(one["layers"] for one in config["contracts"] if one["type"] == "layers")
    closed, up = circles(graph_of(imports)), upward(imports, layers)
    every = [one for some in imports.values() for one in some]
    print(
        f"{len(imports)} modules, {len(every)} imports, {sum(one.by_name for one in every)} of them by name; "
        f"up: {len(up)}, circles: {len(closed)}"
    )
    for text in (*up, *(f"circle: {sorted(circle)}" for circle in closed)):
        print(text)
    if "--list" in sys.argv:
        for name, some in imports.items():
            for one in some:
                if one.by_name:
                    print(f"by name: {name or ROOT}:{one.line} {one.target}")
    return 1 if up or closed else 0


if __name__ == "__main__":
    sys.exit(main())
