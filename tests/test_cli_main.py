"""Exit codes, streams, help and start-up of the command line."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cli_runs import assert_refused, run, run_apart
from synovia.cli import main
from synovia.errors import install_command


def test_help_names_every_command_and_exit_code() -> None:
    ran = run("--help")
    assert ran.code == 0
    assert ran.err == ""
    for word in ("inspect", "solve", "schema", "doctor", "70", "130"):
        assert word in ran.out
    assert run("solve", "-h").code == 0
    assert "humanoid" in run("inspect", "--help").out


def test_version() -> None:
    from importlib.metadata import version

    assert run("--version") == (0, f"synovia {version('synovia')}\n", "")


@pytest.mark.parametrize(
    "arguments",
    [
        ["sove"],
        ["inspect"],
        ["inspect", "arm7", "--jsn"],
        ["solve", "arm7"],
        ["solve", "arm7", "-t"],
        ["solve", "arm7", "-t", "tool"],
        ["solve", "arm7", "-t", "=1,2,3"],
        ["solve", "arm7", "-t", "tool="],
        ["solve", "arm7", "-t", "tool=1,2"],
        ["solve", "arm7", "-t", "tool=1,2,3,4"],
        ["solve", "arm7", "-t", "tool=1,2,x"],
        ["solve", "arm7", "-t", "tool=1;2;3"],
        ["solve", "arm7", "-t", "tool=1,2,3", "-t", "tool=1,2,4"],
        ["solve", "arm7", "-r", "tool=1,2,3"],
        ["solve", "arm7", "-r", "tool=:1,2,3"],
        ["solve", "arm7", "-r", "tool=xyz:1,2"],
        ["solve", "arm7", "-r", "tool=quat_xyzw:0,0,1"],
        ["solve", "arm7", "-r", "tool=x:1", "-r", "tool=y:1"],
        ["solve", "arm7", "-t", "tool=0.4,0.1,0.5", "--tol", "abc"],
        ["solve", "arm7", "-t", "tool=0.4,0.1,0.5", "--tol", "1,2,3"],
        ["solve", "arm7", "-t", "tool=0.4,0.1,0.5", "--root", "loose"],
        ["solve", "arm7", "-t", "tool=0.4,0.1,0.5", "--start", "random"],
        ["solve", "arm7", "-t", "tool=0.4,0.1,0.5", "--start", "random:x"],
        ["solve", "arm7", "-t", "tool=0.4,0.1,0.5", "--seed", "x"],
        ["solve", "arm7", "-t", "tool=0.4,0.1,0.5", "--attempts", "many"],
        ["schema"],
        ["schema", "gaols"],
    ],
)
def test_usage(arguments: list[str]) -> None:
    assert_refused(run(*arguments), code=2)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-t", "tol=1,2,3"], ["no joint named 'tol' in arm7", "Did you mean 'tool'?"]),
        (["-t", "99=1,2,3"], ["a row from 0 to"]),
        (["--start", "nowhere.json"], ["nowhere.json", "does not exist"]),
        (["-g", "nowhere.toml"], ["nowhere.toml", "does not exist"]),
        (["-o", "pose.txt"], ["pose.txt", ".json"]),
        (["-o", "no/such/folder/pose.json"], ["no/such/folder", "does not exist"]),
        (["--picture", "pose.gif"], ["pose.gif", ".png"]),
    ],
)
def test_bad_input(arguments: list[str], words: list[str]) -> None:
    target = [] if "-t" in arguments else ["-t", "tool=0.4,0.1,0.5"]
    assert_refused(run("solve", "arm7", *target, *arguments), *words)


SOLVE = ["solve", "arm7", "-t", "tool=0.4,0.1,0.5"]
RETARGET = ["retarget", "walk.bvh", "humanoid"]
ANIMATE = ["animate", "walk.bvh", "--foot-lock"]
POINTS = ["animate", "--points", "points.csv"]
TRACK = ["animate", "arm7", "--goals", "track.toml"]
RENDER = ["render", "walk.bvh", "-o", "walk.gif"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["solve", "arm7", "-t", "tool=nan,0,0"], "expected 3 finite numbers separated by commas, got 'tool=nan,0,0'."),
        (["solve", "arm7", "-t", "tool=inf,0,0"], "finite numbers"),
        (["solve", "arm7", "-t", "tool=0,0,1e999"], "finite numbers"),
        (["solve", "arm7", "-r", "tool=xyz:nan,0,0"], "finite"),
        (["solve", "arm7", "-r", "tool=xxy:1,2,3"], "'--rotation' / '-r': expected up to three of xyz"),
        (["solve", "arm7", "-r", "tool=abc:1,2,3"], "'--rotation' / '-r': expected up to three of xyz"),
        (["solve", "arm7", "-r", "tool=xYz:1,2,3"], "'--rotation' / '-r': expected up to three of xyz"),
        (["solve", "arm7", "-r", "tool=quat_xyzw:0,0,0,0"], "expected a unit quaternion"),
        ([*SOLVE, "--solver", "lmm"], "no solver named 'lmm': expected one of fabrik"),
        ([*SOLVE, "--solver", "lmm"], "Did you mean 'lm'"),
        ([*SOLVE, "--tol", "0"], "'--tol': expected POS or POS,DEG, both above 0, got '0'."),
        ([*SOLVE, "--tol", "-1,1"], "both above 0"),
        ([*SOLVE, "--tol", "nan"], "finite"),
        ([*SOLVE, "--attempts", "0"], "'--attempts': expected a whole number from 1 to 1000000, got '0'."),
        ([*SOLVE, "--seed", "-1"], "'--seed': expected a whole number from 0 to 2147483647, got '-1'."),
        ([*SOLVE, "--seed", "1.5"], "expected a whole number"),
        ([*SOLVE, "--start", "sitting"], "'--start': expected rest, random:SEED such as random:1, or a pose file"),
        ([*SOLVE, "--start", "random:9999999999"], "'--start': expected a whole number from 0"),
        ([*SOLVE, "--deadline", "nan"], "'--deadline': expected a number from 0, got 'nan'."),
        ([*SOLVE, "--deadline", "inf"], "'--deadline': expected a number from 0, got 'inf'."),
        ([*SOLVE, "--look", "bonse"], "expected one of surface, bones, both, got 'bonse'. Did you mean 'bones'?"),
        ([*SOLVE, "--jobs", "0"], "expected a whole number from 1, got '0'."),
        ([*SOLVE, "--jobs", "9" * 5000], "expected a whole number"),
        ([*SOLVE, "--look", "bones"], "'--look': expected --picture with this option."),
        ([*SOLVE, "--root", "loose"], "'--root': expected 'fixed', 'free', or axes"),
        ([*SOLVE, "--shard", "1/2"], "'--shard': expected --targets with this option."),
        ([*SOLVE, "--no-simd"], "expected --targets with this option."),
        (["solve", "arm7", "--targets", "t.csv", "--start", "rest", "-o", "out/"], "expected no --targets"),
        (["solve", "arm7", "--targets", "t.csv", "--format", "toml", "-o", "out/"], "expected one of parquet"),
        (["solve", "arm7", "--targets", "t.csv"], "'-o': expected a file or a folder"),
        ([*RETARGET, "--up", "sideways"], "'--up': expected one of x, y, z, -x, -y, -z, got 'sideways'."),
        ([*RETARGET, "--rest", "lying"], "'--rest': expected file, bind, first, tpose, the number of a frame"),
        ([*RETARGET, "--rest", "9" * 5000], "'--rest': expected file, bind, first, tpose, the number of a frame"),
        ([*RETARGET, "--shard", "4/3"], "'--shard': expected I/N with I from 1 to N, for example 3/10, got '4/3'."),
        ([*RETARGET, "--engine", "spark"], "expected one of local, ray, got 'spark'."),
        ([*RETARGET, "--format", "mp3"], "'--format': expected one of bvh"),
        ([*ANIMATE, "--feet", "left,"], "'--feet': expected names separated by commas, got 'left,'."),
        ([*ANIMATE, "--fade", "-1"], "'--fade': expected a number from 0, got '-1'."),
        ([*ANIMATE, "--up", "w"], "'--up': expected one of x, y, z"),
        ([*ANIMATE, "--candidates", "2"], "expected --goals or --follow with this option."),
        ([*TRACK, "--velocity", "fast"], "'--velocity': expected a number above 0, or JOINT=SPEED,..., got 'fast'."),
        ([*TRACK, "--velocity", "a=1,b=0"], "expected a number above 0, got '0'."),
        ([*TRACK, "--velocity", "1,2"], "'--velocity': expected one speed, or JOINT=SPEED once for each joint"),
        ([*TRACK, "--velocity", "a=1,a=2"], "'--velocity': expected one speed, or JOINT=SPEED once for each joint"),
        ([*TRACK, "--joints", "a"], "'--joints': expected --follow or --points with this option."),
        ([*TRACK, "--joints", "a=b,a=c"], "'--joints': expected A,B=C, got 'a=b,a=c'. Name each joint once."),
        ([*TRACK, "--smooth", "x"], "'--smooth': expected a number from 0, got 'x'."),
        ([*TRACK, "--joints", "=a"], "'--joints': expected A,B=C, got '=a'."),
        ([*TRACK, "--feet", "a,b"], "expected --foot-lock with this option."),
        ([*POINTS, "--preset", "coko"], "got 'coko'. Did you mean 'coco'?"),
        ([*POINTS, "--mirror", "w"], "'--mirror': expected one of x, y, z, names, none, got 'w'."),
        ([*POINTS, "--fps", "0"], "'--fps': expected a number from 0.001, got '0'."),
        ([*RENDER, "--size", "960"], "'--size': expected WIDTHxHEIGHT, for example 960x540, got '960'."),
        ([*RENDER, "--size", "0x10"], "'--size': expected WIDTHxHEIGHT"),
        ([*RENDER, "--size", "9" * 5000 + "x10"], "'--size': expected WIDTHxHEIGHT"),
        ([*RENDER, "--view", "behind"], "'--view': expected one of three-quarter, front"),
        ([*RENDER, "--view", "10,100"], "'--view': expected"),
        ([*RENDER, "--theme", "drak"], "got 'drak'. Did you mean 'dark'?"),
        ([*RENDER, "--fps", "0"], "'--fps': expected a number from 0.1, got '0'."),
        (["plot", "walk.bvh", "-o", "a.png", "--source", "b.bvh"], "expected --judge with this option."),
        (["plot", "walk.bvh", "-o", "a.png", "--feet", "--judge"], "expected one of --feet, --judge, --clearance"),
        (["plot", "walk.bvh", "-o", "a.png", "--feet", "--joint", "hips"], "'--joint': expected no --feet, --judge"),
        (["plot", "arm7", "-o", "a.png", "--reach", "tool", "--clip", "1"], "'--clip': expected no --reach"),
        (["view", "arm7", "--port", "70000"], "'--port': expected a whole number from 0 to 65535, got '70000'."),
        (["view", "arm7", "--map", "map.toml"], "expected --onto MODEL with this option."),
        (["view", "walk.bvh", "--onto", "arm7", "--goals", "g.toml"], "expected no --onto with this option."),
        (["view", "walk.bvh", "--onto", "arm7", "--root", "free"], "'--root': expected no --onto with this option."),
        (
            ["convert", "a.bvh", "b.bvh", "-o", "c.npz"],
            "expected a folder for many inputs, got 'c.npz', the name of a file",
        ),
        (["render", "a.bvh", "b.bvh", "-o", "c.gif"], "'-o': expected a folder for many inputs, got 'c.gif'"),
        (["solve", "arm7", "--targets", ".", "-o", "c.csv"], "'-o': expected a folder for many inputs, got 'c.csv'"),
        (["bench", "arm7", "--budget", "0"], "'--budget': expected a number from 0.01, got '0'."),
        (["bench", "arm7", "--problems", "0"], "'--problems': expected a whole number from 1 to 1000000, got '0'."),
        (["bench", "arm7", "--problems", "9" * 400], "expected a whole number from 1 to 1000000"),
        (["bench", "arm7", "--solver", "lmm"], "no solver named 'lmm'"),
        (["schema", "gaols"], "expected one of goals, track, edit, got 'gaols'. Did you mean 'goals'?"),
    ],
)
def test_wrong_values_of_options_are_wrong_usage(arguments: list[str], words: str) -> None:
    """Told before any file is read: no file of these names exists."""
    assert_refused(run(*arguments), words, code=2)


@pytest.mark.parametrize("arguments", [["retarget", "{}", "humanoid", "--retry-failed"], ["render", "{}", "--json"]])
def test_options_for_many_inputs_are_refused_for_one_and_a_missing_one_is_named_first(
    arguments: list[str], tmp_path: Path
) -> None:
    clip = tmp_path / "walk.bvh"
    words = [word.format(clip) for word in [*arguments, "-o", str(tmp_path / "out.png")]]
    assert_refused(run(*words), "walk.bvh: file or folder does not exist")
    clip.write_text("HIERARCHY")
    option = next(word for word in words if word.startswith("--"))
    assert_refused(run(*words), f"'{option}': expected a folder or several inputs with this option.", code=2)


@pytest.mark.parametrize(("name", "cure"), [("a.dae", "with Blender"), ("a.blend", "Blender")])
def test_formats_that_others_read_are_named_with_a_cure(name: str, cure: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(b"BLENDER")
    assert_refused(run("inspect", path), "files cannot be read", cure)


def test_an_unknown_command_names_the_nearest() -> None:
    assert_refused(run("sove", "arm7"), "expected a command, got 'sove'. Did you mean 'solve'?", code=2)
    assert_refused(run("info", "arm7"), "expected a command, got 'info'. Did you mean 'inspect'?", code=2)


def test_a_folder_that_does_not_exist_names_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "clips").mkdir()
    ran = run("retarget", f"{tmp_path}/clip/", "humanoid", "-o", f"{tmp_path}/out/")
    assert_refused(ran, "clip/: file or folder does not exist. Did you mean 'clips'?")


def test_a_table_with_misses_says_how_many(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("tool.x,tool.y,tool.z\n0.4,0.1,0.5\n5,5,5\n")
    ran = run("solve", "arm7", "--targets", tmp_path / "t.csv", "-o", f"{tmp_path}/answers/", "--jobs", 1)
    assert ran.code == 1
    assert "1 input: 1 done, 0 failed\ngoals are missed in 1 of 2 rows, in 1 of 1 input\n" in ran.err


def test_a_solve_without_targets_gets_an_example_that_works() -> None:
    ran = run("solve", "humanoid")
    assert ran.code == 2
    example = ran.err.strip().rpartition("For example: synovia ")[2]
    assert run(*example.split()).code == 0


@pytest.mark.parametrize("command", ["inspect", "solve"])
def test_bad_models(command: str, tmp_path: Path) -> None:
    more = ["-t", "tool=1,2,3"] if command == "solve" else []
    assert_refused(run(command, "arm8", *more), "arm8", "does not exist", "arm7, humanoid, humanoid_hands, quadruped")
    assert_refused(run(command, tmp_path, *more), "is a folder")
    (tmp_path / "empty.urdf").write_bytes(b"")
    assert_refused(run(command, tmp_path / "empty.urdf", *more), "empty")
    assert_refused(run(command, tmp_path / "emty.urdf", *more), "Did you mean 'empty.urdf'?")
    (tmp_path / "cut.urdf").write_text("<robot name='r'><link name='a'/>")
    assert_refused(run(command, tmp_path / "cut.urdf", *more), "cut.urdf")
    (tmp_path / "notes.txt").write_text("hello")
    assert_refused(run(command, tmp_path / "notes.txt", *more), "no known format")
    assert_refused(run(command, "a\0b", *more))


@pytest.mark.skipif(os.name == "nt", reason="permissions of POSIX")
def test_no_permission(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    secret = tmp_path / "secret.urdf"
    secret.write_text("<robot/>")
    secret.chmod(0)
    assert_refused(run("inspect", secret), "cannot be read")


def test_a_file_named_like_a_bundled_model_goes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("inspect", "arm7").code == 0
    Path("arm7").write_bytes(b"")
    assert_refused(run("inspect", "arm7"), "empty")


def test_a_process_gives_the_same_codes() -> None:
    assert run_apart("--version").code == 0
    assert_refused(run_apart("solve", "arm7"), "Usage", code=2)
    assert_refused(run_apart("inspect", "arm8"), "does not exist")


def test_the_installed_command() -> None:
    script = Path(sys.executable).with_name("synovia.exe" if os.name == "nt" else "synovia")
    if not script.exists():
        pytest.skip("the package is not installed beside this Python")
    done = subprocess.run([script, "inspect", "arm8"], capture_output=True, text=True, check=False, timeout=300)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("synovia: arm8")


def test_a_bug_is_shown_and_asks_to_be_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> int:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr("synovia.jobs.clips.body_of", broken)
    ran = run("solve", "arm7", "-t", "tool=1,2,3")
    assert ran.code == 70
    assert ran.out == ""
    assert "Traceback" in ran.err
    assert "ZeroDivisionError: oops" in ran.err
    assert "report" in ran.err.splitlines()[-1]


def test_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("synovia.jobs.clips.body_of", interrupted)
    ran = run("solve", "arm7", "-t", "tool=1,2,3")
    assert (ran.code, ran.out) == (130, "")
    assert "Traceback" not in ran.err


def test_a_missing_extra_prints_its_install_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    ran = run("solve", "arm7", "-t", "tool=0.4,0.1,0.5", "--picture", tmp_path / "a.png")
    assert ran.code == 4
    assert install_command("render") in ran.err
    assert not (tmp_path / "a.png").exists()


@pytest.mark.skipif(os.name == "nt", reason="pipes of POSIX")
def test_a_closed_pipe_is_silent() -> None:
    code = "import sys, synovia.cli; sys.exit(synovia.cli.main(['inspect', 'humanoid', '--json']))"
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([sys.executable, "-c", code], stdout=write, stderr=subprocess.PIPE, check=False, timeout=300)
    os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")


def test_no_colours_outside_terminals_and_no_control_signs_from_files(tmp_path: Path) -> None:
    (tmp_path / "evil.urdf").write_text('<robot name="r"><link name="a&#x9b;31m&#x202e;b"/></robot>', encoding="utf-8")
    ran = run("inspect", tmp_path / "evil.urdf")
    assert ran.code == 0
    assert "\x9b" not in ran.out
    assert "\u202e" not in ran.out
    assert "\\x9b" in ran.out
    for arguments in (["inspect", "humanoid"], ["doctor"]):
        assert "\x1b" not in run(*arguments).out


def test_names_that_the_terminal_cannot_show(tmp_path: Path) -> None:
    (tmp_path / "hand.urdf").write_text('<robot name="r"><link name="手"/></robot>', encoding="utf-8")
    ran = run_apart("inspect", tmp_path / "hand.urdf", env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert ran.code == 0
    assert "\\u624b" in ran.out


@pytest.mark.parametrize(
    ("arguments", "heavy"),
    [
        (["--help"], {"numpy", "numba", "scipy", "msgspec", "rich", "synovia.model", "synovia.ik"}),
        (
            ["solve", "--help"],
            {
                "numpy",
                "rich",
                "synovia.jobs.verbs.animate",
                "synovia.cli.commands.view",
                "synovia.cli.commands.bench",
            },
        ),
        (
            ["solve", "arm7", "-t", "tool=0.4,0.1,0.5", "--json"],
            {
                "synovia.jobs.verbs.animate",
                "synovia.retargeting",
                "synovia.viewer",
                "synovia.draw",
                "synovia.batch.folder",
            },
        ),
    ],
)
def test_a_command_imports_only_what_it_needs(arguments: list[str], heavy: set[str]) -> None:
    code = (
        "import sys, synovia.cli\n"
        f"code = synovia.cli.main({arguments})\n"
        f"print(sorted({heavy} & set(sys.modules)), code, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300)
    assert done.stderr.strip() == "[] 0"


def test_help_imports_no_package_but_the_one_that_prints_it() -> None:
    def packages(code: str) -> set[str]:
        words = [sys.executable, "-c", f"{code}; print(*sorted({{name.split('.')[0] for name in sys.modules}}))"]
        done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=300)
        return set(done.stdout.splitlines()[-1].split())

    needed = packages("import sys, click") | set(sys.stdlib_module_names) | {"synovia"}
    assert packages("import sys, synovia.cli; synovia.cli.main(['--help'])") <= needed


@pytest.mark.skipif(os.name == "nt", reason="pipes of POSIX")
def test_a_named_pipe_does_not_hang(tmp_path: Path) -> None:
    for name in ("pipe", "pipe.bvh"):
        os.mkfifo(tmp_path / name)
        assert_refused(run("inspect", tmp_path / name), "not an ordinary file")


def test_names_that_are_too_long(tmp_path: Path) -> None:
    long = "a" * 5000
    assert_refused(run("inspect", long))
    assert_refused(run("solve", "arm7", "-t", "tool=0.4,0.1,0.5", "-g", f"{long}.toml"))
    assert_refused(run("solve", "arm7", "-t", "tool=0.4,0.1,0.5", "--start", f"{long}.json"))
    assert_refused(run("solve", "arm7", "-t", "tool=0.4,0.1,0.5", "-o", f"{long}.json"), "cannot be written")
    assert_refused(run("solve", "arm7", "-t", f"{long}=0.4,0.1,0.5"), "no joint named")
    assert_refused(run("retarget", f"{long}.bvh", "humanoid"))
    assert_refused(run("retarget", f"{long}/", "humanoid", "-o", "out/"), "file or folder does not exist")
    assert_refused(run("retarget", f"{long}*", "humanoid", "-o", "out/"), "no file matches this pattern")
    assert_refused(run("retarget", "walk.bvh", "humanoid", "-o", f"{long}/"), "'-o'", code=2)
    (tmp_path / "t.csv").write_text("tool.x,tool.y,tool.z\n0.4,0.1,0.5\n")
    assert_refused(run("solve", "arm7", "--targets", tmp_path / "t.csv", "-o", f"{long}.csv"), "cannot be written")
    assert_refused(
        run("solve", "arm7", "--targets", "no.csv", "-o", tmp_path / "t.csv", "--force"), "no.csv", "does not exist"
    )


def test_a_number_of_thousands_of_digits_is_no_clip(tmp_path: Path) -> None:
    (tmp_path / "m.bvh").write_text(
        "HIERARCHY\nROOT hips\n{\nOFFSET 0 0 0\nCHANNELS 3 Zrotation Xrotation Yrotation\n"
        "End Site\n{\nOFFSET 0 1 0\n}\n}\nMOTION\nFrames: 1\nFrame Time: 0.1\n0 0 0\n"
    )
    assert_refused(run("convert", tmp_path / "m.bvh", tmp_path / "m.csv", "--clip", "9" * 5000), "no clip named")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_is_one_line():
    command = [sys.executable, "-m", "synovia", "inspect", "arm7"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, check=False, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 3
    assert done.stderr.decode().startswith("synovia: standard output cannot be written")
    assert b"Traceback" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize("lost", ["2>&-", "2>/dev/full"])
def test_exit_codes_do_not_depend_on_messages_that_nobody_can_read(lost: str, tmp_path: Path) -> None:
    for words, code in (("sove", 2), ("inspect arm8", 3), (f"convert arm7 {tmp_path}/a.toml", 0)):
        command = f"{sys.executable} -m synovia {words} {lost}"
        done = subprocess.run(command, shell=True, check=False, stdout=subprocess.DEVNULL, timeout=300)
        assert done.returncode == code, command


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("so", ["solve"]),
        ("solve hu", ["humanoid", "humanoid_hands"]),
        ("solve examples/rea", ["examples/reach.toml"]),
        ("solve humanoid -t left_han", ["left_hand="]),
        ("solve -t tool= humanoid -r right_fo", ["right_foot="]),
        ("solve arm7 --solver fa", ["fabrik"]),
        ("view arm7 --root fr", ["free"]),
        ("bench arm7 --joint joint7", ["joint7"]),
        ("solve no-such-model -t left", []),
    ],
)
def test_the_shell_completes_models_joints_and_solvers(words, offered, monkeypatch, capsys):
    """As bash asks: the words so far, and which of them is being typed."""
    monkeypatch.chdir(Path(__file__).parents[1])
    monkeypatch.setenv("_SYNOVIA_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", f"synovia {words}")
    monkeypatch.setenv("COMP_CWORD", str(len(words.split())))
    assert main([]) == 0
    assert capsys.readouterr().out.split() == [f"plain,{word}" for word in offered]


@pytest.mark.parametrize(
    ("shell", "file"),
    [("bash", ".bashrc"), ("zsh", ".zshrc"), ("fish", ".config/fish/completions/synovia.fish")],
)
def test_completion_is_installed_once_beside_other_settings(shell, file, monkeypatch, tmp_path):
    monkeypatch.setenv("SHELL", f"/bin/{shell}")
    monkeypatch.setenv("HOME", str(tmp_path))
    path = tmp_path / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("# mine")
    for _ in range(2):
        assert (run("--install-completion").code, run("--install-completion").out) == (0, "")
    lines = path.read_text().splitlines()
    assert lines[0] == "# mine"
    assert len(lines) == 2
    assert f"_SYNOVIA_COMPLETE={shell}_source synovia" in lines[1]
    assert "synovia" in run("--show-completion").out


def test_files_are_completed_in_a_folder_of_many(monkeypatch, tmp_path, capsys):
    for number in range(250):
        (tmp_path / f"a{number}.bvh").touch()
    (tmp_path / "walk.bvh").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("_SYNOVIA_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "synovia view wal")
    monkeypatch.setenv("COMP_CWORD", "2")
    assert main([]) == 0
    assert capsys.readouterr().out.split() == ["plain,walk.bvh"]


def test_completion_is_installed_beside_settings_of_another_encoding(monkeypatch, tmp_path):
    monkeypatch.setenv("SHELL", "/bin/bash")
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".bashrc").write_bytes(b"# caf\xe9\n")
    assert run("--install-completion").code == 0
    assert (tmp_path / ".bashrc").read_bytes().startswith(b"# caf\xe9\neval ")


def test_completion_for_an_unknown_shell_is_refused(monkeypatch):
    monkeypatch.setenv("SHELL", "/bin/tcsh")
    for option in ("--install-completion", "--show-completion"):
        assert_refused(run(option), "'tcsh'", code=2)


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
def test_bash_completes_with_the_line_that_is_installed(monkeypatch, tmp_path):
    monkeypatch.setenv("SHELL", "/bin/bash")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    command = tmp_path / "synovia"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m synovia "$@"\n')
    command.chmod(0o755)
    assert run("--install-completion").code == 0
    script = (
        "source ~/.bashrc; COMP_WORDS=(synovia solve humanoid -t left_hand = 1,2,3 -t right_fo); COMP_CWORD=8;"
        ' _synovia_completion synovia; echo "${COMPREPLY[@]}"'
    )
    done = subprocess.run(["bash", "--norc", "-c", script], capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout == "right_foot=\n"
