"""Clips on a Ray cluster of three nodes on this machine; a node goes away in the middle, and another joins.

    python benchmarks/batch/cluster.py CLIPS MODEL [--task retarget|solve] [--cores 1]

CLIPS is a folder that ``clips.py`` made, or with ``--task solve`` one of tables of targets. The output folder has to be
that of a local run, byte for byte, apart from the log. Needs ``pip install "synovia[ray]"``.
"""

import argparse
import logging
import sys
import tempfile
import time
from pathlib import Path

import ray
from kill import differences, items_of, task_of
from ray.cluster_utils import Cluster as Machines

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import machine, save, table

from synovia.batch.cluster import Cluster
from synovia.batch.folder import run_folder


def main():
    """Run on both engines and compare."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("clips", type=Path)
    parser.add_argument("model")
    parser.add_argument("--task", choices=("retarget", "solve"), default="retarget")
    parser.add_argument("--cores", type=int, default=1, help="cores of each node")
    given = parser.parse_args()
    where, task = machine(), task_of(given.task, given.model)
    with tempfile.TemporaryDirectory() as folder:
        local, remote = Path(folder) / "local", Path(folder) / "ray"
        begun = time.perf_counter()
        run_folder(task, items_of(given.task, given.clips, local), local)
        seconds = [time.perf_counter() - begun]
        machines = Machines(initialize_head=True, head_node_args={"num_cpus": given.cores})
        nodes = [machines.add_node(num_cpus=given.cores) for _ in range(2)]
        ray.init(address=machines.address, logging_level=logging.ERROR, log_to_driver=False)
        changed = []

        def change(event):
            if not changed and event.ended >= event.todo // 3:
                machines.remove_node(nodes[0], allow_graceful=False)
                changed.append(f"node removed after {event.ended} of {event.todo}")
                machines.add_node(num_cpus=given.cores)
                changed.append("another joined")

        begun = time.perf_counter()
        items = items_of(given.task, given.clips, remote)
        result = run_folder(task, items, remote, engine=Cluster(), notice=change)
        seconds.append(time.perf_counter() - begun)
        ray.shutdown()
        machines.shutdown()
        different = differences(local, remote)
        rows = [
            ["inputs, done, failed", f"{result.inputs}, {result.done}, {len(result.failed)}"],
            ["changes", "; ".join(changed)],
            ["files that differ from those of the local run", len(different)],
            ["local, Ray, s", " ".join(f"{value:.0f}" for value in seconds)],
        ]
        text = table([f"{given.task} on three nodes", ""], rows)
        save(
            f"batch_cluster_{given.task}", "A cluster that changes", {str(row[0]): row[1] for row in rows}, text, where
        )
        sys.exit(bool(different) or len(changed) < 2)


if __name__ == "__main__":
    main()
