"""Counts what the house keeps small, and fails if a count has risen above its limit. CI runs it.

    python packaging/house.py [--list]

A limit is the count of the day on which it was set: lower it when the count falls. Statements have no limit; they are
printed so that a change can say how many it adds.
"""

import ast
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

REPO = Path(__file__).resolve().parents[1]
PACKAGE = REPO / "src" / "synovia"
OPENERS = {"vector", "matrix", "bits"}  # kernels' views of flat arrays: an array, an offset, a shape
Function = ast.FunctionDef | ast.AsyncFunctionDef


class Found(NamedTuple):
    """Something that is counted.

    Args:
        path: Its file, below the package.
        line: Its line.
        what: What it is.
    """

    path: str
    line: int
    what: str


def functions(tree: ast.AST) -> Iterator[Function]:
    """Yield all functions and methods."""
    for node in ast.walk(tree):
        if isinstance(node, Function):
            yield node


@cache
def public() -> frozenset[tuple[str, str]]:
    """Return file and name of the functions and classes that users call: what must be named there is an option."""
    import synovia as sy
    from synovia import lazy, lerobot

    found = [*lazy.public_names(sy).values(), *(getattr(lerobot, name) for name in lerobot.__all__)]
    own = [
        one for one in found if getattr(one, "__module__", "").startswith("synovia") and hasattr(one, "__qualname__")
    ]
    return frozenset((_file(one.__module__), one.__qualname__) for one in own)


def _file(module: str) -> str:
    """Return the file of a module, below the package."""
    return Path(str(sys.modules[module].__file__)).resolve().relative_to(PACKAGE).as_posix()


def wide(
    path: str, tree: ast.AST, most: int, known: Callable[[], frozenset[tuple[str, str]]] = frozenset
) -> Iterator[Found]:
    """Yield the functions with more than ``most`` parameters, without ``self`` and ``cls``.

    Parameters that callers must name do not count in a function, or a method without ``_``, of those that ``known``
    returns.
    """
    options = known()
    for node in ast.walk(tree):
        for one in ast.iter_child_nodes(node):
            if not isinstance(one, Function):
                continue
            names = [arg.arg for arg in (*one.args.posonlyargs, *one.args.args)]
            count = len(names) - (isinstance(node, ast.ClassDef) and names[:1] in (["self"], ["cls"]))
            outermost = node.name if isinstance(node, ast.ClassDef) else one.name
            hidden = one.name.startswith("_") and one.name != "__init__"
            inner = not isinstance(node, ast.ClassDef | ast.Module)
            if hidden or inner or (path, outermost) not in options:
                count += len(one.args.kwonlyargs)
            if count > most:
                yield Found(path, one.lineno, f"{one.name} has {count} parameters")


def names_in(nodes: Iterable[ast.AST | None]) -> set[str]:
    """Return all names in some expressions."""
    return {one.id for node in nodes if node is not None for one in ast.walk(node) if isinstance(one, ast.Name)}


def offsets(tree: ast.AST) -> set[str]:
    """Return the names that say where a part of an array begins or ends."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Slice):
            found |= names_in([node.lower, node.upper])
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in OPENERS:
            found |= names_in(node.args[1:2])
    return found


def summed_by_hand(path: str, tree: ast.Module) -> Iterator[Found]:
    """Yield assignments ``c = b + ...`` after ``b = a + ...`` in one function or module, if both are offsets."""
    places = offsets(tree)
    for scope in (tree, *functions(tree)):
        own = [node for node in scope.body if isinstance(node, ast.Assign | ast.AnnAssign)]
        sums: dict[str, ast.expr] = {}
        for node in own:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if isinstance(node.value, ast.BinOp) and isinstance(node.value.op, ast.Add):
                sums |= {one.id: node.value for one in targets if isinstance(one, ast.Name) and one.id in places}
        for name, value in sums.items():
            before = names_in([value]) & (sums.keys() - {name})
            if before:
                yield Found(path, value.lineno, f"{name} = {ast.unparse(value)}")


def statements(tree: ast.Module) -> int:
    """Return how many statements a module has, without docstrings and other lone constants."""
    return sum(
        isinstance(node, ast.stmt) and not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        for node in ast.walk(tree)
    )


def opens_layout(path: str, tree: ast.AST) -> Iterator[Found]:
    """Yield a module that imports the layout of packed arrays, once."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            names = {f"{node.module}.{alias.name}" for alias in node.names} | {str(node.module)}
            if "synovia.kernels.layout" in names:
                yield Found(path, node.lineno, "imports the layout")
                return


