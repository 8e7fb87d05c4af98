"""House rules that no linter checks: imports, one version, data in the package."""

import ast
import re
import runpy
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import synovia as sy

REPO = Path(__file__).resolve().parents[1]
PACKAGE = REPO / "src" / "synovia"
MODULES = sorted(PACKAGE.rglob("*.py"))

# Folders with one file per thing, whose files share only the folder's base; a registry lists its siblings by nature.
SIBLING_FOLDERS = ("io", "goals", "solver", "model/limits")
SHARED = {"base", "bounds", "describe", "xmltree", "nodes"}
# Choosers; an archive around the text format; meshes, which all formats with shapes share, and which may be glTF.
MAY_SEE_SIBLINGS = {"__init__", "registry", "load", "save", "npz", "meshes", "worlds"}

# Imported where they are used, so that `import synovia` stays light and extras stay optional.
HEAVY = {"ezc3d", "ufbx", "scipy", "matplotlib", "mujoco", "viser", "PIL", "imageio_ffmpeg", "rich", "pyarrow", "ray"}


IMPORTS = runpy.run_path(str(REPO / "packaging" / "imports.py"))
HOUSE = runpy.run_path(str(REPO / "packaging" / "house.py"))
_imports = IMPORTS["statements"]  # line and dotted name of everything that statements import


