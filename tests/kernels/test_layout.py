"""What number stands where in the packed arrays is said once, by name, in ``synovia.kernels.layout``."""

import ast
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import synovia as sy
import synovia.kernels
from synovia.kernels import layout
from synovia.kernels.compiler import numba
from synovia.kernels.compiler.jit import entry, inline
from synovia.kernels.hierarchy import basis
from synovia.kernels.tree import problem as packed
from synovia.problem import table_of

KERNELS = Path(synovia.kernels.__file__).parent
# Names under which packed arrays travel: tables, whose last index is a column, and flat arrays
DECLARED = {
    one.name.rpartition(".")[2]
    for one in (*layout.PROBLEM, *layout.WORK)
    if len(one.shape) == 2 and isinstance(one.shape[1], int)
}
TABLES = DECLARED | {"limit", "likes", "targets", "axes", "spans", "unfold", "table", "out"}
FLAT = {"ints", "floats", "own", "params", "watch", "row"}
# Functions that read or write some columns of a row: the place of the column among their arguments
READERS = {"load": 2, "store": 2, "load_rotation": 2, "store_rotation": 2}
POINTS = {"vertices"}  # rows of three coordinates


def name_of(node: ast.expr) -> str:
    """Return the last part of the name of an array, without the rows that are picked first."""
    if isinstance(node, ast.Subscript):
        return name_of(node.value)
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def is_number(node: ast.expr | None) -> bool:
    """Return whether this is made of literal numbers alone."""
    if isinstance(node, ast.Slice):
        return is_number(node.lower) or is_number(node.upper)
    if isinstance(node, ast.BinOp):
        return is_number(node.left) and is_number(node.right)
    if isinstance(node, ast.UnaryOp):
        return is_number(node.operand)
    return isinstance(node, ast.Constant) and isinstance(node.value, int)


def bare_columns(text: str) -> list[tuple[int, str]]:
    """Return line and text of each place of a packed array that a literal number says."""
    found: list[tuple[int, str]] = []
    for node in ast.walk(ast.parse(text)):
        bare = False
        if isinstance(node, ast.Subscript):
            name = name_of(node.value)
            if isinstance(node.slice, ast.Tuple):
                bare = name in TABLES and is_number(node.slice.elts[-1])
            elif isinstance(node.value, ast.Subscript):  # table[row][column]
                bare = name in TABLES and is_number(node.slice)
            else:
                bare = name in FLAT and is_number(node.slice)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in READERS:
            place = READERS[node.func.id]
            bare = name_of(node.args[0]) in TABLES - POINTS and is_number(node.args[place])
        if bare:
            found.append((node.lineno, ast.unparse(node)))
    return found


@pytest.mark.parametrize("path", sorted(KERNELS.rglob("*.py")), ids=lambda path: path.relative_to(KERNELS).as_posix())
def test_no_kernel_says_a_column_by_its_number(path):
    found = [f"{path}:{line}: {text}" for line, text in bare_columns(path.read_text(encoding="utf-8"))]
    assert not found, f"name these columns in {layout.__file__}:\n" + "\n".join(found)


@pytest.mark.parametrize(
    "text",
    [
        "k = tree.ints[i, 0]",
        "k = problem.tree.ints[i, 1 + 2]",
        "x = limits[k, -1]",
        "limit[k, 3:7] = x",
        "x = problem.limits[:, :2]",
        "x = problem.goals[g][1]",
        "n = ints[7]",
        "x = problem.own[2]",
        "R = load_rotation(problem.goal_data, g, 2)",
        "store(work.frames, i, 9, p)",
    ],
)
def test_a_bare_column_is_found(text):
    assert [line for line, _ in bare_columns(f"import math\n{text}\n")] == [2]


@pytest.mark.parametrize(
    "text",
    [
        "k = tree.ints[i, KIND]",
        "x = limits[k, LIMIT_FRAME + 1]",
        "x = problem.goals[0, PARTS]",
        "n = problem.goals.shape[0]",
        "x = R[8] * p[2]",
        "v = problem.levels[k + 1]",
        "o = load(f.vertices, i, 0)",
    ],
)
def test_names_rows_and_coordinates_may_stand(text):
    assert bare_columns(text) == []


