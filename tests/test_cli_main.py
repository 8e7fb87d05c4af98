"""Exit codes, streams, help and start-up of the command line."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cli_runs import assert_refused, run, run_apart
from synovia.cli import main


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
        (["-t", "tool=nan,0,0"], ["tool", "finite numbers"]),
        (["-t", "tool=inf,0,0"], ["tool", "finite numbers"]),
        (["-t", "tool=0,0,1e999"], ["tool", "finite numbers"]),
        (["-r", "tool=xyz:nan,0,0"], ["finite"]),
        (["-r", "tool=xxy:1,2,3"], ["Euler", "'xxy'"]),
        (["-r", "tool=abc:1,2,3"], ["Euler", "'abc'"]),
        (["-r", "tool=xYz:1,2,3"], ["Euler"]),
        (["-r", "tool=quat_xyzw:0,0,0,0"], ["expected a unit quaternion"]),
        (["-t", "tol=1,2,3"], ["no joint named 'tol' in arm7", "Did you mean 'tool'?"]),
        (["-t", "99=1,2,3"], ["a row from 0 to"]),
        (["--solver", "lmm"], ["no solver named 'lmm'", "'lm'"]),
        (["--tol", "0"], ["tolerance: expected"]),
        (["--tol", "-1,1"], ["tolerance: expected"]),
        (["--tol", "nan"], ["tolerance", "finite"]),
        (["--attempts", "0"], ["attempts is out of range"]),
        (["--seed", "-1"], ["seed is out of range"]),
        (["--start", "random:9999999999"], ["seed: expected"]),
        (["--start", "nowhere.json"], ["nowhere.json", "does not exist"]),
        (["-g", "nowhere.toml"], ["nowhere.toml", "does not exist"]),
        (["-o", "pose.txt"], ["pose.txt", ".json"]),
        (["-o", "no/such/folder/pose.json"], ["no/such/folder", "does not exist"]),
        (["--picture", "pose.gif"], ["pose.gif", ".png"]),
    ],
)
def test_bad_input(arguments: list[str], words: list[str]) -> None:
    target = [] if {"-t", "-r"} & set(arguments) else ["-t", "tool=0.4,0.1,0.5"]
    assert_refused(run("solve", "arm7", *target, *arguments), *words)


@pytest.mark.parametrize("command", ["inspect", "solve"])
def test_bad_models(command: str, tmp_path: Path) -> None:
    more = ["-t", "tool=1,2,3"] if command == "solve" else []
    assert_refused(run(command, "arm8", *more), "arm8", "does not exist", "arm7, humanoid, quadruped")
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
    def broken(_: object) -> int:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr("synovia.cli.solve.load_body", broken)
    ran = run("solve", "arm7", "-t", "tool=1,2,3")
    assert ran.code == 70
    assert ran.out == ""
    assert "Traceback" in ran.err
    assert "ZeroDivisionError: oops" in ran.err
    assert "report" in ran.err.splitlines()[-1]


def test_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("synovia.cli.solve.load_body", interrupted)
    ran = run("solve", "arm7", "-t", "tool=1,2,3")
    assert (ran.code, ran.out) == (130, "")
    assert "Traceback" not in ran.err


def test_a_missing_extra_prints_its_install_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    ran = run("solve", "arm7", "-t", "tool=0.4,0.1,0.5", "--picture", tmp_path / "a.png")
    assert ran.code == 4
    assert 'pip install "synovia[render]"' in ran.err
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


def test_help_imports_nothing_heavy() -> None:
    heavy = "{'numpy', 'numba', 'scipy', 'msgspec', 'synovia.skeleton', 'synovia.ik'}"
    code = (
        "import sys, synovia.cli\n"
        "code = synovia.cli.main(['--help'])\n"
        f"print(sorted({heavy} & set(sys.modules)), code, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300)
    assert done.stderr.strip() == "[] 0"


@pytest.mark.compiled
@pytest.mark.skipif(os.name == "nt", reason="processor times of POSIX")
def test_help_costs_little_beside_the_library_that_prints_it() -> None:
    from resource import RUSAGE_CHILDREN, getrusage

    def spent(*words: str) -> float:
        before = getrusage(RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *words], capture_output=True, check=True, timeout=300)
        after = getrusage(RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    # in turns, so that other work on the machine slows both down: older versions of typer take three times as long
    times = [(spent("-m", "synovia", "--help"), spent("-c", "import typer")) for _ in range(5)]
    help_, typer = (min(column) for column in zip(*times, strict=True))
    assert help_ < 2.0 * typer, times


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


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_is_one_line():
    command = [sys.executable, "-m", "synovia", "inspect", "arm7"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, check=False, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 3
    assert done.stderr.decode().startswith("synovia: standard output cannot be written")
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("so", ["solve"]),
        ("solve hu", ["humanoid"]),
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
    monkeypatch.setenv("_SYNOVIA_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", f"synovia {words}")
    monkeypatch.setenv("COMP_CWORD", str(len(words.split())))
    assert main([]) == 0
    assert capsys.readouterr().out.split() == offered
