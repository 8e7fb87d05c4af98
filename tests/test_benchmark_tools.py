"""The tools that changes are held to: times of two versions, answers of two versions, mutants that tests must catch."""

import ast
import importlib
import json
import shutil
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

REPO = Path(__file__).parents[1]
FOLDER = REPO / "benchmarks"
SCRIPTS = ("against", "common", "corpus", "draws", "mutants", "sequences")


@pytest.fixture
def script(monkeypatch):
    """Loads a script of the benchmarks."""
    monkeypatch.setattr(sys, "path", [str(FOLDER), *sys.path])
    yield importlib.import_module
    for name in SCRIPTS:
        sys.modules.pop(name, None)


# --- against.py -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "rank"), [(6, 1), (10, 2), (20, 6), (40, 14)])
def test_an_interval_of_the_median_has_the_ranks_of_the_tables(script, n, rank):
    values = list(np.random.default_rng(n).permutation(n) + 1.0)
    median, low, high = script("against").interval(values)
    assert (low, high) == (rank, n + 1 - rank)
    assert median == (n + 1) / 2


def test_too_few_values_have_no_interval(script):
    assert script("against").interval([1.0, 1.1, 1.2, 1.3, 1.4]) == (1.2, -np.inf, np.inf)


def test_an_interval_holds_the_true_median_as_often_as_it_says(script):
    interval = script("against").interval
    draws = np.exp(np.random.default_rng(0).standard_cauchy((2000, 20)).clip(-50, 50))  # nothing like a bell
    inside = [low <= 1.0 <= high for _, low, high in map(interval, draws.tolist())]
    assert np.mean(inside) > 0.94


def test_slower_is_what_lies_above_the_allowance_with_its_whole_interval(script):
    against = script("against")
    ten = np.linspace(-0.01, 0.01, 10)
    found = {
        name: against.Found("kernels", list(middle + ten), [(1.0, middle)] * 10)
        for name, middle in (("same", 1.0), ("slower", 1.1), ("perhaps", 1.025), ("faster", 0.8))
    }
    found["left out"] = against.Found("kernels", skipped="OLD: no such solver")
    rows, slower = against.verdicts(found, 1.02)
    assert slower == ["slower"]
    words = {row[1]: row[-1] for row in rows}
    assert words == {
        "same": "",
        "slower": "slower",
        "perhaps": "",
        "faster": "faster",
        "left out": "OLD: no such solver",
    }


@pytest.fixture(scope="module")
def caches(tmp_path_factory):
    """Where the processes keep the bytecode of all that they import."""
    return tmp_path_factory.mktemp("caches")


@pytest.fixture
def run_against(script, caches, monkeypatch, tmp_path):
    """Compares two versions by one workload; returns the exit status and what was found of the workload."""
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")  # nothing to compile

    def compare(old, new, pairs):
        out = tmp_path / "found.json"
        code = script("against").main([
            str(old), str(new), "--groups", "calls", "--only", "building an IK", "--turn", "0.01", "--rounds", "1",
            "--pairs", str(pairs), "--caches", str(caches), "--json", str(out),
        ])  # fmt: skip
        work = json.loads(out.read_text())["work"]
        assert list(work) == ["building an IK"]
        return code, work["building an IK"]

    return compare


@pytest.mark.slow
def test_a_pair_of_one_workload_gives_a_ratio_and_no_verdict(run_against):
    code, work = run_against(REPO, REPO, pairs=1)
    assert code == 0
    assert len(work["ratios"]) == 1
    assert not work["skipped"]