@pytest.mark.parametrize(
    ("columns", "width"),
    [
        ("KIND PARENT FIRST_Q COLUMN TRANSLATION_COLUMN VARIABLE", "ROW_WIDTH"),
        ("BLOCK BLOCK_Q BLOCK_COLUMN", "VARIABLE_WIDTH"),
        ("LIMIT_FRAME SWING_X_BACK SWING_X SWING_Y_BACK SWING_Y TWIST_LOWER TWIST_UPPER IS_LIMITED", "LIMIT_WIDTH"),
        ("LOWER UPPER IS_ANGLE", "LIMIT_WIDTH"),
        ("PARTS GOAL_ROW FIRST_RESIDUAL LEVEL RESIDUALS", "GOAL_WIDTH"),
        ("POSITION_WEIGHT ROTATION_WEIGHT GOAL_ORIENTATION GOAL_ORIGIN", "GOAL_DATA_WIDTH"),
        ("KIND GOAL FIRST LENGTHS ANGLES TARGET_PARTS OTHER_ROW TIP_ROW VERTEX VERTICES", "GENERAL_WIDTH"),
        ("WEIGHT OTHER_ORIENTATION OTHER_ORIGIN TIP_POINT NUMBERS", "GENERAL_DATA_WIDTH"),
        ("ORIENTATION ORIGIN", "FRAME_WIDTH"),
        ("LAST_ROW GIVEN", "TARGET_WIDTH"),
        ("BOX_LOWER BOX_UPPER HELD NEXT_HELD VELOCITY", "BOX_WIDTH"),
        ("STATUS STEPS TRIES WINNER COST FINISH STOPPED_BY", "OUT_HEAD"),
        ("WORK_LEFT DEADLINE NEXT_SIGNAL_CHECK STOP_REASON RAISED WORK_RESERVE", "WATCH"),
    ],
)
def test_columns_of_a_table_differ_and_fit(columns, width):
    places = [getattr(layout, name) for name in [*columns.split(), width]]
    assert all(a < b for a, b in pairwise(places))


def test_numbers_of_the_head_have_places_of_their_own():
    places = [value for name, value in vars(layout).items() if name.startswith("N_") and isinstance(value, int)]
    places += [layout.COUPLED, layout.MAX_STEPS, layout.ATTEMPTS, layout.SEED, layout.PATIENCE, layout.WORK_SIZE]
    places += [layout.PROPOSAL_FORM, layout.PROPOSED_FIRST]
    assert sorted(places) == list(range(layout.INT_HEAD))
    assert set(layout.COUNTS.values()) <= set(places)


def test_every_name_has_one_meaning():
    """A second assignment would silently change what the first one named."""
    tree = ast.parse(Path(layout.__file__).read_text(encoding="utf-8"))
    names = [node.id for one in tree.body for node in ast.walk(one) if isinstance(node, ast.Name)
             and isinstance(node.ctx, ast.Store) and not isinstance(one, ast.FunctionDef)]  # fmt: skip
    assert sorted({name for name in names if names.count(name) > 1} - {"table"}) == []
    tables = [table.name for table in (*layout.PROBLEM, *layout.WORK)]
    assert len(set(tables)) == len(tables)


def memory_of(views):
    """Return the numbers in views of an array that was filled with its indices."""
    return np.concatenate([view.ravel() for view in views]).astype(int)


@pytest.fixture
def ik():
    """A problem that has rows in every table."""
    body = sy.bundled("humanoid")
    goals = [
        sy.PositionGoal("left_hand"),
        sy.CenterOfMassGoal(polygon=[(-0.2, 0, -0.1), (0.2, 0, -0.1), (0, 0, 0.2)]),
        sy.RestGoal(weight=0.1),
    ]
    return sy.IK(body, goals, "full-body", root="free")


def test_the_tables_of_a_problem_share_no_memory_and_fill_its_arrays(ik):
    ints, floats = np.arange(len(ik.problem.ints)), np.arange(len(ik.problem.floats))
    views = {
        table.name: table_of(ik.problem.ints, floats, table.name) for table in layout.PROBLEM if not table.integers
    }
    np.testing.assert_array_equal(np.sort(memory_of(views.values())), np.arange(layout.FLOAT_HEAD, len(floats)))
    starts = {name: ik.problem.ints[place] for name, place in layout.STARTS.items()}
    counts = {name: int(ik.problem.ints[place]) for name, place in layout.COUNTS.items()}
    views = [ints[starts[one.name] :][: layout.size_of(one, counts)] for one in layout.PROBLEM if one.integers]
    np.testing.assert_array_equal(np.sort(memory_of(views)), np.arange(layout.INT_TABLES, len(ints)))


MARK = 1_000_000  # the mark of the first table; no number of a packed problem is as large


@inline
def mark(view, value):
    """Write a mark into all of a table."""
    for i in range(view.size):
        view.flat[i] = value


def kernel_that_marks(opened, arguments, tables):
    """Return a kernel that opens arrays and writes a number into all of each table: ``MARK``, ``MARK + 1`` and so on.

    Where numba compiles, only kernels can open tables. So the check is a kernel, made from the declarations.
    """
    lines = [f"    mark(opened.{name}, {MARK + k})" for k, name in enumerate(tables)]
    text = "\n".join([f"def kernel({arguments}):", f"    opened = {opened}", *lines])
    space = {**globals(), "__name__": __name__}
    exec(text, space)
    return entry(space["kernel"])