def _name(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def _run_on_import(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes executed when a module is imported: not function bodies, not `if TYPE_CHECKING`."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        yield child
        yield from _run_on_import(child)


class Facts(NamedTuple):
    """What the rules ask of a module: each is parsed once, by one worker."""

    imports: list[tuple[int, str]]
    run_imports: list[tuple[int, str]]  # at its own import
    asserts: list[int]  # lines
    frozen: list[list[tuple[int, str]]]  # of frozen classes with slots: line and name of each part
    defined: set[str]  # names; those in a class also with the name of the class in front
    texts: list[tuple[int, str]]  # line and value


def _walk(tree: ast.Module) -> Iterator[tuple[ast.AST, tuple[str, ...]]]:
    """Each node of a module with the names of the classes around it."""
    todo: list[tuple[ast.AST, tuple[str, ...]]] = [(tree, ())]
    while todo:
        node, classes = todo.pop()
        yield node, classes
        if isinstance(node, ast.ClassDef):
            classes = (*classes, node.name)
        for field in node._fields:
            value = getattr(node, field, None)
            for child in value if isinstance(value, list) else (value,):
                if isinstance(child, ast.AST) and child._fields:  # a sign or a context has none
                    todo.append((child, classes))


@cache
def _facts(path: Path) -> Facts:
    tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
    facts = Facts([], list(_imports(_run_on_import(tree))), [], [], set(), [])
    for node, classes in _walk(tree):
        name = None
        match node:
            case ast.Import() | ast.ImportFrom():
                facts.imports.extend(_imports([node]))
            case ast.Constant(value=str()):
                facts.texts.append((node.lineno, node.value))
            case ast.Assert():
                facts.asserts.append(node.lineno)
            case ast.ClassDef():
                name = node.name
                made = " ".join(map(ast.unparse, node.decorator_list))
                if "frozen=True" in made and "slots=True" in made:
                    facts.frozen.append([(one.lineno, getattr(one, "name", "")) for one in node.body])
            case ast.FunctionDef():
                name = node.name
            case ast.Name(ctx=ast.Store()):
                name = node.id
            case ast.Attribute(ctx=ast.Store()):
                name = node.attr
            case ast.arg():
                name = node.arg
            case _:
                continue
        if name is not None:
            facts.defined.update([name, *(f"{one}.{name}" for one in classes)])
    return facts


of_all_modules = pytest.mark.xdist_group("all modules")


def test_the_rules_have_something_to_check() -> None:
    """A rule over an empty folder would pass in silence."""
    assert len(MODULES) > 100
    assert sum(_name(path).startswith("kernels/") for path in MODULES) > 50


@of_all_modules
def test_no_assert_in_src() -> None:
    found = [f"{_name(path)}:{line}" for path in MODULES for line in _facts(path).asserts]
    assert not found, f"users would see a bare AssertionError: {found}"


@of_all_modules
def test_only_kernels_import_the_compiler() -> None:
    found = [
        f"{_name(path)}:{line} {name}"
        for path in MODULES
        if not _name(path).startswith("kernels/")
        for line, name in _facts(path).imports
        if name.split(".")[0] in {"numba", "llvmlite"}
    ]
    assert not found, f"numba outside kernels: {found}"


# Kinds of goals and of their terms whose names are no words of anything else. Bones of a rig may be called so, too.
KINDS = {"pole", "support", "centre", "center_of_mass"}
WORDS_OF_RIGS = "model/anatomy/names.py"


@of_all_modules
def test_a_goal_describes_itself_and_no_other_code_names_its_kind() -> None:
    found = {
        (_name(path).split("/")[0], f"{_name(path)}:{line} {text!r}")
        for path in MODULES
        if _name(path) != WORDS_OF_RIGS
        for line, text in _facts(path).texts
        if text in KINDS
    }
    assert {room for room, _ in found} >= {"goals"}, "the kinds have other names: this rule would hold for nothing"
    others = [place for room, place in found if room not in ("goals", "kernels")]
    assert not others, f"ask a property of the goal, such as turns_limb: {others}"


@of_all_modules
def test_kernels_import_nothing_of_the_package_but_errors() -> None:
    found = [
        f"{_name(path)}:{line} {name}"
        for path in MODULES
        if _name(path).startswith("kernels/")
        for line, name in _facts(path).imports
        if name.split(".")[0] == "synovia" and not name.startswith(("synovia.kernels", "synovia.errors"))
    ]
    assert not found, f"kernels stand alone: {found}"


_dotted = IMPORTS["dotted"]


def _read(texts: dict[str, str]) -> dict[str, list[Any]]:
    return {name: IMPORTS["imports_of"](ast.parse(text), texts) for name, text in texts.items()}


def test_a_circle_is_seen_whatever_the_form_of_its_imports() -> None:
    texts = {
        "": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from synovia.a import A",
        "a": "def late():\n    import synovia.b.c as d\n    return d",
        "b": "",
        "b.c": "if TYPE_CHECKING:\n    from synovia import e",
        "e": "from synovia.a import A",
        "f": "from synovia.a import A\nimport numpy",
    }
    graph = IMPORTS["graph_of"](_read(texts))
    assert graph[""] == {"a"}
    assert graph["f"] == {"a"}
    assert IMPORTS["circles"](graph) == [{"a", "b.c", "e"}]


@pytest.mark.parametrize(
    "text",
    [
        "importlib.import_module('synovia.top.b')",
        "__import__('synovia.top.b')",
        "load = import_module\nHOME = 'synovia.top.b'\nload(HOME)",
        "HOMES = {'synovia.top.b': ('B',)}",
        "PARTS = {'B': 'b'}\ndef get(name):\n    return import_module(f'synovia.top.{PARTS[name]}')",
        "ENTRIES = {'b.solve': 1}\ndef get(name):\n    return import_module(f'synovia.top.{name}')",
        "def late():\n    from synovia.top.b import B",
        "from synovia.top import b",
    ],
)
def test_an_arrow_up_and_a_circle_are_seen_also_by_name(text: str) -> None:
    found = _read({"": "", "top": "", "top.b": "from synovia.low import A", "low": text})
    up = IMPORTS["upward"](found, ["top", "low"])
    assert {arrow.split()[1] for arrow in up} == {"top.b"}
    assert IMPORTS["circles"](IMPORTS["graph_of"](found)) == [{"low", "top.b"}]


def test_what_is_no_import_is_none() -> None:
    low = '"""Below synovia.top."""\nlogging.getLogger("synovia.low")\nSCHEMA = "synovia.top/1"\nNAME = "synovia"'
    found = _read({"": "from synovia.top import T", "top": "from synovia.low import L", "low": low})
    assert not IMPORTS["upward"](found, ["top", "low"])
    assert not IMPORTS["circles"](IMPORTS["graph_of"](found))


@of_all_modules
def test_imports_point_down_and_form_no_circle(capsys: pytest.CaptureFixture[str]) -> None:
    assert IMPORTS["main"]() == 0, capsys.readouterr().out


@of_all_modules
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a1 = a0 + n\na2 = a1 + m\nx = vector(w, a1, m), vector(w, a2, k)", ["a2 = a1 + m"]),
        ("def f(w, n):\n    roots = START + n\n    ends = 2 + roots\n    return w[roots:ends]", ["ends = 2 + roots"]),
        ("first = rows[k]\nlast = first + n\nx = w[first:last]", []),  # one sum is the end of a part
        ("b = a + 1\nc = b + 1\nx = w[b]", []),  # no offsets
    ],
)
def test_an_offset_that_is_summed_by_hand_is_counted(text: str, expected: list[str]) -> None:
    found = HOUSE["summed_by_hand"]("kernels/one.py", ast.parse(text))
    assert [one.what for one in found] == expected


