"""Targets of a Panda arm from Parquet to Parquet, beside ``solve_many`` on the same cores; answers checked by NumPy.

    python benchmarks/batch/tables.py [--targets 10000000] [--checked 100000] [--engine stream|local|ray]

The answers are judged by kinematics of NumPy alone. Needs ``pip install "synovia[data]"``, and ``[ray]`` for that
engine; there the rate is that after the first parts have ended. On a busy machine only the processor times compare.
"""

import argparse
import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import machine, save, table
from panda import TIP, Arm, write_panda

import synovia as sy
from synovia.batch import solving
from synovia.batch.cluster import Cluster
from synovia.batch.folder import run_folder
from synovia.batch.pool import Local, cores
from synovia.batch.tables import Source
from synovia.jobs import Solve

NAMES = [f"{TIP}.{word}" for word in ("x", "y", "z", "qx", "qy", "qz", "qw")]
SAMPLE = 200_000  # targets of the measure of solve_many


def make(arm, path, count, seed=1):
    """Write a table of random reachable targets."""
    rng = np.random.default_rng(seed)
    with pq.ParquetWriter(path, pa.schema([("id", pa.int64())] + [(name, pa.float64()) for name in NAMES])) as writer:
        for first in range(0, count, SAMPLE):
            size = min(SAMPLE, count - first)
            T = arm.forward(rng.uniform(arm.low, arm.high, (size, len(arm.low))))
            quats = sy.Rotation.from_matrix(T[:, :3, :3]).as_quat()
            columns = [np.arange(first, first + size), *T[:, :3, 3].T, *quats.T]
            writer.write_table(pa.table([pa.array(column) for column in columns], names=["id", *NAMES]))


def frames_of(given):
    """Return the transforms of a table."""
    numbers = np.stack([given[name].to_numpy() for name in NAMES], axis=1)
    T = np.tile(np.eye(4), (len(numbers), 1, 1))
    T[:, :3, 3], T[:, :3, :3] = numbers[:, :3], sy.Rotation.from_quat(numbers[:, 3:]).as_matrix()
    return T


def plain_rate(model, frames):
    """Return targets a second of ``solve_many`` on all cores, and the processor time of one in seconds."""
    ik = sy.IK(sy.load_skeleton(model), sy.PoseGoal(TIP))
    ik.solve_many({TIP: frames[:2000]}, simd=True)
    begun, spent = time.perf_counter(), time.process_time()
    ik.solve_many({TIP: frames}, simd=True)
    return len(frames) / (time.perf_counter() - begun), (time.process_time() - spent) / len(frames)


def wrong_rows(arm, given, answers, tolerance):
    """Return how many rows say reached and are not, by NumPy, and how many are out of the limits."""
    q = np.stack([answers[name].to_numpy() for name in arm.names], axis=1)
    T, wanted = arm.forward(q), frames_of(given)
    off = np.linalg.norm(T[:, :3, 3] - wanted[:, :3, 3], axis=1)
    angle = sy.Rotation.from_matrix(np.swapaxes(T[:, :3, :3], 1, 2) @ wanted[:, :3, :3]).magnitude()
    reached = np.array(answers["status"].to_pylist()) == "REACHED"
    met = (off <= tolerance[0] * 1.001) & (angle <= tolerance[1] * 1.001)
    outside = (q < arm.low - 1e-9) | (q > arm.high + 1e-9)
    return int((reached & ~met).sum()), int(outside.any(axis=1).sum()), float(reached.mean())


def main():
    """Measure and save."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--targets", type=int, default=10_000_000)
    parser.add_argument("--checked", type=int, default=100_000)
    parser.add_argument("--engine", choices=("stream", "local", "ray"), default="stream")
    parser.add_argument("--part", type=int, default=solving.PART, help="rows of a part, a multiple of 65536")
    given = parser.parse_args()
    solving.PART = given.part
    where = machine()
    with tempfile.TemporaryDirectory() as folder:
        model, path, output = Path(folder) / "panda.urdf", Path(folder) / "in.parquet", Path(folder) / "out"
        write_panda(model)
        arm = Arm(model)
        make(arm, path, given.targets)
        frames = frames_of(pq.ParquetFile(path).read_row_group(0))
        plain = [plain_rate(model, frames)]
        task = Solve(str(model))
        function = task.function(None if given.engine == "stream" else 1)
        task.prepare()
        if given.engine == "stream":
            output = output.with_suffix(".parquet")
            with Source(path) as source:
                next(source.blocks())
                function.answer_columns(source.names)  # builds the problem
                begun, spent = time.perf_counter(), time.process_time()
                solving.write_answers(function, source, output)
            rate = given.targets / (time.perf_counter() - begun)
            spent = (time.process_time() - spent) / given.targets
        else:
            ended = []
            engine = Local() if given.engine == "local" else Cluster()
            items = solving.collect_tables([str(path)], output, None)
            result = run_folder(
                task, items, output, engine=engine, notice=lambda event: ended.append((time.perf_counter(), event))
            )
            rows = sum(event.row.figure("frames") for _, event in ended[cores() :])
            rate = rows / (ended[-1][0] - ended[cores() - 1][0]) if rows else float("nan")
            assert not result.failed
            spent = float("nan")  # in other processes
        usage = [resource.getrusage(who).ru_maxrss / 1024 for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        plain.append(plain_rate(model, frames))
        answers = pq.read_table(output if given.engine == "stream" else sorted(output.glob("*-*.parquet")))
        answers, targets = answers.slice(0, given.checked), pq.read_table(path).slice(0, given.checked)
        tolerance = sy.IK(sy.load_skeleton(model), sy.PoseGoal(TIP)).tolerance
        wrong, outside, share = wrong_rows(arm, targets, answers, tolerance)
    rows = [
        ["targets", given.targets],
        ["Parquet to Parquet, targets/s", f"{rate:,.0f}"],
        ["solve_many(simd=True) before and after, targets/s", " ".join(f"{value:,.0f}" for value, _ in plain)],
        ["share", f"{rate / np.mean([value for value, _ in plain]):.3f}"],
        ["processor time of a target, solve_many alone, µs", f"{1e6 * spent:.2f}, {1e6 * min(plain)[1]:.2f}"],
        ["largest memory: this process, a worker, MiB", f"{usage[0]:.0f}, {usage[1]:.0f}"],
        [f"of {min(given.checked, given.targets)} rows: reached", f"{100 * share:.3f} %"],
        ["said to be reached and not, by NumPy", wrong],
        ["outside the limits", outside],
    ]
    result = {str(name): value for name, value in rows}
    save(f"batch_tables_{given.engine}", "A table of targets", result, table([given.engine, ""], rows), where)
    sys.exit(bool(wrong or outside))


if __name__ == "__main__":
    main()