def test_kernels_open_the_tables_where_they_were_packed(ik):
    # the others are opened together with scratch memory, or where starts are looked up
    names = [one.name for one in layout.PROBLEM if one.name.rpartition(".")[0] not in ("clear", "loops", "learned")]
    ints, floats = ik.problem.ints.copy(), ik.problem.floats.copy()
    kernel_that_marks("packed.open_general(ints, floats)", "ints, floats", names)(ints, floats)
    for number, name in enumerate(names):
        found = table_of(ints, floats, name)
        np.testing.assert_array_equal(found, np.full(found.shape, MARK + number), err_msg=name)
    untouched = [(one < MARK) | (one >= MARK + len(names)) for one in (ints, floats)]
    assert sum(table_of(ints, floats, name).size for name in names) == sum(np.sum(~one) for one in untouched)
    for before, after, kept in zip((ik.problem.ints, ik.problem.floats), (ints, floats), untouched, strict=True):
        np.testing.assert_array_equal(after[kept], before[kept])


@entry
def changes(ints, floats, out):
    """Write what a problem is like after each change of it."""
    problem = packed.open_general(ints, floats)
    out[0] = packed.open_problem(ints, floats).general is None
    out[1] = problem.clear is None and problem.loops is None
    out[2] = packed.with_steps(problem, 7).max_steps == 7
    out[3] = packed.with_steps(problem, 7).seed == problem.seed
    out[4] = len(packed.pose_goals_only(problem).general.ints) == 0


def test_a_problem_is_opened_in_part_and_changed_by_name(ik):
    out = np.zeros(5, np.int64)
    changes(ik.problem.ints, ik.problem.floats, out)
    assert out.tolist() == [1] * 5


@pytest.mark.jit
@pytest.mark.skipif(numba is None, reason="kernels are interpreted")
def test_compiled_kernels_find_the_tables_where_they_are(ik):
    """In compiled code a record is a few pointers, and the place of a table is computed where it is read."""
    records = {"": "problem", "work": "work", "meeting": "problem.clear", "closing": "problem.loops"}
    records |= {name: f"problem.{name}" for name in ("tree", "general", "clear", "loops")}
    tables = [(table, *table.name.rpartition(".")[::2]) for table in (*layout.PROBLEM, *layout.WORK)]
    tables = [one for one in tables if one[1] in records and one[0].name != "work.watch"]  # opening writes to that one
    found = "out[{k}, 0], out[{k}, 1], out[{k}, 2] = a{k}.shape[0], a{k}.size, a{k}.sum()"
    lines = [f"    a{k} = {records[group]}.{field}; {found.format(k=k)}" for k, (_, group, field) in enumerate(tables)]
    lines[:0] = ["def probe(ints, floats, memory, out):", "    work = open_work(ints, memory)"]
    lines.insert(2, "    problem = pose_goals_only(with_steps(open_all(ints, floats, memory), 7))")
    lines += ["    return problem.max_steps * 1000 + problem.columns, problem.tolerance"]
    names = vars(packed).copy()
    exec("\n".join(lines), names)
    probe = numba.njit(names["probe"])
    out = np.zeros((len(tables), 3))
    floats, memory = np.arange(len(ik.problem.floats), dtype=float), np.arange(ik.problem.scratch_size, dtype=float)
    numbers, tolerance = probe(ik.problem.ints, floats, memory, out)
    assert numbers == 7000 + ik.problem.ints[layout.N_COLUMNS]
    assert tolerance == floats[layout.TOLERANCE]
    counts = {name: int(ik.problem.ints[place]) for name, place in layout.COUNTS.items()}
    for found, (table, _, _) in zip(out, tables, strict=True):
        start, size = ik.problem.ints[layout.STARTS[table.name]], layout.size_of(table, counts)
        source = ik.problem.ints if table.integers else floats if table in layout.PROBLEM else memory
        rows = table.shape[0] if isinstance(table.shape[0], int) else counts[table.shape[0]]
        if table.name == "general.ints":
            rows = size = 0
        np.testing.assert_array_equal(found, [rows, size, source[start : start + size].sum()], table.name)


def test_scratch_memory_is_cut_into_tables_that_fill_it(ik):
    names = [one.name.rpartition(".")[2] for one in layout.WORK if one.name.startswith("work.")]
    memory = np.zeros(ik.problem.scratch_size)
    kernel_that_marks("packed.open_work(ints, memory)", "ints, memory", names)(ik.problem.ints, memory)
    sizes = [np.sum(memory == MARK + number) for number in range(len(names))]
    np.testing.assert_array_equal(memory, np.repeat(MARK + np.arange(len(names)), sizes))
    assert all(sizes)
    kernel = kernel_that_marks("basis.open_levels(memory, m, n)", "memory, m, n", basis.Levels._fields)
    for m, n in [(3, 5), (5, 3), (0, 4)]:
        memory = np.zeros(basis.levels_size(m, n))
        kernel(memory, m, n)
        of_each = {name: np.sum(memory == MARK + k) for k, name in enumerate(basis.Levels._fields)}
        assert (of_each["G"], of_each["B"], of_each["v"]) == (m * n, (n + 1) * n, layout.VECTORS * n)
        assert sum(of_each.values()) == len(memory)


def test_reading_the_layout_loads_no_compiler():
    code = "import sys, synovia.kernels.layout; sys.exit('numba' in sys.modules or 'llvmlite' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