def test_parameters_are_counted_without_self_and_without_options_of_public_functions() -> None:
    methods = "class A:\n    def f(self, a, b, c, *, d): ...\n    def _g(self, a, b, c, *, d): ...\n"
    tree = ast.parse(f"{methods}def h(a, *, b, c, d): ...\n")

    def counted(*known: tuple[str, str]) -> list[str]:
        return [one.what.split()[0] for one in HOUSE["wide"]("m.py", tree, 3, lambda: frozenset(known))]

    assert sorted(counted()) == ["_g", "f", "h"]
    assert counted(("m.py", "A"), ("m.py", "h")) == ["_g"]


def test_what_the_house_keeps_small_stays_small(capsys: pytest.CaptureFixture[str]) -> None:
    assert HOUSE["main"]() == 0, capsys.readouterr().out


def test_modules_that_outlive_the_kernels_hold_none() -> None:
    """A kept module that imported another one would go on with its kernels, and with classes of their own."""
    from synovia.cli.uncompiled import KEPT

    held = {
        f"{_name(path)}:{line} {target}"
        for path in MODULES
        if _dotted(path) in KEPT
        for line, target in _facts(path).run_imports
        if target.split(".")[0] == "synovia"
        and not {below := target.removeprefix("synovia."), below.rpartition(".")[0]} & KEPT
    }
    assert not held
    assert {_dotted(path) for path in MODULES} >= KEPT


def test_a_file_is_worth_a_file() -> None:
    """A module of a few lines belongs to the neighbour that it serves; modules that list public names may be short."""
    listing = {f"{name}.py" for name, home in sy._homes.items() if home == "synovia"}
    short = [
        _name(path)
        for path in MODULES
        if path.name not in ("__init__.py", "__main__.py") and len(path.read_text(encoding="utf-8").splitlines()) < 30
    ]
    short = [name for name in short if name not in listing]
    assert not short


@of_all_modules
def test_heavy_imports_happen_where_they_are_needed() -> None:
    found = [
        f"{_name(path)}:{line} {name}"
        for path in MODULES
        if not _name(path).startswith("viewer/")
        for line, name in _facts(path).run_imports
        if name.split(".")[0] in HEAVY
    ]
    assert not found, f"heavy imports at module level: {found}"


@of_all_modules
@pytest.mark.parametrize("folder", SIBLING_FOLDERS)
def test_siblings_share_only_their_base(folder: str) -> None:
    top, dotted = PACKAGE / folder, "synovia." + folder.replace("/", ".")
    assert (top / "base.py").is_file(), f"{folder}/ has moved: this rule would hold for nothing"
    # A sibling is a module, or a folder of modules on one thing; inside such a folder imports are free.
    thing = {path: path.relative_to(top).parts[0].removesuffix(".py") for path in sorted(top.rglob("*.py"))}
    siblings = set(thing.values()) - SHARED - MAY_SEE_SIBLINGS
    found = [
        f"{_name(path)}:{line} {name}"
        for path, own in thing.items()
        if own not in MAY_SEE_SIBLINGS
        for line, name in _facts(path).imports
        if name.startswith(f"{dotted}.") and set(name.removeprefix(f"{dotted}.").split(".")[:1]) & (siblings - {own})
    ]
    assert not found, f"siblings in {folder}/ share only base.py: {found}"


@of_all_modules
def test_frozen_classes_with_slots_restore_themselves_by_reduce() -> None:
    """Until Python 3.11.4 such a dataclass loses a ``__getstate__`` or ``__setstate__`` of its own without a word."""
    lost = {"__getstate__", "__setstate__"}
    frozen = [(path, parts) for path in MODULES for parts in _facts(path).frozen]
    found = [f"{_name(path)}:{line}" for path, parts in frozen for line, name in parts if name in lost]
    assert len(frozen) > 20
    assert not found, f"use __reduce__: {found}"


def test_import_is_light() -> None:
    code = f"import sys, synovia; print(sorted({HEAVY | {'numba'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout.strip() == "[]", f"import synovia pulls in {done.stdout.strip()}"