def takes_packed(path: str, tree: ast.AST) -> Iterator[Found]:
    """Yield the places that read the packed arrays of a problem: who has them may call its kernels."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in ("ints", "floats"):
            yield Found(path, node.lineno, ast.unparse(node))


def takes_kernels(path: str, tree: ast.AST) -> Iterator[Found]:
    """Yield the imports of entry points, and of whole modules that have some."""
    from synovia.kernels.compiler.entries import ENTRIES

    known = {f"synovia.kernels.{name}" for name in ENTRIES}
    known |= {name.rpartition(".")[0] for name in known}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        for name in known.intersection(names):
            yield Found(path, node.lineno, f"imports {name}")


Counter = Callable[[str, ast.Module], Iterator[Found]]


def _beyond(*rooms: str) -> Callable[[str], bool]:
    return lambda path: path.partition("/")[0] not in rooms


def _room(*rooms: str) -> Callable[[str], bool]:
    return lambda path: path.partition("/")[0] in rooms


# What is counted: in words, in which files, how, and the limit
BARS: list[tuple[str, Callable[[str], bool], Counter, int]] = [
    ("offsets summed by hand in kernels and problem", _room("kernels", "problem"), summed_by_hand, 0),
    ("functions in kernels with more than 8 parameters", _room("kernels"), lambda path, tree: wide(path, tree, 8), 12),
    ("functions in cli with more than 8 parameters", _room("cli"), lambda path, tree: wide(path, tree, 8), 0),
    (
        "functions outside kernels with more than 6 parameters, keywords of public ones excepted",
        lambda path: not path.startswith("kernels/"),
        lambda path, tree: wide(path, tree, 6, public),
        7,
    ),
    (
        "modules beyond kernels, model, problem, solver, ik and servo that import the layout of packed arrays",
        _beyond("kernels", "model", "problem", "solver", "ik", "servo"),
        opens_layout,
        6,
    ),
    (
        "reads of packed arrays there",
        _beyond("kernels", "model", "problem", "solver", "ik", "servo"),
        takes_packed,
        2,  # a skeleton's tables, and the call of ``IK.solve``, which costs less without one more function
    ),
    (
        "imports of compiled kernels there",
        _beyond("kernels", "model", "problem", "solver", "ik", "servo"),
        takes_kernels,
        0,
    ),
]


MADE = ("api/names/", "gallery/", "made/", "measured/results/")  # pages that the build of the site writes
PAGES_WORDS, GUIDE_WORDS = 45_000, 1_500


def words_of_pages() -> tuple[int, int]:
    """Return the words of all pages, code included, as ``wc -w`` counts them, and the most of a guide outside code."""
    folder = REPO / "docs"
    pages = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*.md")}
    texts = {name: path.read_text(encoding="utf-8") for name, path in pages.items() if not name.startswith(MADE)}
    prose = {name: re.sub(r"^ *```.*?^ *```", "", text, flags=re.DOTALL | re.MULTILINE) for name, text in texts.items()}
    guides = [re.findall(r"\S*\w\S*", text) for name, text in prose.items() if name.startswith("guides/")]
    return sum(len(text.split()) for text in texts.values()), max(map(len, guides))


# Words with which readers stumbled, and how often they may still stand in code and pages. The changelog keeps its own.
RETIRED = {
    "beside": 18,
    "told, tell, tells": 31,
    "calm, settle, settles, settled, settling": 6,
    "anew": 0,
    "wish, wishes, wished, wishful": 0,
}


def retired() -> dict[str, list[str]]:
    """Return where each group of retired words stands, with names in capitals or underscores as well."""
    docs = REPO / "docs"
    pages = [path for path in docs.rglob("*.md") if not path.relative_to(docs).as_posix().startswith(MADE)]
    texts = [*PACKAGE.rglob("*.py"), *pages, REPO / "README.md", REPO / "CONTRIBUTING.md"]
    found: dict[str, list[str]] = {words: [] for words in RETIRED}
    patterns = {
        words: re.compile(rf"(?<![a-zA-Z])({words.replace(', ', '|')})(?![a-zA-Z])", re.IGNORECASE) for words in RETIRED
    }
    for path in sorted(texts):
        for line, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            for words, pattern in patterns.items():
                found[words] += [f"{path.relative_to(REPO).as_posix()}:{line}"] * len(pattern.findall(text))
    return found


def main() -> int:
    """Print the counts, and return 1 if one is above its limit."""
    trees = {
        path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted(PACKAGE.rglob("*.py"))
    }
    status = 0
    for words, belongs, count, limit in BARS:
        found = [one for path, tree in trees.items() if belongs(path) for one in count(path, tree)]
        print(f"{words}: {len(found)} (limit {limit})")
        above = len(found) > limit
        status = max(status, int(above))
        if above or "--list" in sys.argv:
            for one in found:
                print(f"  {one.path}:{one.line} {one.what}")
    for group, places in retired().items():
        print(f"{group}: {len(places)} (limit {RETIRED[group]})")
        above = len(places) > RETIRED[group]
        status = max(status, int(above))
        if above and "--list" in sys.argv:
            print("\n".join(f"  {place}" for place in places))
    words, longest = words_of_pages()
    print(f"words of the pages in docs: {words} (limit {PAGES_WORDS}); of the longest guide: {longest} ({GUIDE_WORDS})")
    status = max(status, int(words > PAGES_WORDS or longest > GUIDE_WORDS))
    print(f"statements in src, docstrings excepted: {sum(map(statements, trees.values()))}")
    return status


if __name__ == "__main__":
    sys.exit(main())