@pytest.mark.slow
def test_a_copy_that_was_slowed_is_caught_and_one_that_lacks_a_goal_is_told(script, run_against, monkeypatch, tmp_path):
    against = script("against")
    monkeypatch.setattr(against, "interval", partial(against.interval, level=0.5))  # two pairs give one of 50 %
    copy = tmp_path / "copy"
    shutil.copytree(REPO / "src", copy / "src", ignore=shutil.ignore_patterns("prebuilt", "__pycache__"))
    place = copy / "src" / "synovia" / "ik" / "compiled.py"
    text = place.read_text()
    made = next(node for node in ast.walk(ast.parse(text)) if getattr(node, "name", "") == "CompiledProblem")
    begin = next(node for node in made.body if getattr(node, "name", "") == "__init__").body[1].lineno - 1
    lines = text.splitlines(keepends=True)

    def put(line):
        place.write_text("".join([*lines[:begin], f"        {line}\n", *lines[begin:]]))

    put("sum(range(200_000))")
    code, work = run_against(REPO, copy, pairs=2)
    assert code == 1
    assert len(work["ratios"]) == 2
    assert work["interval"][1] > 1.02
    put("raise RuntimeError('not yet')")
    code, work = run_against(REPO, copy, pairs=1)
    assert code == 0
    assert work["skipped"] == "NEW: RuntimeError: not yet"


def test_what_is_neither_a_folder_nor_a_revision_is_refused(script, tmp_path):
    with pytest.raises(SystemExit, match="neither a checkout"):
        script("against").main([str(tmp_path), str(REPO)])


# --- corpus.py ------------------------------------------------------------------------------------------------------


def test_draws_by_numpy_stay_inside_every_limit(script):
    import synovia as sy

    draws, corpus = script("draws"), script("corpus")
    for name in sy.skeletons.bundled_names():
        body = sy.bundled(name)
        q = draws.joint_values(body, np.random.default_rng(0), 200)
        assert corpus.beyond(body, q).max() <= 1e-12
        low, high = body.limits
        assert ((low <= q) & (q <= high)).all()
        for row in q[:20]:
            np.testing.assert_allclose(sy.Pose(body, row).q, row, atol=1e-12)
            np.testing.assert_allclose(sy.Pose(body, row).inside[0], row, atol=1e-9)  # the package thinks so too
        assert np.ptp(q, axis=0)[draws_vary(body)].min() > 1e-3  # nothing stands still


def draws_vary(body) -> np.ndarray:
    """Return which joint values are drawn: those of moving joints but the free ones."""
    out = np.zeros(body.nq, bool)
    for row, joint in enumerate(body.joints):
        wide = joint.kind.name == "BALL" or (joint.limit is not None and joint.limit.upper - joint.limit.lower > 0.2)
        out[body.q_slice(row)] = wide and joint.kind.name in ("BALL", "HINGE")
    return out


def test_a_corpus_is_the_same_again_and_tells_what_got_worse(script, tmp_path, capsys):
    corpus = script("corpus")
    first, again = tmp_path / "first.npz", tmp_path / "again.npz"
    for place in (first, again):
        ended = corpus.main([
            "make", str(place), "--solvers", "lm", "--bodies", "arm7", "--sorts", "far", "--problems", "12",
            "--jobs", "1",
        ])  # fmt: skip
        assert ended == 0
    blocks, refused = corpus.read(first)
    assert sum(len(block["status"]) for block in blocks.values()) == 12
    assert not refused
    assert all((block["broken"] <= 1e-9).all() for block in blocks.values())
    assert corpus.main(["compare", str(first), str(again)]) == 0
    assert "no answer differs" in capsys.readouterr().out

    def spoiled(change) -> str:
        some = {key: {**block} for key, block in corpus.read(first)[0].items()}
        for block in some.values():
            for name in ("status", "errors", "broken", "prints", "q"):
                block[name] = block[name].copy()
        change(some)
        worse = tmp_path / "worse.npz"
        corpus.write(worse, list(some.values()))
        ended = corpus.main(["compare", str(first), str(worse)])
        out = capsys.readouterr().out
        assert ended == ("nothing got worse" not in out)
        return out

    def every(name, value):
        return lambda some: [block[name].__setitem__(slice(None), value) for block in some.values()]

    stalled = spoiled(every("status", corpus.NAMES.index("STALLED")))
    assert "lm: 12 problems worse, 0 better" in stalled
    assert "corpus.py show lm arm7" in stalled
    assert "limits broken: 12" in spoiled(every("broken", 1e-3))
    assert "exceptions: 12" in spoiled(every("status", corpus.NAMES.index("ERROR")))
    assert "one of two statuses must be false" in spoiled(every("status", corpus.NAMES.index("UNREACHABLE")))
    assert "12 problems are other ones now" in spoiled(every("prints", 7))