def test_one_version_everywhere() -> None:
    declared = tomllib.loads((REPO / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    cited = re.search(r'^version: "?([^"\n]+)"?$', (REPO / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    assert cited, "CITATION.cff names no version"
    assert cited[1] == declared
    assert version("synovia") == declared, "reinstall the package: its metadata is older than pyproject.toml"
    headings = re.findall(r"^## \[([^\]]+)\]", (REPO / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert headings[:1] == ["Unreleased"], "CHANGELOG.md keeps an Unreleased section on top"
    assert declared in headings, f"CHANGELOG.md has no section for {declared}"


@pytest.mark.skipif(shutil.which("git") is None, reason="no git here")
def test_no_file_of_the_package_is_ignored() -> None:
    assert (PACKAGE / "py.typed").is_file()
    ignored = subprocess.run(
        ["git", "ls-files", "--others", "--ignored", "--exclude-standard", "--", "src"],
        cwd=REPO,
        capture_output=True,
        text=True,
        check=False,  # an unpacked archive is no repository, and ignores nothing
        timeout=300,
    )
    lost = [line for line in ignored.stdout.splitlines() if not line.endswith((".pyc", ".nbi", ".nbc"))]
    lost = [line for line in lost if not line.startswith("src/synovia/kernels/prebuilt/")]  # platform wheels hold them
    assert not lost, f"files of the package that git ignores, and so would the wheel: {lost}"


def test_the_tour_of_the_code_names_files_that_exist() -> None:
    text = (REPO / "docs" / "project" / "internals.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([a-z_]+/[a-z_/]+\.py)`", text))
    linked = set(re.findall(r"\]\(\.\./\.\./src/synovia/([\w/.]+)\)", text))
    assert len(named) > 10
    assert len(linked) > 10
    assert not {name for name in named | linked if not (PACKAGE / name).is_file()}


def test_the_picture_of_the_layers_is_that_of_the_contract() -> None:
    house = runpy.run_path(str(REPO / "docs" / "site_build" / "house.py"))
    assert house["PICTURE"].read_text(encoding="utf-8") == house["drawn"](), "python docs/site_build/house.py draws it"
    assert house["WORDS"].keys() == {name for layer in house["layers"]() for name in layer}


@of_all_modules
def test_the_tour_of_the_code_names_what_is_defined() -> None:
    text = (REPO / "docs" / "project" / "internals.md").read_text(encoding="utf-8")
    there = set.union(*(_facts(path).defined for path in MODULES)) | {path.parent.name for path in MODULES}
    tables = text.split("## What a solve does")[1].split("## Words")[0]
    named = set(re.findall(r"`([A-Za-z_]\w*(?:\.[a-z]\w+)?)`", tables))
    named = {name for name in named if not name.endswith((".py", ".pyi", ".js"))}
    outside = {"sy.solve"}  # the name that users give the package
    assert {"CompiledProblem", "Solver.check", "Goal.resolved", "engine_of"} <= named
    assert len(named) > 20
    assert not named - there - outside


# A path that leads nowhere any more leaves out what it named, without a word.
NAMING_PATHS = [".ci/run", "justfile", "pyproject.toml", "CONTRIBUTING.md", "README.md"]
NAMING_PATHS += [
    path.relative_to(REPO).as_posix()
    for folder, pattern in (("docs", "*.md"), ("benchmarks", "*.py"), ("benchmarks", "*.md"))
    for path in sorted((REPO / folder).rglob(pattern))
]
PATH = re.compile(r"(?<![\w./~$-])/?((?:src|tests|benchmarks|docs|examples)/[\w./{},*-]+)")


def _opened(text: str) -> list[str]:
    """All that braces stand for, as a shell has it."""
    braces = re.search(r"\{([^{}]*,[^{}]*)\}", text)
    if braces is None:
        return [text]
    return [
        one for part in braces[1].split(",") for one in _opened(text[: braces.start()] + part + text[braces.end() :])
    ]


def _lost(text: str) -> list[str]:
    """The paths that a text names and that are not in the repository; names that a program fills in are not judged."""
    named = [one.rstrip("/*.,") for found in PATH.findall(text) for one in _opened(found)]
    return [one for one in named if "{" not in one and not any(REPO.glob(one))]


def test_a_lost_path_is_seen() -> None:
    text = "pytest tests/{kernels,ik} tests/test_{house,gone}.py src/synovia/*.py benchmarks/{name}.py docs/gone.md, x"
    assert _lost(text) == ["tests/test_gone.py", "docs/gone.md"]


@pytest.mark.parametrize("file", NAMING_PATHS)
def test_paths_that_are_named_exist(file: str) -> None:
    assert not _lost((REPO / file).read_text(encoding="utf-8"))


def test_only_tests_of_benchmarks_load_them() -> None:
    """What tests and benchmarks share is in tests: a source distribution has tests, but no benchmarks."""
    own = {"test_house.py", "test_benchmarks.py", "test_benchmark_tools.py"}
    others = [path for path in (REPO / "tests").rglob("*.py") if path.name not in own]
    assert len(others) > 100
    assert not [path.name for path in others if '"benchmarks"' in path.read_text(encoding="utf-8")]


def test_what_ci_chooses_by_name_exists() -> None:
    chosen = re.findall(r'-k "([^"]+)"', (REPO / ".ci" / "run").read_text(encoding="utf-8"))
    words = {word for text in chosen for word in text.split()} - {"not", "and", "or"}
    assert words
    tests = "\n".join(
        name
        for path in (REPO / "tests").rglob("test_*.py")
        for name in re.findall(r"^(?:async )?def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    )
    assert not {word for word in words if word not in tests}
