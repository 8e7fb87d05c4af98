"""The seam kept open for a GPU: the same kernels compile to PTX, and give the same bits in the CUDA simulator.

Nothing of Synovia runs on a GPU yet. Needs ``pip install "numba-cuda[cu12]"``; no GPU.
"""

import os
import subprocess
import sys
from importlib.util import find_spec

import pytest

pytestmark = [
    pytest.mark.jit,
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("numba_cuda") is None, reason='no numba-cuda: pip install "numba-cuda[cu12]"'),
]

COMPILE = """
from types import SimpleNamespace
import numba, numba.cuda.dispatcher
from numba import cuda, float64, int32
from synovia.kernels.compiler import jit
from synovia.kernels.jacobian import arm
from synovia.kernels.heuristic import fabrik_chain
from synovia.kernels.tree.problem import open_problem, open_work

# helpers ask the device that is there for its kind; where none is, any kind serves
numba.cuda.dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=(8, 0))

def tables(ints, floats, scratch):
    return open_problem(ints, floats), open_work(ints, scratch)

opened = numba.njit(tables)
opened.compile((int32[::1], float64[::1], float64[::1]))
problem, work = opened.nopython_signatures[0].return_type.types
for module in (arm, fabrik_chain):
    attempt = jit._ALGORITHMS[type(module.attempt)]

    def launch(problem, work, targets, q):
        i = cuda.grid(1)
        if i < q.shape[0]:
            attempt(problem, work, targets[i], q[i])

    ptx, _ = cuda.compile(
        launch, (problem, work, float64[:, :, ::1], float64[:, ::1]), device=False, abi="numba", cc=(8, 0), output="ptx"
    )
    print(module.__name__, ".visible .entry" in ptx, "fma.rn.f64" in ptx, "sqrt" in ptx)
"""

SIMULATE = """
import numpy as np
from numba import cuda
import synovia as sy

def same(ik, key, targets):
    problem = ik.problem
    kernel, table = problem.kernel, problem.writer.table_of_many({key: targets})
    shape = (len(table), problem.row_shape[1])
    out, expected = np.zeros(shape), np.zeros(shape)

    @cuda.jit
    def launch(ints, floats, table, rest, out, scratch):
        i = cuda.grid(1)
        if i < out.shape[0]:
            kernel(ints, floats, table[i : i + 1], rest, out[i : i + 1], scratch[i], False, 0)

    launch[2, 2](problem.ints, problem.floats, table, problem.rest, out, np.zeros((len(table), problem.scratch_size)))
    kernel(problem.ints, problem.floats, table, problem.rest, expected, np.zeros(problem.scratch_size), False, 0)
    print(kernel.__name__, (out == expected).all(), out[:, 1].max() > 3)

arm = sy.bundled("arm7")
poses = np.stack([arm.random_pose(i).transform("tool") for i in range(3)])
same(sy.IK(arm, sy.PoseGoal("tool")), "tool", poses)
turn = np.linspace(0.1, 1.4, 9)
chain = sy.Skeleton.chain(np.cumsum(np.column_stack([np.cos(turn), np.sin(turn), 0.1 * turn]), axis=0))
end = chain.joint_names[-1]
ik = sy.IK(chain, sy.PositionGoal(end), sy.Fabrik(), tolerance=(1e-6, 1e-3))
same(ik, end, np.array([[1.0, 2.0, 3.0], [3.0, 1.0, 2.0], [-4.0, 0.0, 1.0]]))
"""


def said_by(code, **settings):
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, **settings},
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.split("\n")


def test_the_arm_and_fabrik_compile_for_a_gpu_from_the_same_source():
    if find_spec("nvidia.cuda_nvcc") is None and "CUDA_HOME" not in os.environ:
        pytest.skip('no compiler for PTX: pip install "numba-cuda[cu12]"')
    told = said_by(COMPILE, NUMBA_DISABLE_JIT="0")
    assert told[:2] == [
        "synovia.kernels.jacobian.arm True True True",
        "synovia.kernels.heuristic.fabrik_chain True True True",
    ]


def test_one_thread_a_problem_gives_the_bits_of_the_cpu():
    told = said_by(SIMULATE, NUMBA_DISABLE_JIT="1", NUMBA_ENABLE_CUDASIM="1")
    assert told[:2] == ["arm True True", "fabrik_chain True True"]