def test_frames_are_kept_and_compared_bit_for_bit(script, tmp_path, capsys):
    corpus = script("corpus")
    place, other = tmp_path / "one.npz", tmp_path / "other.npz"
    corpus.main([
        "make", str(place), "--solvers", "lm", "--bodies", "arm7", "--sorts", "position", "--problems", "3",
        "--jobs", "1",
    ])  # fmt: skip
    corpus.write(place, [*corpus.read(place)[0].values(), *corpus.clip(("live", "left hand"))])
    blocks = corpus.read(place)[0]
    kinds = {"position", "track position", "pursue position", "servo position", "frames"}
    assert {block["sort"] for block in blocks.values()} == kinds
    assert all(np.isfinite(block["q"]).all() and (block["broken"] <= 1e-9).all() for block in blocks.values())
    assert corpus.main(["compare", str(place), str(place), "--bits"]) == 0
    total = sum(len(block["q"]) for block in blocks.values())
    assert f"{total} of {total} answers are the same, bit for bit" in capsys.readouterr().out
    key = ("lm", "arm7", "track position", 0)
    changed = blocks | {key: blocks[key] | {"q": blocks[key]["q"].copy()}}
    changed[key]["q"][5, 2] = np.nextafter(changed[key]["q"][5, 2], np.inf)
    corpus.write(other, list(changed.values()))
    assert corpus.main(["compare", str(place), str(other)]) == 0
    assert corpus.main(["compare", str(place), str(other), "--bits"]) == 1
    assert f"{total - 1} of {total} answers are the same" in capsys.readouterr().out
    corpus.write(other, [block for k, block in blocks.items() if k != key])
    assert corpus.main(["compare", str(place), str(other), "--bits"]) == 1
    assert "answers that are missing: 1 blocks" in capsys.readouterr().out


def test_an_order_of_statuses_and_of_misses(script):
    corpus = script("corpus")

    def block(status, error):
        errors = np.full((1, corpus.GOALS, 2), np.nan, np.float32)
        errors[0, :2] = np.array(error).reshape(2, 1) * [1.0, 0.0]
        return {
            "status": np.array([corpus.NAMES.index(status)]), "errors": errors[:, :2], "priorities": [0, 1],
            "broken": np.zeros(1), "prints": np.zeros(1),
        }  # fmt: skip

    def worse(old, new):
        return [round(c.size, 3) for c in corpus.changes(("lm", "arm7", "far", 0), block(*old), block(*new), 0.01)]

    assert worse(("UNREACHABLE", [0.5, 0]), ("STALLED", [0.5, 0])) == [2.0]
    assert worse(("CONFLICT", [0.5, 0]), ("LIMITED", [0.5, 0])) == []
    assert worse(("STALLED", [0.5, 0]), ("STALLED", [0.505, 0])) == []  # within the margin
    assert worse(("STALLED", [0.5, 0]), ("STALLED", [0.6, 0])) == [0.1]
    assert worse(("STALLED", [0.5, 0.3]), ("STALLED", [0.4, 0.9])) == [-0.1]  # the upper level decides
    assert worse(("STALLED", [0.5, 0.3]), ("STALLED", [0.5, 0.9])) == [0.6]
    assert worse(("STALLED", [0.5, 0]), ("STALLED", [np.nan, 0])) == [np.inf]
    assert worse(("STALLED", [0.5, 0]), ("REACHED", [0.0, 0])) == [-3.0]


def test_a_broken_limit_is_measured(script):
    import synovia as sy

    corpus = script("corpus")
    limit = sy.SwingTwist(x=(0.2, 0.4), y=(0.3, 0.6), twist=(-0.1, 0.5))
    ball = sy.Skeleton([sy.Joint("ball", kind=sy.Kind.BALL, limit=limit), sy.Joint("tip", "ball", tip=True)])
    turn = sy.Rotation.from_rotvec
    q = [
        turn([0.5, 0, 0]),
        turn([-0.1, 0, 0]),
        turn([0, -0.35, 0]),
        turn([0, 0, 0.7]),
        turn([0.3, 0, 0]) * turn([0, 0, 0.2]),
    ]
    found = corpus.beyond(ball, np.array([one.as_quat() for one in q]))
    np.testing.assert_allclose(np.maximum(found, 0.0), [0.1, 0, 0.05, 0.2, 0], atol=1e-12)
    assert np.isnan(corpus.beyond(ball, np.full((1, 4), np.nan))[0])


