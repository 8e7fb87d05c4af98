"""Scratch memory and parameters of the branches of six joints."""

from typing import Final

from synovia.kernels.layout import FRAME_WIDTH, Table

JOINTS: Final = 6
ROWS: Final = 14  # equations of a point and a direction
DEGREE: Final = 8  # degree of the determinant, a trigonometric polynomial
SAMPLES: Final = 20  # samples of the determinant; the coefficients above ``DEGREE`` measure the error
ORDERS: Final = SAMPLES // 2 + 1
STACK: Final = 64  # largest number of stored intervals
MOST_ROOTS: Final = 40
MOST_CLUSTERS: Final = 24
SPLITS, TRIED = 0, 3  # parameters of the solver: the splits to use, the best first; -1 for none
# Elements of ``info``: about the last split, then (LISTED) about the list
NOISE, INDEPENDENT, UNDECIDED, ANGLES, FOUND, USED, COMPLETE, LISTED = 0, 1, 2, 3, 4, 5, 6, 7
INFO_WIDTH: Final = 8

# A split is one of the twelve ways to cut the loop of the chain, see ``six``
SIX_JOINTS: Final = (
    Table("info", (INFO_WIDTH,)),
    Table("candidates", (MOST_ROOTS * JOINTS,)),  # values of all variables, one candidate after the other
    Table("search", (MOST_ROOTS,)),  # distances of the candidates from the start
    Table("rows", (JOINTS,)),  # rows of the joints in the tree
    Table("slides", (JOINTS,)),  # 1 for a slide, 0 for a hinge
    Table("axes", (JOINTS, FRAME_WIDTH)),  # frames of the joints in the world
    Table("loop", (JOINTS, FRAME_WIDTH)),  # fixed transforms of the loop, between the joints
    Table("split", (JOINTS, FRAME_WIDTH)),  # fixed transforms of the loop of a split
    Table("kinds", (JOINTS,)),  # ``slides`` of a split
    Table("Y", (9, ROWS)),  # coefficients of the equations: products of d and e
    Table("X", (27, ROWS)),  # coefficients of the equations: products of a, b and c
    Table("N", (6, ROWS)),  # combinations of the equations without d and e
    Table("E", (6, 27)),  # the six equations in a, b and c
    Table("A", (6, 9)),  # the six equations at one value of c
    Table("M", (9, 9)),  # LU factors of the matrix of the equations
    Table("samples", (SAMPLES,)),  # samples of the determinant
    Table("f", (2, ORDERS)),  # coefficients of the determinant
    Table("stack", (STACK, 4)),  # intervals of c
    Table("roots", (MOST_ROOTS,)),  # values of c
    # first and last value of undecided intervals of c, and 1 if they have at most two roots, else 0
    Table("clusters", (MOST_CLUSTERS, 3)),
    Table("rest", (ROWS,)),  # the equations at one pose
    Table("null", (9,)),  # null vector of the matrix
    Table("plane", (2, 9)),  # two null vectors
    Table("normal", (5,)),  # normal equations of the sine and cosine of e
    Table("x", (JOINTS,)),  # joint values of a split, from the joint at which it cuts
    Table("pose", (JOINTS,)),  # joint values in the order of the chain
    Table("J", (JOINTS, JOINTS + 1)),  # Jacobian of the loop, and the error
    Table("regular", (1,)),  # least pivot of the Jacobian, as a fraction of the largest
    Table("found", (MOST_ROOTS, JOINTS)),  # joint values that the last split found
    Table("turns", (MOST_ROOTS, JOINTS)),  # joint values that all splits found, in the order of the chain
)
