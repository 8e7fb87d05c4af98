"""Starts along a clip: each frame starts at its pose in the clip, plus the change that solved the frame before.

So a frame that needs the same change as the frame before takes few steps, however the clip moves in between. The
pose of the clip is also the reference of rest goals.
"""

from synovia.kernels.compiler.jit import apart
from synovia.kernels.layout import BLOCK, BLOCK_Q, REST_Q, SCALAR
from synovia.kernels.math.rotations import load_quat, quat_conj, quat_mul, quat_normalize, store_quat
from synovia.kernels.search.multistart import set_followers
from synovia.kernels.tree.variables import clamp_block


@apart
def start_along(problem, q, before):
    """Change a pose of the clip into the start of its frame, and store the pose as the reference of rest goals.

    Let r and s be the rotations of a joint in the clip, in the frame before and in this frame. The answer p of the
    frame before becomes the start s r⁻¹ p.

    Args:
        problem: The problem; its posture is the clip's pose in the frame before.
        q: The pose of the clip, (nq,), which becomes the start.
        before: The answer of the frame before, (nq,).
    """
    for k in range(problem.variables.shape[0]):
        at, reference = problem.variables[k, BLOCK_Q], problem.posture[k]
        if problem.variables[k, BLOCK] == SCALAR:
            here = q[at]
            q[at] = before[at] + (here - reference[REST_Q])
            reference[REST_Q] = here
        else:
            s, r = load_quat(q, at), load_quat(reference, REST_Q)
            store_quat(q, at, quat_normalize(quat_mul(quat_mul(s, quat_conj(r)), load_quat(before, at))))
            store_quat(reference, REST_Q, s)
        clamp_block(problem.variables, problem.limits, k, q)
    set_followers(problem, q)