# --- mutants.py -----------------------------------------------------------------------------------------------------


def test_every_source_of_mutants_is_a_file_that_exists(script):
    """A file that has moved would no longer be tried, without a word."""
    mutants = script("mutants")
    patterns = (*mutants.SOURCES, *mutants.LEFT_OUT)
    assert not [one for one in patterns if not any((REPO / mutants.PACKAGE).glob(one))]


def test_equivalent_mutants_are_of_lines_that_are_there_and_have_a_reason(script):
    mutants = script("mutants")
    for one in mutants.equivalents():
        source = (REPO / "src" / "synovia" / one["file"]).read_text(encoding="utf-8")
        assert one["was"] in [line.strip() for line in source.split("\n")], f"{one['file']} no longer has {one['was']}"
        assert one["now"] != one["was"]
        assert one["reason"].endswith(".")


def test_the_quickest_example_of_every_test_comes_first(script):
    seconds = {"a[1]": 2.0, "a[2]": 1.0, "b": 30.0, "c[x]": 3.0, "d": 90.0}
    lines = script("mutants").Lines(seconds, {})
    assert lines.choose(set(seconds), 60.0) == ["a[2]", "c[x]", "b", "a[1]"]
    assert lines.choose({"d"}, 60.0) == ["d"]  # rather one that is too long than none
    assert lines.choose(set(), 60.0) == []


def test_mutants_are_tried_on_tests_that_run_their_line_or_use_its_name(script):
    mutants = script("mutants")
    file = "kernels/math/spheres.py"
    source = (REPO / "src" / "synovia" / file).read_text(encoding="utf-8").split("\n")
    constant = next(i for i, line in enumerate(source, 1) if line.startswith("CONCENTRIC"))
    used = next(i for i, line in enumerate(source, 1) if "CONCENTRIC" in line and i > constant)
    lines = mutants.Lines({"one": 1.0, "other": 1.0}, {file: {used: ["one"], used + 1: ["other"]}})

    def met(line):
        return mutants.tests_of(mutants.Mutant(file, line, "", 0, "", "", "", ""), lines)

    assert met(used) == met(constant) == {"one"}
    assert met(used + 1) == {"other"}


def test_mutants_meet_the_tests_of_the_whole_head_of_their_statement(script):
    """Coverage names some line of a condition over several lines, not always the line that was changed."""
    mutants = script("mutants")
    file = "io/npz.py"
    source = (REPO / "src" / "synovia" / file).read_text(encoding="utf-8").split("\n")
    head = next(i for i, line in enumerate(source, 1) if line.strip() == "if (")
    last = next(i for i, line in enumerate(source, 1) if i > head and line.strip() == "):")
    met = {head + 1: ["condition"], last + 1: ["body"], head - 1: ["before"]}
    lines = mutants.Lines(dict.fromkeys(("condition", "body", "before"), 1.0), {file: met})
    for line in (head, head + 1, head + 2):
        assert mutants.tests_of(mutants.Mutant(file, line, "", 0, "", "", "", ""), lines) == {"condition"}


def test_a_seed_draws_the_same_mutants_of_one_line_each(script):
    pytest.importorskip("cosmic_ray")
    mutants = script("mutants")
    drawn, again = (mutants.draw(6, 5, ["kernels/math/spheres.py", "io/toml/[tw]*"]) for _ in range(2))
    assert [str(one) for one in drawn] == [str(one) for one in again]
    assert [one.file.startswith("kernels/") for one in drawn] == [True, False] * 3
    for one in drawn:
        source = (REPO / "src" / "synovia" / one.file).read_text(encoding="utf-8").split("\n")
        changed = [i for i, (a, b) in enumerate(zip(source, one.code.split("\n"), strict=True), 1) if a != b]
        assert changed == [one.line]
