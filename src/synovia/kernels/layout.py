"""The packed arrays that kernels read and write: their tables, and the names of their columns and numbers.

No other file defines packed arrays. This file holds plain numbers and loads no compiler, so that all code can use it.
A name that ends in ``WIDTH`` is the number of columns of a table. The other names are columns of a table, indices into
a flat array, or values where the comment says so.

The tables are declared at the end: ``PROBLEM`` (a packed problem), ``WORK`` (scratch memory), ``ANSWER`` (a row of the
answer), and the scratch memory of single solvers. Only the declaration of a table gives its size.
``problem.pack`` computes where each table of a problem begins and takes its values by its name. Kernels read it as the
field of that name, in the named tuple that ``compiler.records`` makes of the declarations.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

# --- A problem: the head of its integers -----------------------------------------------------------------------------
N_ROWS, N_VARIABLES, N_GOALS, N_RESIDUALS, N_COLUMNS, N_Q, N_FOLLOWERS = 0, 1, 2, 3, 4, 5, 6
MAX_STEPS, ATTEMPTS, SEED, PATIENCE, COUPLED = 7, 8, 9, 10, 11
N_BOUNDARIES = 12  # boundaries of the priority levels: one more than there are levels
N_TERMS, N_MASSES, N_VERTICES = 13, 14, 15
N_FRAMES, N_POINTS = 16, 17  # rows of scratch memory for frames, and for points
N_SMALLER = 18  # residuals or columns, whichever are fewer
N_CURVED = 19  # columns, or 0 with more than NEWTON_COLUMNS
N_WATCH, N_SOLVER = 20, 21  # floats of the watch and what follows it; floats of a solver's own scratch memory
WORK_SIZE = 22  # numbers of the whole scratch memory
N_CLEARANCES, N_LINKS, N_LINK_PAIRS, N_SHAPES, N_HULL_POINTS, N_NODES = 23, 24, 25, 26, 27, 28  # for clearance goals
N_SLOTS, N_FOUND = 29, 30  # contacts that clearance goals store; scratch memory to find the contacts of one goal
N_PLACED, N_CORNERS, N_FACES, N_EDGES = 31, 32, 33, 34  # rows of scratch memory for a pair of shapes
N_LOOPS, N_MONOMIALS, N_TIED, N_TIED_ROWS, N_TIED_COLUMNS, N_TIED_Q = 35, 36, 37, 38, 39, 40  # for loops
N_TIED_VARIABLES, N_CLOSING = 41, 42  # of loops: variables; scratch memory of the step that closes them
N_LEAVES, N_PROPOSALS, N_PROPOSAL = 43, 44, 45  # of learned starts: leaves, rows of all leaves, numbers of a row
PROPOSAL_FORM, PROPOSED_FIRST = 46, 47  # of learned starts: bits, see below; 1 if the first attempt begins at one
INT_HEAD = 48  # the starts of all tables follow, see ``STARTS``
NEWTON_COLUMNS = 128  # with more columns, second derivatives cost more than the steps that they save

# --- A problem: the head of its floats -------------------------------------------------------------------------------
TOLERANCE, TOLERANCE_ANGLE, REACH, MOST_WORK = 0, 1, 2, 3
FLOAT_HEAD = 4

# --- Frames: a rotation (9 numbers, row by row), then a point --------------------------------------------------------
ORIENTATION, ORIGIN = 0, 9
FRAME_WIDTH = 12  # with 16, LLVM takes twice as long

# --- Tree: integers of a row, ``tree.ints`` --------------------------------------------------------------------------
KIND = 0  # of the joint, see below; of a term of a general goal, see ``goals.general``
PARENT = 1  # row, -1 for the world
FIRST_Q = 2  # first element in q
COLUMN = 3  # first Jacobian column of the hinge, slide or rotation, -1 if held
TRANSLATION_COLUMN = 4  # first Jacobian column of a free joint's translation, -1 if held
VARIABLE = 5  # of the hinge, slide or rotation, -1 if held; the translation of a free joint has the three before
ROW_WIDTH = 6
FIXED, HINGE, SLIDE, BALL, FREE = 0, 1, 2, 3, 4  # kinds of joints

# --- Paths of ``tree.orient``: range of each in the list of joints ---------------------------------------------------
SPAN_FIRST, SPAN_END = 0, 1

# --- Couplings: the value of a joint is RATIO * variable + OFFSET ----------------------------------------------------
RATIO, OFFSET = 0, 1
COUPLING_WIDTH = 2
FOLLOWER, LEADER = 0, 1  # elements of q
FOLLOWER_WIDTH = 2

# --- Variables: blocks of q that can move ----------------------------------------------------------------------------
BLOCK = 0  # SCALAR: a number; TURN: a unit quaternion
BLOCK_Q = 1  # first element in q
BLOCK_COLUMN = 2  # first Jacobian column
VARIABLE_WIDTH = 3
SCALAR, TURN = 0, 1

# --- Limits of variables ---------------------------------------------------------------------------------------------
LOWER, UPPER = 0, 1  # of a scalar
IS_ANGLE = 10  # of a scalar: not 0 if it is an angle
LIMIT_FRAME = 0  # of a rotation: quaternion of the frame in which its swing and twist are measured
SWING_X_BACK, SWING_X, SWING_Y_BACK, SWING_Y = 4, 5, 6, 7  # half-angles for each sign of the two swing components
TWIST_LOWER, TWIST_UPPER = 8, 9
IS_LIMITED = 10  # of a rotation: 0 if it has no limit
LIMIT_WIDTH = 11

# --- Preferred values of variables -----------------------------------------------------------------------------------
PREFERRED, STIFFNESS = 0, 1
PREFERENCE_WIDTH = 2
REST_WEIGHT, REST_Q = 0, 1  # of rest goals: weight (0 without one), then the reference number or quaternion
REST_WIDTH = 5

# --- Goals: integers -------------------------------------------------------------------------------------------------
POSITION, ROTATION = 1, 2  # bits of the parts of a pose
PARTS = 0  # of the target pose; 0 for a general goal
GOAL_ROW = 1  # row of its joint, -1 for the world
FIRST_RESIDUAL = 2
LEVEL = 3  # of priority, 0 the highest
RESIDUALS = 4  # number of residual rows
GOAL_WIDTH = 5

# --- Goals: numbers --------------------------------------------------------------------------------------------------
POSITION_WEIGHT, ROTATION_WEIGHT = 0, 1  # square roots of the weights
GOAL_ORIENTATION, GOAL_ORIGIN = 2, 11  # the goal's frame, in that of its row
GOAL_DATA_WIDTH = 14

# --- Terms of general goals: integers, after their KIND --------------------------------------------------------------
GOAL = 1  # the goal that the term belongs to
FIRST = 2  # residual row
LENGTHS, ANGLES = 3, 4  # number of residual rows that are lengths and angles
TARGET_PARTS = 5  # bits POSITION and ROTATION: parts of a target that the term reads
OTHER_ROW = 6  # row of another joint (of a pole, the root of its limb), -1 for the world
TIP_ROW = 7  # of a pole: row of the tip of its limb, -1 for the world
VERTEX, VERTICES = 8, 9  # first vertex of its polygon, and how many
GENERAL_WIDTH = 10

# --- Terms of general goals: numbers ---------------------------------------------------------------------------------
WEIGHT = 0  # square root of the weight
OTHER_ORIENTATION, OTHER_ORIGIN = 1, 10  # frame on the other joint
TIP_POINT = 13  # the tip of the limb, in the frame of its row
NUMBERS = 16  # parameters of its kind, at most eight
GENERAL_DATA_WIDTH = 24

# --- Masses: of rows, and, summed up to the root, in the second half of ``Work.frames`` ------------------------------
MASS, MOMENT = 0, 1  # mass as a part of the whole, and mass times position
MASS_WIDTH = 4

# --- Targets: a 4x4 transform by rows, then which parts are given ----------------------------------------------------
LAST_ROW = 12  # first element of the last row of the transform
GIVEN = 16  # bits POSITION and ROTATION; 0 for a goal that keeps its start
TRANSFORM_WIDTH = 16
TARGET_WIDTH = 17

# --- A row of the answer: its head -----------------------------------------------------------------------------------
STATUS, STEPS, TRIES, WINNER, COST = 0, 1, 2, 3, 4
FINISH = 5  # steps of a final descent by another method
STOPPED_BY = 6  # DEADLINE_PASSED, SIGNAL, SPENT or NO_GAIN if that ended the solve early, else 0
OUT_HEAD = 7
# Values of STATUS; a negative number -1 - g marks the target of goal g as invalid
REACHED, UNREACHABLE, CONFLICT, LIMITED, STALLED, STEPS_SPENT = 0, 1, 2, 3, 4, 5
# Values of STOPPED_BY and STOP_REASON
DEADLINE_PASSED, SIGNAL, SPENT = 1.0, 2.0, 3.0  # SPENT: the work limit is reached
NO_GAIN = -1.0  # the last attempt gained nothing, so more steps would not help

# --- How the kernel of a solver is called, and what it returns -------------------------------------------------------
COLD, WARM = False, True  # ``warm``: whether each row starts at the answer of the row before, as in a track
# ``first``: the first row to solve. A kernel of misses takes one of these instead: polish and classify the rows that
# missed; only classify them; or polish them for their positions and rotations only. With WARM it does not search
# elsewhere.
POLISH, CLASSIFY, POLISH_POSES = -1, -2, -3
LIST = -4  # instead: list the branches of one problem, see ``closed_form.selection``
# The code that a solver returns: the number of finished rows << ROWS_AT, and the bit MISSED if one of them misses its
# goals; or REFUSED - (goal + goals * row) for the first target that is refused
MISSED, ROWS_AT = 1, 1
REFUSED = -1
LEFT = -1  # STATUS of a row that a SIMD batch leaves to the ordinary kernel

# --- The watch: the head of the scratch memory, see ``compiler.watch`` -----------------------------------------------
WORK_LEFT = 0  # work until the next look at the clock
DEADLINE = 1  # time, 0 for none
NEXT_SIGNAL_CHECK = 2  # time of the next look for signals
STOP_REASON = 3  # what has ended the solve, 0 if nothing
RAISED = 4  # three pointers: the exception that a signal handler raised
WORK_RESERVE = 7  # work allowed beyond WORK_LEFT
WATCH = 8
STATE = WATCH  # after the watch: state of the random numbers, one uint64
OTHERS = STATE + 1  # after that: further poses, (FINALISTS + 1, nq + POSE_MORE): q, then cost and attempt
POSE_MORE = 2
FINALISTS = 3  # poses that are refined when a goal is missed

# --- Trigonometric polynomials ---------------------------------------------------------------------------------------
LARGEST_DEGREE = 4
SCRATCH_SIZE = 4 * (2 * LARGEST_DEGREE + 1)  # coefficients and roots, each real and imaginary

# --- The box of a step: one row for each Jacobian column -------------------------------------------------------------
BOX_LOWER, BOX_UPPER = 0, 1
HELD = 2  # 1: held at the upper bound, -1: at the lower one, 0: free
NEXT_HELD = 3  # the value that HELD should have
VELOCITY = 4  # angular velocity, in the joint's frame, of one unit of the column
BOX_WIDTH = 7

# --- The hierarchy: rows of its vectors ``v``, one number a column; then its state -----------------------------------
STEP, STEP_LOWER, STEP_UPPER = 0, 1, 2  # the step so far and its bounds
REFERENCE = 3  # reference step of the posture
ACTIVE_SIDE = 4  # active bound: -1 lower, 0 none, 1 upper
GRADIENT = 5
DIRECTION = 6  # direction of the next move
FALLS = DIRECTION  # while leaving a saddle, without a move: 1 if the error falls along the column, else 0
POSE_COLUMN = 7  # column of the pose
STEP_STIFFNESS = 8
RELEASES = 9  # how often the level released the bound
PERMANENT = 10  # 1 if the bound stays active for the whole step
VECTORS = 11
FREE_COUNT, BASIS_COUNT = 0, 1  # number of free columns, of basis rows
BASIS_STALE = 2  # whether the basis must be rebuilt
SOLVES = 3  # systems solved
STIFF_COUNT = 4  # rows in ``R``
ANY_PINNED = 5  # whether columns are pinned, see ``hierarchy.basis.pin_column``
NO_POSTURE = 6  # whether the posture is switched off
STATES = 7

# --- Parameters of a solver ------------------------------------------------------------------------------------------
PROGRESS = 0  # of iterating solvers: an attempt ends unless the cost falls to this part within PATIENCE steps
DAMPING, ERROR_DAMPING = 1, 2  # of damped solvers: constant part, and factor of the squared error
# Jacobian methods
METHOD, FORM, LARGEST_ERROR, LARGEST_TURN = 3, 4, 5, 6
POSTURE_WEIGHT, CENTRE_WEIGHT, MARGIN_WEIGHT, MARGIN, MANIPULABILITY_WEIGHT = 7, 8, 9, 10, 11  # secondary objectives
GRADIENT_WEIGHT = 12  # 1 with a secondary objective of the user, else 0
CALLBACK = 15  # address of the Python function that calls the user's functions
PARAMS_WIDTH = 16
# Full body
LARGEST_STEP, LARGEST_MOVE, REST_STEP, SOFT = 3, 4, 5, 6  # LARGEST_MOVE: the least of all ``moves``
# Heuristics
SMALLEST_TURN, STIFFNESS_FACTOR = 1, 2  # parameters of CCD
ROUNDS = 1  # rounds of particles; 0 chooses them by the length of the chains
# Closed forms
BLEND, TWIST = 0, 1  # weight of the answer against the start, and rotation about the aimed axis
SOFTEN, PACE = 2, 3  # parameters of two-bone solvers
COUNT, UP, TOP_AXIS = 2, 3, 6  # of aims: number of joints, two directions
SHARES = 9  # of aims: share of each joint, that of the goal first

# --- Arms: one row for each joint ------------------------------------------------------------------------------------
AXIS, PIVOT = 0, 3  # axis of the joint, and a point on it
LINEAR, ANGULAR = 6, 9  # its Jacobian column

# --- Points: one row for each row of the tree, then each goal; for solvers that move positions -----------------------
POINT_WIDTH = 14
# Branches of the tree
CHILD, SIBLING, ENTER, LEAVE = 5, 6, 7, 8  # first child, next sibling, span of the subtree
# Target positions of joints
PLACE = 0  # target position of the point
WEIGHT_SUM = 3  # sum of the weights of that target
WRIST_TOP = 4  # of a goal: the first row that serves its rotation
IN_PLACE = WRIST_TOP  # of a row: 1 if its origin cannot move
DIRECT = LEAVE  # of a goal, which has no children: the last row that serves its position
GOAL_NOW = 9  # of a goal: its present position
STRAIGHT = 9  # of row 0: the goal beyond reach, -1 without one
INVERSE_MASS, LENGTH = 12, 13  # particles: inverse of the mass, length of the bone
BONE, BEST = 3, 4  # chains: length of the bone, and the best position so far
CARRIER = 12  # of a goal, after its frame: the row that carries it
ACROSS, BENT, KNOWN = 0, 9, 12  # of a pole goal: see ``goals.swivel``

# --- Servo: one row for each axis, a scalar variable or a component of a rotation ------------------------------------
AXIS_LOWER, AXIS_UPPER = 0, 1  # limits of its position; infinite for components of a rotation
TOP_SPEED, TOP_ACCELERATION, TOP_JERK = 2, 3, 4  # TOP_JERK is infinite without a limit
AXIS_VELOCITY, AXIS_ACCELERATION = 5, 6  # divided differences of the last samples
GAP, GAP_BEFORE = 7, 8  # seconds between the last two samples, and between the two before
AXIS_TARGET = 9  # place of the target at the end of the tick, relative to the axis
FEED, FEED_ACCELERATION = 10, 11  # motion of the target that the axis uses
RAW_FEED, RAW_FEED_ACCELERATION = 12, 13  # the last one measured
NEXT_LOWER, NEXT_UPPER = 14, 15  # velocities of the next tick that keep the limits
NEXT = 16  # the chosen velocity
REASON = 17  # the limit that holds the axis back: 0 or one of the values below
STRETCH = 18  # time scaling that slows down the axis, so that all axes arrive together
PLAN_VELOCITY, PLAN_ACCELERATION, PLAN_JERK = 19, 20, 21  # the known stop, see ``servo.stop``
PLAN_FIRST, PLAN_MIDDLE, PLAN_LAST = 22, 23, 24  # seconds left of its parts
PLAN_NEXT = 25  # velocity of the next tick on the known stop
FEED_JERK = 26  # jerk of the target
AXIS_WIDTH = 27
# Values of REASON
AT_POSITION, AT_VELOCITY, AT_ACCELERATION, AT_JERK, RECOVERING = 1, 2, 3, 4, 5
EMERGENCY = 6  # recovering with more acceleration than allowed, to stay inside the limits of the position
# How a goal takes part in a tick: it is followed to its target, held there, or far from it, so that joints go there
FOLLOWED, HELD_STILL, FAR = 0, 1, 2  # values of MODE
MODE = 0
AWAY, TURNED_AWAY = 1, 2  # from its target, before the tick: length units, radians
SPIN = 3  # unit vector about which a twist turns its target, (3,); 0 for none
LAG = 6  # integral of the error over time while the goal comes no nearer, length scales times seconds
GOAL_STATE_WIDTH = 7
# Parts of a tick, as bits
PROPOSE, ADVANCE, STOP = 1, 2, 4
MEETS = 8  # whether the joint values to go to meet the targets

# --- Shapes: one row each --------------------------------------------------------------------------------------------
# A row begins with a frame (ORIENTATION, ORIGIN). Capsules and cylinders are along its z axis; so is the normal of a
# half-space, whose frame is at a point of its surface.
# The box of half sizes about the origin, widened by the radius, contains the shape, unless it is a half-space.
HALF_SIZES = 12  # of a box, an ellipsoid, or the box around a hull, along its axes
HALF_LENGTH = 14  # of the axis of a capsule or cylinder
RADIUS = 15
SHAPE_KIND = 16
SPHERE, CAPSULE, BOX, CYLINDER, HULL, ELLIPSOID, HALF_SPACE = 0, 1, 2, 3, 4, 5, 6  # values of SHAPE_KIND
FIRST_POINT, POINTS = 17, 18  # of a hull: its first point in the table of points, and how many
EXTENT = 19  # radius of the sphere about the origin of the frame that holds the shape, infinite for a half-space
SHAPE_WIDTH = 20
# Pairs: rows of both shapes
FIRST_SHAPE, SECOND_SHAPE = 0, 1
PAIR_WIDTH = 2
# Contacts: one row for each pair
GAP_SIZE = 0  # signed distance
CONTACT_NORMAL = 1  # from the second shape to the first
FIRST_WITNESS, SECOND_WITNESS = 4, 7
CONTACT_WIDTH = 10
IGNORED, MEASURED = 0, 1  # 1 while clearance is ignored, else 0; work of the pairs measured, see ``watch``
# Scratch memory of one pair, see ``collision.gjk`` and ``collision.epa``
CORNER, CORNER_FIRST = 0, 3  # point of the difference of both shapes, and the point of the first shape
FLAT_GAP, FLAT_FEATURE, FLAT_APART = 3, 4, 5  # of a further point of a flat contact, see ``collision.flat``
CORNER_WIDTH = 6
FACE_NORMAL, FACE_OFFSET, FACE_CORNERS = 0, 3, 4
FACE_WIDTH = 7
EDGE_FROM, EDGE_TO = 0, 1
EDGE_WIDTH = 2
MOST_CORNERS, MOST_FACES, MOST_EDGES = 256, 512, 1536
# Links with shapes: the joint that carries each, its first shape, and how many it has
LINK_ROW, FIRST_OF_LINK, SHAPES_OF_LINK = 0, 1, 2
LINK_WIDTH = 3
# Bounding spheres
BALL_CENTER, BALL_RADIUS = 0, 3
BALL_WIDTH = 4
TOUCHES = 2  # after a pair: in how many poses both touch
COUNTED_WIDTH = 3
# Nodes of trees of obstacles: least and largest coordinates
NODE_LOWER, NODE_UPPER = 0, 3
NODE_WIDTH = 6

# --- Clearance goals: integers, then numbers -------------------------------------------------------------------------
CLEAR_GOAL = 0  # the goal
CLEAR_ROW = 1  # its first residual row
FIRST_SLOT, SLOTS = 2, 3  # contacts that the goal stores, one for each residual row
FIRST_LINK_PAIR, LINK_PAIRS = 4, 5  # pairs of links that the goal keeps apart
AVOIDING = 6  # number of first links that belong to the body; the goal keeps the moving ones apart from its obstacles
FIRST_BOUNDLESS, BOUNDLESS = 7, 8  # shapes of unbounded obstacles
FIRST_OBSTACLE, OBSTACLES = 9, 10  # shapes of the other obstacles, the leaves of a tree
FIRST_NODE, LEAVES = 11, 12  # that tree: a heap whose number of leaves is a power of two
CLEAR_WIDTH = 13
CLEAR_WEIGHT, CLEAR_DISTANCE = 0, 1  # square root of the weight; the distance to keep
CLEAR_DATA_WIDTH = 2
# Contacts that clearance goals store: the columns of ``CONTACT_WIDTH``, then
CONTACT_ROWS = 10  # rows of the tree that carry both shapes, -1 for the world
CONTACT_SHAPES = 12  # both shapes; the first is -1 without a contact
CONTACT_IDLE = 14  # 1 while its force is known to be 0, so that its row is not needed
CONTACT_FEATURE = 15  # 0 for the nearest points of both shapes; of a further point of a flat contact, which one it is
CONTACT_CARRIER = 16  # of a flat contact the side that carries the point, 0 or 1 (the other has the normal), else -1
CARRIED_POINT, CARRIED_NORMAL = 17, 20  # in the frames of the rows of these sides
KEPT_CONTACT_WIDTH = 23
# Moving obstacles: after the frame of each in the world, its number, and the distance of its farthest point
MOVED_OBSTACLE, MOVED_RADIUS = 12, 13
MOVED_WIDTH = 14
# Their pieces, shapes and spheres around them: after the frame of each in that of its obstacle, the obstacle's number;
# the row of the shape or, for a sphere, of the link; the tree that has it, and its leaf there (0: none; -1: a sphere)
PIECE_OBSTACLE, PIECE_ROW, PIECE_TOP, PIECE_NODE = 12, 13, 14, 15
PIECE_WIDTH = 16
# Numbers of paths: the margin of a pair is measured up to SEEN; a path is not divided below SHORTEST; a pair may come
# too near by SLACK; the tick takes the time WAY_TIME
SEEN, SHORTEST, SLACK, WAY_TIME = 0, 1, 2, 3
WAY_WIDTH = 4

# --- Loops: one row for each; integers, then numbers -----------------------------------------------------------------
TIED_PLACE = 0  # bits of the axes of the first frame along which the second may not move; 8: their distance is given
TIED_TURN = 1  # ANY_TURN, NO_TURN, ABOUT_AXIS or AT_RIGHT_ANGLE
TIED_FIRST, TIED_SECOND = 2, 3  # rows of the tree that carry both frames, -1 for the world
TIED_ROW, TIED_ROWS = 4, 5  # first residual row, and how many
FIRST_MONOMIAL, MONOMIALS = 6, 7  # of a coupling, which has no frames
TIE_WIDTH = 8
ANY_TURN, NO_TURN, ABOUT_AXIS, AT_RIGHT_ANGLE = 0, 1, 2, 3  # values of TIED_TURN; the axes are both z axes
AT_DISTANCE = 8  # bit of TIED_PLACE
FIRST_FRAME, SECOND_FRAME = 0, 12
TIE_DISTANCE = 24
TIE_CONSTANT = 25  # constant term of a coupling
TIE_UNIT = 26  # unit of a coupling: 1 for a length, 0 for an angle
TIE_DATA_WIDTH = 27
# Monomials of couplings
MONOMIAL_ROW, POWER = 0, 1  # row of the tree whose joint value is raised to the power
MONOMIAL_WIDTH = 2

# --- Learned starts, see ``proposals.propose`` ------------------------------------------------------------------------
FREE_TURN, FREE_TWIST = 1, 2  # bits of PROPOSAL_FORM: the first joint, the last joint is found from the target
DIVIDES_BY, FIRST_PROPOSAL = 0, 1  # of a node: a feature; of the leaf with this number: its first row
NODE_NUMBERS = 2
SEEN_ROTATION = 0  # first two columns of the last row's rotation without its own joint, as they were seen
PROPOSED_Q = 6  # of all variables; of an arm they are followed by the slope of each joint over each feature
MOST_FEATURES = 36  # of four positions and rotations

# --- Pursuit: settings of ``pursuit.follow`` ------------------------------------------------------------------------
PURSUIT_STEPS = 0  # most steps of a frame
PURSUIT_REST_STEP = 1  # a frame ends after a step of at most this length (radians, length scales)
PURSUIT_STAY = 2  # pull of every column to the frame before
PURSUIT_DAMPING = 3  # factor of the squared error
PURSUIT_SETTINGS = 4

# --- Hands that follow tracked points, see ``pursuit.hand`` -----------------------------------------------------------
HAND_PLACE = 0  # rotation (9, row by row) and origin (3) in the world of the frame in which the points lie
HAND_SCALE = 12  # length of the hand for a unit of the points
HAND_ON_PALM = 13  # 1: palm lies on palm; 0: the points are relative to the wrist, in their own axes
HAND_SIDE, HAND_MIRROR = 14, 15  # of the tracked hand: 1 right, -1 left; -1 if it is the other side
HAND_METRE = 16  # of the points
HAND_BEGIN, HAND_CLOSED, HAND_OPEN, HAND_AWAY = 17, 18, 19, 20  # metres between tracked tips, see ``pinches``
HAND_CLEAR = 21  # least distance of tips that do not pinch, length units
HAND_OPENING = 22  # share of its displacement by which a pinch opens in a frame
HAND_PINCH = 23  # weight of a pinch
HAND_GRIPS = 24  # 1: a gripper, whose tips are given
HAND_TOUCH, HAND_OFF = 25, 26  # a pinch is open from this distance, tips are missed from this one on average
HAND_IS_FREE = 27  # 1 while no pinch changes the pose
HAND_UNSEEN = 28  # weight of the last target of a finger that is not seen
HAND_WIDTH = 29
FINGER_POINT = 0  # number of its last point; the one before is the other end of its last segment
FINGER_NARROW = 1  # distance of its tip from the thumb's when it is closed
FINGER_SEEN = 2  # 1 if both points are seen
FINGER_APART = 3  # distance of the tracked tip from the thumb's, metres; infinite if it is not seen
FINGER_CLOSED, FINGER_SHARE = 4, 5  # 1 while the tracked tips touch; how far the pinch is closed, from 0 to 1
FINGER_ERROR, FINGER_GAP = 6, 7  # distance of the tip from its target, and from the thumb's beyond FINGER_NARROW
FINGER_FREE = 8  # the tip from the thumb's in its frame, without pinches
FINGER_NUMBERS = 11
FREE_Q, HAND_Q, BEFORE_Q = 0, 1, 2  # poses: without pinches, of this frame, of the frame before
NO_PALM, FOLLOWS, HELD_BACK, OPEN_PINCH, OFF_TARGET = -1, 0, 1, 2, 3  # what became of a frame

# --- Tables ----------------------------------------------------------------------------------------------------------


class Table(NamedTuple):
    """A table in a flat array.

    Args:
        name: Its field in the named tuple that kernels get.
        shape: Number of rows, then of columns; only one for a vector. A string names the number: one of
            ``COUNTS``, or one that is given when the scratch memory of a solver is opened.
        integers: Whether it is in the array of integers of a problem.
    """

    name: str
    shape: tuple[int | str, ...]
    integers: bool = False


COUNTS: Final = {  # the integers of the head that count rows and columns
    "rows": N_ROWS, "variables": N_VARIABLES, "goals": N_GOALS, "residuals": N_RESIDUALS, "columns": N_COLUMNS,
    "nq": N_Q, "followers": N_FOLLOWERS, "boundaries": N_BOUNDARIES, "terms": N_TERMS, "masses": N_MASSES,
    "vertices": N_VERTICES, "frames": N_FRAMES, "points": N_POINTS, "smaller": N_SMALLER, "curved": N_CURVED,
    "watch": N_WATCH, "solver": N_SOLVER, "clearances": N_CLEARANCES, "links": N_LINKS, "link_pairs": N_LINK_PAIRS,
    "shapes": N_SHAPES, "hull_points": N_HULL_POINTS, "nodes": N_NODES, "slots": N_SLOTS, "found": N_FOUND,
    "placed": N_PLACED, "corners": N_CORNERS, "faces": N_FACES, "edges": N_EDGES, "loops": N_LOOPS,
    "monomials": N_MONOMIALS, "tied": N_TIED, "tied_rows": N_TIED_ROWS, "tied_columns": N_TIED_COLUMNS,
    "tied_q": N_TIED_Q, "tied_variables": N_TIED_VARIABLES, "closing": N_CLOSING,
    "leaves": N_LEAVES, "proposals": N_PROPOSALS, "proposal": N_PROPOSAL,
}  # fmt: skip

# A skeleton with goals, as the solvers read it. "tree.ints" is the table ``ints`` of ``problem.tree``.
PROBLEM: Final = (
    Table("params", (PARAMS_WIDTH,)),  # parameters of the solver
    # joints in topological order, a parent before its children
    Table("tree.ints", ("rows", ROW_WIDTH), integers=True),
    Table("tree.fixed", ("rows", FRAME_WIDTH)),  # frame of the joint before its motion, in its parent's frame
    Table("tree.couple", ("rows", COUPLING_WIDTH)),  # of hinges and slides: 1 and 0, except for mimic joints
    Table("variables", ("variables", VARIABLE_WIDTH), integers=True),
    Table("limits", ("variables", LIMIT_WIDTH)),
    Table("goals", ("goals", GOAL_WIDTH), integers=True),
    Table("goal_data", ("goals", GOAL_DATA_WIDTH)),  # weights are relative to the largest of their level
    Table("followers", ("followers", FOLLOWER_WIDTH), integers=True),  # mimic joints of the whole q
    Table("coupling", ("followers", COUPLING_WIDTH)),
    Table("preferences", ("variables", PREFERENCE_WIDTH)),  # a ball prefers its rest rotation
    # first residual row of each level, 0 the highest, then the number of rows; the rows of a level are contiguous
    Table("levels", ("boundaries",), integers=True),
    Table("posture", ("variables", REST_WIDTH)),
    Table("moves", ("variables",)),  # largest move in one solve (radians, length scales), for solvers that bound motion
    # general goals, which are more than a position and a rotation in the world; see ``goals.general``
    Table("general.ints", ("terms", GENERAL_WIDTH), integers=True),
    Table("general.data", ("terms", GENERAL_DATA_WIDTH)),
    # of what row i carries rigidly, in its frame; the last row is what no joint moves; empty if no goal needs it
    Table("general.masses", ("masses", MASS_WIDTH)),
    Table("general.vertices", ("vertices", 3)),  # corners of support polygons, counterclockwise about up
    # clearance goals, see ``goals.clearance``
    Table("clear.ints", ("clearances", CLEAR_WIDTH), integers=True),
    Table("clear.data", ("clearances", CLEAR_DATA_WIDTH)),
    Table("clear.links", ("links", LINK_WIDTH), integers=True),  # of the body, then obstacles of named pairs
    Table("clear.balls", ("links", BALL_WIDTH)),  # around the shapes of each link, in the frame of its row
    Table("clear.pairs", ("link_pairs", PAIR_WIDTH), integers=True),  # pairs of links
    Table("clear.shapes", ("shapes", SHAPE_WIDTH)),  # each in the frame of its row; those of a link are neighbours
    Table("clear.points", ("hull_points", 3)),  # points of hulls, each in the frame of its shape
    Table("clear.nodes", ("nodes", NODE_WIDTH)),  # nodes of all trees of obstacles
    # loops, see ``loops.ties``; their residual rows are the first ones
    Table("loops.ints", ("loops", TIE_WIDTH), integers=True),
    Table("loops.data", ("loops", TIE_DATA_WIDTH)),
    Table("loops.monomials", ("monomials", MONOMIAL_WIDTH), integers=True),  # of couplings
    Table("loops.coefficients", ("monomials",)),
    # learned starts, a binary tree in a heap and the proposals of its leaves, see ``proposals.propose``
    Table("learned.nodes", ("leaves", NODE_NUMBERS), integers=True),
    Table("learned.borders", ("leaves",)),  # value of the feature at which each node divides
    Table("learned.rows", ("proposals", "proposal")),
)
# Scratch memory of one thread
WORK: Final = (
    Table("work.watch", ("watch",)),  # when to stop, STATE, OTHERS: one, as each table costs time in every call
    Table("work.frames", ("frames", FRAME_WIDTH)),  # world frames, then mass and moment of the subtree of each row
    Table("work.J", ("residuals", "columns")),
    Table("work.A", ("smaller", "smaller")),
    Table("work.e", ("residuals",)),
    Table("work.y", ("smaller",)),
    Table("work.dq", ("columns",)),
    Table("work.g", ("columns",)),
    Table("work.best", ("nq",)),
    Table("work.trial", ("nq",)),
    Table("work.points", ("points", POINT_WIDTH)),
    Table("work.H", ("curved", "curved")),  # the Hessian less JᵀJ
    Table("work.K", ("curved", "curved")),  # factor of the Hessian
    Table("work.box", ("columns", BOX_WIDTH)),  # bounds of a step and directions of ball joints, see ``tree.chart``
    Table("work.solver_scratch", ("solver",)),  # of the size that the solver asked for (``Solver.extra_scratch``)
    # of clearance goals only
    Table("meeting.contacts", ("slots", KEPT_CONTACT_WIDTH)),  # the nearest contacts of each goal at the last pose
    Table("meeting.found", ("found", KEPT_CONTACT_WIDTH)),  # contacts of a goal at this pose, before they are sorted
    Table("meeting.placed", ("placed", SHAPE_WIDTH)),  # a pair of shapes in the world
    Table("meeting.corners", ("corners", CORNER_WIDTH)),
    Table("meeting.faces", ("faces", FACE_WIDTH)),
    Table("meeting.edges", ("edges", EDGE_WIDTH)),
    Table("meeting.state", ("placed",)),  # IGNORED, MEASURED
    # of loops only, to close them again after a step
    Table("closing.frames", ("tied_rows", FRAME_WIDTH)),
    Table("closing.J", ("tied", "tied_columns")),
    Table("closing.box", ("tied_columns", BOX_WIDTH)),
    Table("closing.step", ("tied_columns",)),
    Table("closing.start", ("tied_variables", 4)),  # variables from which the largest move is measured
    Table("closing.before", ("tied_q",)),  # the pose before a step
    Table("closing.end", ("tied_q",)),  # end of a path to a random pose
    Table("closing.nearest", ("tied_q",)),  # the pose that is nearest to closed
    Table("closing.scratch", ("closing",)),  # scratch memory of a level, see ``hierarchy.basis``
)

# Scratch memory of ``pursuit.follow``: H y = g is the system of a step
PURSUED: Final = (
    Table("targets", ("goals", TRANSFORM_WIDTH)),
    Table("before", ("variables", 4)),  # the pose of the frame before
    Table("damp", ("columns",)),  # damping of each column by level 0
    Table("H", ("columns", "columns")),
    Table("K", ("columns", "columns")),  # its factors
    Table("g", ("columns",)),
)

# Scratch memory of a step of the hierarchy; see ``hierarchy.basis`` for the numbers that count rows and columns
LEVELS: Final = (
    Table("G", ("rows", "columns")),  # rows of all levels, scaled by the columns' stiffness and permuted
    Table("e", ("rows",)),  # right side of each row
    Table("s", ("rows",)),  # residual e - G x of the step x
    Table("B", ("basis", "columns")),  # orthonormal basis
    Table("L", ("larger", "columns")),  # rows of the current level in that basis
    Table("A", ("larger", "larger")),  # A and c: linear system of the level
    Table("c", ("larger",)),
    # rows along directions that second derivatives make stiff (see ``hierarchy.newton``); their squared length is the
    # stiffness, relative to the least that counts
    Table("R", ("columns", "columns")),
    Table("best", ("levels",)),  # error of each level, then of the posture, at the best pose
    Table("errors", ("levels",)),  # and at the current pose
    Table("dampings", ("levels",)),  # of each level, then of the posture, while polishing
    Table("damping_floors", ("levels",)),  # their lower bounds
    # 1 if a row constrains the levels below; 0 if its level constrains them only by R
    Table("constrains", ("levels",)),
    Table("saved_errors", ("levels",)),  # errors to compare with later
    Table("edges", ("levels",)),  # edge of the support polygon of each slack column (see ``hierarchy.inequalities``)
    Table("saved_pose", ("columns", 4)),  # saved pose by variable
    Table("active_bounds", ("columns",)),  # by column of the pose: where the last step of a level ended (-1, 1), or 0
    Table("v", (VECTORS, "columns")),
    Table("state", (STATES,)),
)
# Scratch memory of the Jacobian family, see ``jacobian.shared``
FAMILY: Final = (
    Table("W", ("rows", "columns")),  # a copy of J; the null-space step stores its objective in the row below
    Table("U", ("rows", "rows")),  # the Gram matrix J Jᵀ
    Table("b", ("rows",)),  # the right-hand side
    Table("order", ("rows",)),  # pivots of ``solve_semidefinite``
    Table("z", ("columns",)),  # a direction in the null space
    Table("gradient", ("columns",)),  # ∇H of the secondary objectives
)
# Scratch memory of closed forms with branches, see ``closed_form.selection``
BRANCHES: Final = (
    Table("candidates", (64,)),  # values of all variables, one candidate after the other
    Table("singular", (1,)),  # 1 if two turns of a candidate are arbitrary, else 0
    Table("samples", (2 * LARGEST_DEGREE + 1,)),  # samples of a trigonometric polynomial
    Table("roots", (2 * LARGEST_DEGREE,)),  # angles
    Table("search", (SCRATCH_SIZE,)),  # scratch memory of the root search
)
# Scratch memory of closed forms that blend, see ``closed_form.blend``
BLEND_VALUES: Final = (
    Table("motion", (1,)),  # displacement of the targets since the last frame, infinite at the first
    Table("start", ("variables", 4)),  # value of each variable at the first start
    Table("last", ("variables", 4)),  # and in the last answer before it was blended
)
# Paths that keep the distances of clearance goals, see ``goals.ways``
WAYS: Final = (
    Table("numbers", (WAY_WIDTH,)),
    Table("levers", ("pairs", "axes")),  # by how much a unit of each axis brings each pair nearer at most
    Table("left", ("pairs",)),  # lower bound of the margin of each pair beyond its distance, at the last pose
    Table("least", ("pairs",)),  # least margin of each pair on the path
    Table("offset", ("axes",)),  # displacement of the robot from its commands
    Table("begin", ("nq",)),  # poses where a path begins and ends
    Table("end", ("nq",)),
    # scratch memory
    Table("steps", ("axes",)),
    Table("sizes", ("axes",)),
    Table("poses", (3, "nq")),
    Table("rest", ("pairs",)),
    Table("after", ("pairs",)),
    Table("found", ("pairs",)),
    Table("trial", ("axes", AXIS_WIDTH)),
    Table("saved", ("axes", AXIS_WIDTH)),
)
# Scratch memory of the goals of a tick, see ``servo.levels``; one number for each column
TICK: Final = (
    Table("low", ("columns",)),  # bounds of its velocity
    Table("high", ("columns",)),
    Table("choice", ("columns",)),  # the velocity
    Table("reference", ("columns",)),  # the proposed velocity
    Table("times", ("columns",)),  # seconds in which it can come to rest
    Table("slope", ("columns",)),  # it stops at slope * velocity + rest
    Table("rest", ("columns",)),
    Table("turn", ("columns",)),  # derivative of its stop place by the time in which its part comes to rest
    Table("lead", ("columns",)),  # derivative of that time by its velocity; 0 unless it is the slowest one
    Table("unit", ("columns",)),  # 1 for angles, the length scale for lengths
    Table("shift", ("columns",)),  # step onto the held rows
    Table("least", ("columns",)),  # bounds of that step
    Table("most", ("columns",)),
    Table("first", ("residuals",)),  # of each residual row: its value where a stop begins; errors of levels before that
    Table("line", ("residuals",)),  # and its linear decrease until the end, if its goal continues straight
    Table("gains", ("residuals", "columns")),  # its derivatives where a stop begins; the best velocities before that
    Table("chosen", ("axes",)),  # velocity of each axis that the levels choose
    Table("base", ("axes",)),  # the same with levels above far goals only
    Table("plan", ("axes",)),  # velocity of each axis on the known stop
    Table("pose", ("nq",)),
    Table("sample", ("nq",)),
    Table("aimed", ("goals", TRANSFORM_WIDTH)),  # complete targets
    Table("given", ("goals", TARGET_WIDTH)),  # targets of followed or held goals
    Table("last", ("goals", TARGET_WIDTH)),  # targets of the tick before
    Table("errors", ("errors",)),  # distance and angle of each goal, one after the other
)
# A stop of a whole body, see ``servo.whole``
WHOLE: Final = (
    Table("start", ("nq",)),
    Table("way", ("axes",)),
    Table("push", ("axes",)),
    Table("bends", (3, "axes")),  # coefficients b₀, b₁, b₂
    Table("clock", (3,)),  # see ``servo.whole``
)
# A row of the answer
ANSWER: Final = (
    Table("head", (OUT_HEAD,)),
    Table("q", ("nq",)),
    Table("errors", ("errors",)),  # length and angle of each goal
    Table("targets", ("goals", TRANSFORM_WIDTH)),  # target that each goal had
)

# Where the integers of a problem hold the start of a table in its array
STARTS: Final = {table.name: INT_HEAD + k for k, table in enumerate((*PROBLEM, *WORK))}
INT_TABLES: Final = INT_HEAD + len(STARTS)  # where the tables of integers begin; those of floats at FLOAT_HEAD


def size_of(table: Table, numbers: Mapping[str, int]) -> int:
    """Return the number of elements of a table, given the named numbers of its rows and columns."""
    return math.prod(numbers[size] if isinstance(size, str) else size for size in table.shape)


def size_of_all(tables: Iterable[Table], numbers: Mapping[str, int]) -> int:
    """Return the total number of elements of tables."""
    return sum(size_of(table, numbers) for table in tables)
