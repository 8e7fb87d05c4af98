"""The hash that says whether compiled code is stale sees every form of import, subfolders, and files of one name."""

import ast
import os
import subprocess
import sys

import pytest

from synovia.kernels.compiler import sources

FORMS = [
    "from synovia.kernels.tree.step import move",
    "from synovia.kernels.tree import step",
    "from synovia.kernels.tree import (\n    other,  # a remark\n    step,\n)",
    "from synovia.kernels.tree import other, step as s",
    "from synovia.kernels.tree \\\n    import step",
    "import synovia.kernels.tree.step",
    "import synovia.kernels.tree.step as s",
    "import os, synovia.kernels.tree.step as s",
    "import os; import synovia.kernels.tree.step",
    "import synovia.kernels",
    "import synovia.kernels as k",
    "from synovia import kernels",
    "from synovia import kernels as k",
    "from .tree.step import move",
    "from .tree import step",
    "from . import tree, helper",
    "def late():\n    from synovia.kernels.tree.step import move",
    "if True: from synovia.kernels.tree.step import move",
    "from synovia.kernels.tree.step import *",
]


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package of kernels with a subfolder and two files named ``step``; ``tree`` imports its own ``step``."""
    texts = {
        "__init__.py": "",
        "step.py": "A = 1",
        "helper.py": "from synovia.kernels.tree import step",
        "tree/__init__.py": "from synovia.kernels.tree import step",
        "tree/step.py": "from ..deep.last import B",
        "tree/other.py": "",
        "deep/__init__.py": "",
        "deep/last.py": "B = 2",
        "compiler/__init__.py": "",
        "compiler/compile_events.py": "from synovia.kernels import step",
        "aside.py": "C = 3",
    }
    for name, text in texts.items():
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
    monkeypatch.setattr(sources, "ROOT", tmp_path)
    forget()
    yield tmp_path
    forget()


def forget():
    sources.modules.cache_clear()
    sources._names.cache_clear()
    sources._read.cache_clear()


def digest(file):
    forget()
    return sources.digest(file, ("compiler 1",))


@pytest.mark.parametrize("text", FORMS)
def test_an_edit_is_seen_through_every_form_of_import(package, text):
    """The edited file lies two imports away, in another folder."""
    kernel = package / "kernel.py"
    kernel.write_text(text, encoding="utf-8")
    forget()
    before = digest(kernel)
    assert before == digest(kernel)
    (package / "deep" / "last.py").write_text("B = 20", encoding="utf-8")
    assert digest(kernel) != before


def test_two_files_of_the_same_name_are_two(package):
    kernel = package / "kernel.py"
    kernel.write_text("from synovia.kernels.step import A", encoding="utf-8")
    forget()
    assert set(sources.sources_of(kernel)) == {"", "kernel", "step"}
    before = digest(kernel)
    (package / "tree" / "step.py").write_text("", encoding="utf-8")
    assert digest(kernel) == before, "the other file of that name counts"
    (package / "step.py").write_text("A = 10", encoding="utf-8")
    assert digest(kernel) != before
    assert sources.name_of(package / "tree" / "step.py") == "tree.step"
    assert sources.modules()["tree"] == package / "tree" / "__init__.py"


def test_what_changes_no_code_is_left_out(package):
    kernel = package / "kernel.py"
    kernel.write_text(
        "from synovia.kernels.compiler import compile_events\nfrom synovia.kernels.compiler.compile_events import step",
        encoding="utf-8",
    )
    forget()
    assert set(sources.sources_of(kernel)) == {"", "compiler", "kernel"}


def test_everything_that_changes_no_code_exists():
    assert sources.CHANGE_NO_CODE.keys() <= sources.modules().keys()


def test_what_is_not_imported_does_not_count(package):
    kernel = package / "kernel.py"
    kernel.write_text("import math\nfrom numpy import array  # from synovia.kernels import aside\n", encoding="utf-8")
    forget()
    assert set(sources.sources_of(kernel)) == {"kernel"}


def test_a_file_from_elsewhere_counts_by_its_content_and_what_it_imports(package, tmp_path_factory):
    first, second = (tmp_path_factory.mktemp("user") / "mine.py" for _ in range(2))
    for file in (first, second):
        file.write_text("from synovia.kernels.tree import step\nfrom .other import x", encoding="utf-8")
    assert sources.name_of(first) is None
    assert digest(first) == digest(second)
    before = digest(first)
    (package / "deep" / "last.py").write_text("", encoding="utf-8")
    assert digest(first) != before


def test_the_versions_of_what_compiles_count(package):
    assert sources.digest(package / "step.py", ("1",)) != sources.digest(package / "step.py", ("2",))


def imported(file):
    """Return what a file imports of the package by Python's own grammar."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            continue
        found |= {n.removeprefix("synovia.kernels.") for n in names if n.startswith("synovia.kernels.")}
    return {name for name in found if name in sources.modules()}


def test_the_search_in_the_text_finds_what_the_grammar_does():
    """For every file of the real package; more would cost compilations, fewer would keep stale code."""
    files = sources.modules()
    packages = {name.rpartition(".")[0] for name in files}
    assert len(files) > 50
    for own, file in files.items():
        if own not in sources.CHANGE_NO_CODE:
            folder = own if file.name == "__init__.py" else own.rpartition(".")[0]
            found = sources.imports_of(file.read_bytes(), folder) - {"", *packages}
            assert found == imported(file) - sources.CHANGE_NO_CODE.keys() - packages, own


@pytest.mark.jit
@pytest.mark.slow
def test_entry_points_in_subfolders_are_kept_by_content(tmp_path):
    """Two files of one name, in two folders, each with a kernel and an algorithm of the same name."""
    code = f"""
import shutil, sys
from pathlib import Path
import synovia.kernels
root = Path({str(tmp_path)!r}) / "synovia"
shutil.copytree(Path(synovia.kernels.__file__).parent, root / "kernels", ignore=shutil.ignore_patterns("__pycache__"))
(root / "__init__.py").touch()
for folder, value in (("one", 1), ("two", 2)):
    (root / "kernels" / folder).mkdir()
    (root / "kernels" / folder / "__init__.py").touch()
    (root / "kernels" / folder / "step.py").write_text(
        "from synovia.kernels.compiler.jit import algorithm, entry, perform\\n"
        "@algorithm\\ndef go(problem, work, targets, q):\\n    return problem + {{}}.0\\n"
        "@entry\\ndef step(x):\\n    return perform(go, x, x, x, x)\\n".format(value)
    )
"""
    use = """
from synovia.kernels.one import step as one
from synovia.kernels.two import step as two
print(one.step(1.0), two.step(1.0), type(one.go) is type(two.go), type(one.go).__name__ == type(two.go).__name__)
print(*(sum(m.step.stats.cache_hits.values()) for m in (one, two)))
"""
    env = {**os.environ, "SYNOVIA_CACHE_DIR": str(tmp_path / "cache"), "SYNOVIA_KERNELS": "jit"}

    def run(text, **more):
        done = subprocess.run(
            [sys.executable, "-c", text], capture_output=True, text=True, env={**env, **more}, check=False, timeout=600
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    run(code)
    first = run(use, PYTHONPATH=str(tmp_path))
    again = run(use, PYTHONPATH=str(tmp_path))
    assert first[:4] == again[:4] == ["2.0", "3.0", "False", "False"]
    assert again[4:] == ["1", "1"], "kept code was not found again"
