"""The packed arrays that kernels read and write: their tables, and the names of their columns and values.

No other file defines packed arrays. This file holds plain numbers and loads no compiler, so that all code can use it.
A name that ends in ``WIDTH`` is the number of columns of a table. The other names are columns of a table, indices into
a flat array, or values where the comment says so.

The tables are declared at the end: ``PROBLEM`` (a packed problem), ``WORK`` (scratch memory), ``ANSWER`` (a row of the
answer), and the scratch memory of single solvers. Only the declaration of a table gives its size.
``problem.pack`` computes where each table of a problem begins and takes its values by its name. Kernels read the table
as the field of that name, in the named tuple that ``compiler.records`` makes of the declarations.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

# --- A problem: the head of its integers -----------------------------------------------------------------------------
N_ROWS, N_VARIABLES, N_GOALS, N_RESIDUALS, N_COLUMNS, N_Q, N_FOLLOWERS = 0, 1, 2, 3, 4, 5, 6
MAX_STEPS, ATTEMPTS, SEED, PATIENCE, COUPLED = 7, 8, 9, 10, 11
N_BOUNDARIES = 12  # number of boundaries of the priority levels: one more than there are levels
N_TERMS, N_MASSES, N_VERTICES = 13, 14, 15
N_FRAMES, N_POINTS = 16, 17  # rows of the tables ``work.frames`` and ``work.points``
N_SMALLER = 18  # the smaller of N_RESIDUALS and N_COLUMNS
N_CURVED = 19  # N_COLUMNS, but 0 if this is above NEWTON_COLUMNS
N_WATCH, N_SOLVER = 20, 21  # sizes (float64 values) of ``work.watch`` and ``work.solver_scratch``
WORK_SIZE = 22  # size (float64 values) of the whole scratch memory
N_CLEARANCES, N_LINKS, N_LINK_PAIRS, N_SHAPES, N_HULL_POINTS, N_NODES = 23, 24, 25, 26, 27, 28  # for clearance goals
N_SLOTS, N_FOUND = 29, 30  # rows for the stored contacts of all clearance goals; rows to find the contacts of one goal
N_PLACED, N_CORNERS, N_FACES, N_EDGES = 31, 32, 33, 34  # rows of scratch memory for a pair of shapes
N_LOOPS, N_MONOMIALS, N_TIED, N_TIED_ROWS, N_TIED_COLUMNS, N_TIED_Q = 35, 36, 37, 38, 39, 40  # for loops
N_TIED_VARIABLES, N_CLOSING = 41, 42  # loops: number of variables; size of the scratch memory of the closing step
N_LEAVES, N_PROPOSALS, N_PROPOSAL = 43, 44, 45  # learned starts: leaves, proposals of all leaves, values of a proposal
# Learned starts: bits FREE_TURN and FREE_TWIST, see below; 1 if the first attempt begins at a learned start
PROPOSAL_FORM, PROPOSED_FIRST = 46, 47
INT_HEAD = 48  # size of the head; the starts of all tables follow, see ``STARTS``
NEWTON_COLUMNS = 128  # with more columns, second derivatives cost more than the steps that they save

# --- A problem: the head of its floats -------------------------------------------------------------------------------
TOLERANCE, TOLERANCE_ANGLE, REACH, MOST_WORK = 0, 1, 2, 3
FLOAT_HEAD = 4

# --- Frames: a rotation (9 values, row by row), then a point ---------------------------------------------------------
ORIENTATION, ORIGIN = 0, 9
FRAME_WIDTH = 12  # with 16 columns, LLVM compiles for twice as long

# --- Tree: integers of a row, ``tree.ints`` --------------------------------------------------------------------------
KIND = 0  # kind of the joint, see below; in tables of terms, the kind of the term, see ``goals.general``
PARENT = 1  # row of the parent, -1 for the world
FIRST_Q = 2  # index in q of the joint's first element
COLUMN = 3  # first Jacobian column of the hinge, slide or rotation, -1 if held
TRANSLATION_COLUMN = 4  # first Jacobian column of a free joint's translation, -1 if held
VARIABLE = 5  # variable of the hinge, slide or rotation, -1 if held; the three before it are a free joint's translation
ROW_WIDTH = 6
FIXED, HINGE, SLIDE, BALL, FREE = 0, 1, 2, 3, 4  # kinds of joints

# --- Paths of ``tree.orient``: first and last + 1 entry of each path in the list of joints ---------------------------
SPAN_FIRST, SPAN_END = 0, 1

# --- Couplings: the value of a joint is RATIO * variable + OFFSET ----------------------------------------------------
RATIO, OFFSET = 0, 1
COUPLING_WIDTH = 2
FOLLOWER, LEADER = 0, 1  # indices in q of the values of a mimic joint and of the joint that it follows
FOLLOWER_WIDTH = 2

# --- Variables: blocks of q that can move ----------------------------------------------------------------------------
BLOCK = 0  # SCALAR for a single value, TURN for a unit quaternion
BLOCK_Q = 1  # index in q of the block's first element
BLOCK_COLUMN = 2  # first Jacobian column of the block
VARIABLE_WIDTH = 3
SCALAR, TURN = 0, 1

# --- Limits of variables ---------------------------------------------------------------------------------------------
# Scalars
LOWER, UPPER = 0, 1
IS_ANGLE = 10  # not 0 if the scalar is an angle
# Rotations
LIMIT_FRAME = 0  # quaternion of the frame in which swing and twist are measured
SWING_X_BACK, SWING_X, SWING_Y_BACK, SWING_Y = 4, 5, 6, 7  # half-angles for each sign of the two swing components
TWIST_LOWER, TWIST_UPPER = 8, 9
IS_LIMITED = 10  # 0 if the rotation has no limit
LIMIT_WIDTH = 11

# --- Preferred values of variables -----------------------------------------------------------------------------------
PREFERRED, STIFFNESS = 0, 1
PREFERENCE_WIDTH = 2
REST_WEIGHT, REST_Q = 0, 1  # rest goals: weight (0 without a rest goal), then the reference value or quaternion
REST_WIDTH = 5

# --- Goals: integers -------------------------------------------------------------------------------------------------
POSITION, ROTATION = 1, 2  # bits of the parts of a pose
PARTS = 0  # bits POSITION and ROTATION: parts of the target pose; 0 for a general goal
GOAL_ROW = 1  # row of the joint that carries the goal, -1 for the world
FIRST_RESIDUAL = 2
LEVEL = 3  # priority level, 0 the highest
RESIDUALS = 4  # number of residual rows
GOAL_WIDTH = 5

# --- Goals: float values ---------------------------------------------------------------------------------------------
POSITION_WEIGHT, ROTATION_WEIGHT = 0, 1  # square roots of the weights
GOAL_ORIENTATION, GOAL_ORIGIN = 2, 11  # the goal's frame, in the frame of GOAL_ROW
GOAL_DATA_WIDTH = 14

# --- Terms of general goals: integers, after their KIND --------------------------------------------------------------
GOAL = 1  # the goal that the term belongs to
FIRST = 2  # first residual row
LENGTHS, ANGLES = 3, 4  # number of residual rows that are lengths and angles
TARGET_PARTS = 5  # bits POSITION and ROTATION: parts of a target that the term reads
OTHER_ROW = 6  # row of another joint (for a pole, the root of its limb), -1 for the world
TIP_ROW = 7  # for a pole: row of the tip of its limb, -1 for the world
VERTEX, VERTICES = 8, 9  # first vertex of the support polygon, and number of vertices
GENERAL_WIDTH = 10

# --- Terms of general goals: float values ----------------------------------------------------------------------------
WEIGHT = 0  # square root of the weight
OTHER_ORIENTATION, OTHER_ORIGIN = 1, 10  # frame on the other joint
TIP_POINT = 13  # for a pole: the tip of the limb, in the frame of TIP_ROW
NUMBERS = 16  # parameters of this kind of term, at most eight
GENERAL_DATA_WIDTH = 24

# --- Masses of rows; the second half of ``Work.frames`` has the masses of their subtrees -----------------------------
MASS, MOMENT = 0, 1  # mass as a fraction of the body's mass, and this mass times the position of its centre
MASS_WIDTH = 4

# --- Targets: a 4x4 transform, row by row, then the parts that are given ---------------------------------------------
LAST_ROW = 12  # first element of the last row of the transform
GIVEN = 16  # bits POSITION and ROTATION of the given parts; parts that are not given keep their start
TRANSFORM_WIDTH = 16
TARGET_WIDTH = 17

# --- Head of a row of the answer -------------------------------------------------------------------------------------
STATUS, STEPS, TRIES, WINNER, COST = 0, 1, 2, 3, 4
FINISH = 5  # number of steps of a final descent by another method
STOPPED_BY = 6  # DEADLINE_PASSED, SIGNAL, SPENT or NO_GAIN if that ended the solve early, else 0
OUT_HEAD = 7
# Values of STATUS; a negative value -1 - g marks the target of goal g as invalid
REACHED, UNREACHABLE, CONFLICT, LIMITED, STALLED, STEPS_SPENT = 0, 1, 2, 3, 4, 5
# Values of STOPPED_BY and STOP_REASON
DEADLINE_PASSED, SIGNAL, SPENT = 1.0, 2.0, 3.0  # SPENT: the work limit is reached
NO_GAIN = -1.0  # the last attempt gained nothing, so more steps would not help

# --- Arguments and results of the kernel of a solver -----------------------------------------------------------------
COLD, WARM = False, True  # values of ``warm``: with WARM each row starts at the answer of the row before, as in a track
# ``first``: the first row to solve. For a kernel that treats missed rows, ``first`` is one of these instead: polish and
# classify the rows; only classify them; or polish them for their positions and rotations only. With WARM the kernel
# does not search from random starts.
POLISH, CLASSIFY, POLISH_POSES = -1, -2, -3
LIST = -4  # value of ``first`` to list the branches of one problem, see ``closed_form.selection``
# The code that a solver returns: the number of finished rows << ROWS_AT, and the bit MISSED if one of them misses its
# goals; or REFUSED - (goal + goals * row) for the first invalid target
MISSED, ROWS_AT = 1, 1
REFUSED = -1
LEFT = -1  # STATUS of a row that a SIMD batch leaves to the ordinary kernel

# --- The watch: the head of the scratch memory, see ``compiler.watch`` -----------------------------------------------
WORK_LEFT = 0  # remaining work until the clock is read
DEADLINE = 1  # time of the deadline (seconds of ``watch.now``), 0 for none
NEXT_SIGNAL_CHECK = 2  # time of the next check for signals
STOP_REASON = 3  # reason that ended the solve, 0 for none
RAISED = 4  # three pointers to the exception that a signal handler raised
WORK_RESERVE = 7  # work allowed beyond WORK_LEFT
WATCH = 8
STATE = WATCH  # after the watch: state of the random numbers, one uint64
OTHERS = STATE + 1  # after the state: stored poses, (FINALISTS + 1, nq + POSE_MORE): q, then cost and attempt
POSE_MORE = 2  # number of values after q
FINALISTS = 3  # poses that are refined when a goal is missed

# --- Trigonometric polynomials ---------------------------------------------------------------------------------------
LARGEST_DEGREE = 4
SCRATCH_SIZE = 4 * (2 * LARGEST_DEGREE + 1)  # real and imaginary parts of coefficients and of roots

# --- The box of a step: one row for each Jacobian column -------------------------------------------------------------
BOX_LOWER, BOX_UPPER = 0, 1
HELD = 2  # 1: held at the upper bound, -1: held at the lower bound, 0: free
NEXT_HELD = 3  # value that HELD should have after the last solve
VELOCITY = 4  # angular velocity, in the joint's frame, of one unit of the column
BOX_WIDTH = 7

# --- The hierarchy: rows of ``LEVELS.v``, each with one value per column; then its state -----------------------------
STEP, STEP_LOWER, STEP_UPPER = 0, 1, 2  # the step so far and its bounds
REFERENCE = 3  # reference step of the posture
ACTIVE_SIDE = 4  # active bound: -1 lower, 0 none, 1 upper
GRADIENT = 5
DIRECTION = 6  # direction of the next move
FALLS = DIRECTION  # used instead while leaving a saddle: 1 if the error falls along the column, else 0
POSE_COLUMN = 7  # Jacobian column that this (permuted) column stands for
STEP_STIFFNESS = 8
RELEASES = 9  # number of times that the level released the bound
PERMANENT = 10  # 1 if the bound stays active for the whole step
VECTORS = 11
FREE_COUNT, BASIS_COUNT = 0, 1  # numbers of free columns and of basis rows
BASIS_STALE = 2  # whether the basis must be rebuilt
SOLVES = 3  # number of linear systems solved
STIFF_COUNT = 4  # number of rows of ``R``
ANY_PINNED = 5  # whether columns are pinned, see ``hierarchy.basis.pin_column``
NO_POSTURE = 6  # whether the posture is switched off
STATES = 7

# --- Parameters of a solver ------------------------------------------------------------------------------------------
PROGRESS = 0  # iterative solvers: an attempt ends unless the cost falls to this fraction within PATIENCE steps
DAMPING, ERROR_DAMPING = 1, 2  # damped solvers: the damping is DAMPING + ERROR_DAMPING * squared error
# Jacobian methods
METHOD, FORM, LARGEST_ERROR, LARGEST_TURN = 3, 4, 5, 6
POSTURE_WEIGHT, CENTRE_WEIGHT, MARGIN_WEIGHT, MARGIN, MANIPULABILITY_WEIGHT = 7, 8, 9, 10, 11  # secondary objectives
GRADIENT_WEIGHT = 12  # 1 with a secondary objective of the user, else 0
CALLBACK = 15  # address of the Python function that calls the user's functions
PARAMS_WIDTH = 16
# Full body
LARGEST_STEP, LARGEST_MOVE, REST_STEP, SOFT = 3, 4, 5, 6  # LARGEST_MOVE: the smallest value of the table ``moves``
# Heuristics
SMALLEST_TURN, STIFFNESS_FACTOR = 1, 2  # parameters of CCD
ROUNDS = 1  # number of rounds of the particle solver; 0 chooses it by the length of the chains
# Closed forms
BLEND, TWIST = 0, 1  # weight of the answer relative to the start, and rotation (radians) about the aimed axis
SOFTEN, PACE = 2, 3  # parameters of two-bone solvers
COUNT, UP, TOP_AXIS = 2, 3, 6  # aim solvers: number of joints, up direction in the world, top direction of the joint
SHARES = 9  # aim solvers: share of each joint; the goal's own joint comes first

# --- Arms: one row for each joint ------------------------------------------------------------------------------------
AXIS, PIVOT = 0, 3  # axis of the joint, and a point on it
LINEAR, ANGULAR = 6, 9  # linear and angular part of the joint's Jacobian column

# --- Points: one row for each row of the tree, then for each goal; for solvers that move positions -------------------
POINT_WIDTH = 14
# Branches of the tree
CHILD, SIBLING, ENTER, LEAVE = 5, 6, 7, 8  # first child, next sibling, span of the subtree
# Target positions of joints
PLACE = 0  # target position of the point
WEIGHT_SUM = 3  # sum of the weights of that target
WRIST_TOP = 4  # rows of goals: the row nearest to the root that serves the goal's rotation
IN_PLACE = WRIST_TOP  # rows of the tree: 1 if the origin cannot move
DIRECT = LEAVE  # rows of goals, which have no children: the row nearest to the tip that uses the goal's position
GOAL_NOW = 9  # rows of goals: present position of the goal
STRAIGHT = 9  # row 0 only: the goal that is out of reach, -1 for none
INVERSE_MASS, LENGTH = 12, 13  # particles: inverse of the mass, length of the bone
BONE, BEST = 3, 4  # chains: length of the bone, and best position so far
CARRIER = 12  # rows of goals, after the frame of the goal: the row that carries the goal
ACROSS, BENT, KNOWN = 0, 9, 12  # rows of pole goals: see ``goals.swivel``

# --- Servo: one row for each axis, a scalar variable or a component of a rotation ------------------------------------
AXIS_LOWER, AXIS_UPPER = 0, 1  # position limits; infinite for components of a rotation
TOP_SPEED, TOP_ACCELERATION, TOP_JERK = 2, 3, 4  # TOP_JERK is infinite without a limit
AXIS_VELOCITY, AXIS_ACCELERATION = 5, 6  # divided differences of the last samples
GAP, GAP_BEFORE = 7, 8  # seconds from the second last sample to the last, and from the third last to the second last
AXIS_TARGET = 9  # displacement from the axis's position to its target at the end of the tick
FEED, FEED_ACCELERATION = 10, 11  # velocity and acceleration of the target, as the axis uses them
RAW_FEED, RAW_FEED_ACCELERATION = 12, 13  # velocity and acceleration of the target, as last measured
NEXT_LOWER, NEXT_UPPER = 14, 15  # bounds of the next velocity that keep the limits
NEXT = 16  # chosen velocity of the next tick
REASON = 17  # the limit that holds the axis back: 0 or one of the values below
STRETCH = 18  # time scaling that slows down the axis, so that all axes arrive together
PLAN_VELOCITY, PLAN_ACCELERATION, PLAN_JERK = 19, 20, 21  # first values of the known stop, see ``servo.stop``
PLAN_FIRST, PLAN_MIDDLE, PLAN_LAST = 22, 23, 24  # remaining seconds of the three parts of the known stop
PLAN_NEXT = 25  # velocity of the next tick on the known stop
FEED_JERK = 26  # jerk of the target
AXIS_WIDTH = 27
# Values of REASON
AT_POSITION, AT_VELOCITY, AT_ACCELERATION, AT_JERK, RECOVERING = 1, 2, 3, 4, 5
EMERGENCY = 6  # recovering with more acceleration than allowed, to stay within the position limits
# Goals of a tick, one row for each. By its MODE, a goal follows its target, is held at its target, or is so far from it
# that the joints move to the answer
FOLLOWED, HELD_STILL, FAR = 0, 1, 2  # values of MODE
MODE = 0
AWAY, TURNED_AWAY = 1, 2  # distance and angle of the goal from its target before the tick: length units, radians
SPIN = 3  # unit vector about which a twist rotates the target, (3,); 0 for none
LAG = 6  # integral of the error over time while the goal comes no nearer, length scales times seconds
GOAL_STATE_WIDTH = 7
# Parts of a tick, as bits
PROPOSE, ADVANCE, STOP = 1, 2, 4
MEETS = 8  # set if the answer, to which the joints go, meets the targets

# --- Shapes: one row each --------------------------------------------------------------------------------------------
# A row begins with a frame (ORIENTATION, ORIGIN). Its z axis is the axis of a capsule or cylinder, and the normal of a
# half-space, whose origin is on the surface.
# The box of half sizes about the origin, widened by the radius, contains the shape, unless it is a half-space.
HALF_SIZES = 12  # half sizes of a box, an ellipsoid, or the box around a hull, along the axes of the frame
HALF_LENGTH = 14  # half length of the axis of a capsule or cylinder
RADIUS = 15
SHAPE_KIND = 16
SPHERE, CAPSULE, BOX, CYLINDER, HULL, ELLIPSOID, HALF_SPACE = 0, 1, 2, 3, 4, 5, 6  # values of SHAPE_KIND
FIRST_POINT, POINTS = 17, 18  # hulls: row of the first point in the table of points, and number of points
EXTENT = 19  # radius of the sphere about the frame's origin that contains the shape, infinite for a half-space
SHAPE_WIDTH = 20
# Pairs: rows of both shapes
FIRST_SHAPE, SECOND_SHAPE = 0, 1
PAIR_WIDTH = 2
# Contacts: one row for each pair
GAP_SIZE = 0  # signed distance
CONTACT_NORMAL = 1  # unit vector from the second shape to the first
FIRST_WITNESS, SECOND_WITNESS = 4, 7  # nearest points of both shapes
CONTACT_WIDTH = 10
# Values of ``meeting.state``: 1 while clearance is ignored, else 0; work of the measured pairs, see ``compiler.watch``
IGNORED, MEASURED = 0, 1
# Scratch memory of one pair, see ``collision.gjk`` and ``collision.epa``
CORNER, CORNER_FIRST = 0, 3  # point of the difference of both shapes, and the point of the first shape
FLAT_GAP, FLAT_FEATURE, FLAT_APART = 3, 4, 5  # for further points of a flat contact, see ``collision.flat``
CORNER_WIDTH = 6
FACE_NORMAL, FACE_OFFSET, FACE_CORNERS = 0, 3, 4
FACE_WIDTH = 7
EDGE_FROM, EDGE_TO = 0, 1
EDGE_WIDTH = 2
MOST_CORNERS, MOST_FACES, MOST_EDGES = 256, 512, 1536
# Links with shapes: row of the joint that carries the link, first shape of the link, number of its shapes
LINK_ROW, FIRST_OF_LINK, SHAPES_OF_LINK = 0, 1, 2
LINK_WIDTH = 3
# Bounding spheres
BALL_CENTER, BALL_RADIUS = 0, 3
BALL_WIDTH = 4
TOUCHES = 2  # after a pair: number of poses in which both shapes touch
COUNTED_WIDTH = 3
# Nodes of trees of obstacles: smallest and largest coordinates
NODE_LOWER, NODE_UPPER = 0, 3
NODE_WIDTH = 6

# --- Clearance goals: integers, then float values; FIRST_X and XS are the first row and the number of rows -----------
CLEAR_GOAL = 0  # index of the goal
CLEAR_ROW = 1  # first residual row of the goal
FIRST_SLOT, SLOTS = 2, 3  # contacts that the goal stores, one for each residual row
FIRST_LINK_PAIR, LINK_PAIRS = 4, 5  # pairs of links that the goal keeps apart
AVOIDING = 6  # the first AVOIDING links belong to the body; the goal keeps the moving ones apart from its obstacles
FIRST_BOUNDLESS, BOUNDLESS = 7, 8  # shapes of unbounded obstacles
FIRST_OBSTACLE, OBSTACLES = 9, 10  # shapes of the other obstacles, which are the leaves of a tree
FIRST_NODE, LEAVES = 11, 12  # the tree of obstacles: a heap whose number of leaves is a power of two
CLEAR_WIDTH = 13
CLEAR_WEIGHT, CLEAR_DISTANCE = 0, 1  # square root of the weight; the distance to keep
CLEAR_DATA_WIDTH = 2
# Contacts that clearance goals store: the columns of ``CONTACT_WIDTH``, then
CONTACT_ROWS = 10  # rows of the tree that carry both shapes, -1 for the world
CONTACT_SHAPES = 12  # both shapes; the first is -1 without a contact
CONTACT_IDLE = 14  # 1 while the force of the contact is known to be 0, so that its residual row is not needed
CONTACT_FEATURE = 15  # 0 for the nearest points of both shapes, else a number that identifies a point of a flat contact
CONTACT_CARRIER = 16  # for a flat contact: the shape that carries the point, 0 or 1 (the other has the normal), else -1
CARRIED_POINT, CARRIED_NORMAL = 17, 20  # the point and the normal, each in the frame of the row that carries it
KEPT_CONTACT_WIDTH = 23
# Moving obstacles. Columns: frame in the world, index of the obstacle, distance of its farthest point from its origin
MOVED_OBSTACLE, MOVED_RADIUS = 12, 13
MOVED_WIDTH = 14
# Pieces of moving obstacles: their shapes, and the spheres around them. Columns: frame, in the obstacle's frame; index
# of the obstacle; row of the shape (for a sphere, of the link); first node of the tree that has the shape; leaf of the
# shape in that tree (0: none; -1: a sphere)
PIECE_OBSTACLE, PIECE_ROW, PIECE_TOP, PIECE_NODE = 12, 13, 14, 15
PIECE_WIDTH = 16
# Settings of paths: clearance up to which a pair is measured; length below which a path is not divided; distance by
# which a pair may be too near
SEEN, SHORTEST, SLACK = 0, 1, 2
WAY_WIDTH = 3

# --- Loops: one row for each; integers, then float values ------------------------------------------------------------
TIED_PLACE = 0  # bits 1, 2, 4: axes of the first frame along which the second may not move; or AT_DISTANCE
TIED_TURN = 1  # ANY_TURN, NO_TURN, ABOUT_AXIS or AT_RIGHT_ANGLE
TIED_FIRST, TIED_SECOND = 2, 3  # rows of the tree that carry both frames, -1 for the world
TIED_ROW, TIED_ROWS = 4, 5  # first residual row, and number of rows
FIRST_MONOMIAL, MONOMIALS = 6, 7  # for a coupling, which has no frames: first monomial, and number of monomials
TIE_WIDTH = 8
ANY_TURN, NO_TURN, ABOUT_AXIS, AT_RIGHT_ANGLE = 0, 1, 2, 3  # values of TIED_TURN; the last two refer to both z axes
AT_DISTANCE = 8  # value of TIED_PLACE: the distance of both origins is given
FIRST_FRAME, SECOND_FRAME = 0, 12
TIE_DISTANCE = 24  # given distance of both origins
TIE_CONSTANT = 25  # constant term of a coupling
TIE_UNIT = 26  # unit of a coupling: 1 for a length, 0 for an angle
TIE_DATA_WIDTH = 27
# Monomials of couplings
MONOMIAL_ROW, POWER = 0, 1  # row of the tree whose joint value is raised to the power
MONOMIAL_WIDTH = 2

# --- Learned starts, see ``proposals.propose`` ------------------------------------------------------------------------
FREE_TURN, FREE_TWIST = 1, 2  # bits of PROPOSAL_FORM: the target determines the first joint, or the last joint
DIVIDES_BY, FIRST_PROPOSAL = 0, 1  # in row i: feature by which node i divides; first proposal of leaf i
NODE_NUMBERS = 2
SEEN_ROTATION = 0  # x and y axes of the last joint's rotation, at its value 0, as ``proposals.propose.seen`` returns it
PROPOSED_Q = 6  # values of all variables; for an arm, the slope of each joint over each feature follows
MOST_FEATURES = 36  # features of four positions and rotations

# --- Pursuit: settings of ``pursuit.follow`` ------------------------------------------------------------------------
PURSUIT_STEPS = 0  # largest number of steps per frame
PURSUIT_REST_STEP = 1  # a frame ends after a step of at most this length (radians, length scales)
PURSUIT_STAY = 2  # weight that pulls every column to its value in the frame before
PURSUIT_DAMPING = 3  # damping of a step, as a factor of the squared error of the levels below 0
PURSUIT_SETTINGS = 4

# --- Hands that follow tracked points, see ``pursuit.hand`` -----------------------------------------------------------
HAND_PLACE = 0  # world frame of the hand on which the points are laid: rotation (9, row by row), then origin (3)
HAND_SCALE = 12  # length units of the hand per unit of the tracked points
HAND_ON_PALM = 13  # 1: the tracked palm is laid on the hand's palm; 0: points are relative to the tracked wrist
HAND_SIDE, HAND_MIRROR = 14, 15  # tracked hand: 1 right, -1 left; -1 if the hand that follows is of the other side
HAND_METRE = 16  # units of the tracked points per metre
HAND_BEGIN, HAND_CLOSED, HAND_OPEN, HAND_AWAY = 17, 18, 19, 20  # metres between tracked tips, see ``pursuit.hand``
HAND_CLEAR = 21  # smallest distance between tips that do not pinch, length units
HAND_OPENING = 22  # largest decrease of FINGER_SHARE per frame
HAND_PINCH = 23  # weight of the goal of an active pinch
HAND_GRIPS = 24  # 1 for a gripper, whose target tips are given
# Length units: a larger gap of a closed pinch gives OPEN_PINCH; a larger mean error of the tips gives OFF_TARGET
HAND_TOUCH, HAND_OFF = 25, 26
HAND_IS_FREE = 27  # 1 while no pinch changes the pose
HAND_UNSEEN = 28  # weight of the last target of a finger that is not seen
HAND_WIDTH = 29
FINGER_POINT = 0  # index of the finger's tip among the tracked points; its last segment begins at the point before
FINGER_NARROW = 1  # distance between the tips of this finger and of the thumb when closed
FINGER_SEEN = 2  # 1 if both points of the last segment are seen
FINGER_APART = 3  # distance of the tracked tip from the tracked thumb tip, metres; infinite if one is not seen
FINGER_CLOSED, FINGER_SHARE = 4, 5  # 1 while the tracked tips touch; closed share of the pinch, from 0 to 1
# Distance of the tip from its target; distance of the tip from the thumb tip minus FINGER_NARROW, at least 0
FINGER_ERROR, FINGER_GAP = 6, 7
FINGER_FREE = 8  # vector from the thumb tip to the tip in the pose without pinches, in the frame of the thumb tip
FINGER_NUMBERS = 11
FREE_Q, HAND_Q, BEFORE_Q = 0, 1, 2  # poses: without pinches, of this frame, of the frame before
NO_PALM, FOLLOWS, HELD_BACK, OPEN_PINCH, OFF_TARGET = -1, 0, 1, 2, 3  # outcomes of a frame

# --- Tables ----------------------------------------------------------------------------------------------------------


class Table(NamedTuple):
    """A table in a flat array.

    Args:
        name: Name of its field in the named tuple that kernels get.
        shape: Number of rows, then number of columns; a vector has only the first. A string names a number: a key of
            ``COUNTS``, or a number that is given when the scratch memory of a solver is opened.
        integers: Whether the table is in the array of integers of a problem.
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
    Table("tree.couple", ("rows", COUPLING_WIDTH)),  # for hinges and slides; 1 and 0 unless the joint is a mimic joint
    Table("variables", ("variables", VARIABLE_WIDTH), integers=True),
    Table("limits", ("variables", LIMIT_WIDTH)),
    Table("goals", ("goals", GOAL_WIDTH), integers=True),
    Table("goal_data", ("goals", GOAL_DATA_WIDTH)),  # weights are relative to the largest of their level
    Table("followers", ("followers", FOLLOWER_WIDTH), integers=True),  # all mimic joints of the skeleton
    Table("coupling", ("followers", COUPLING_WIDTH)),
    Table("preferences", ("variables", PREFERENCE_WIDTH)),  # a ball prefers its rest rotation
    # first residual row of each level, the highest first, then the number of rows; the rows of a level are contiguous
    Table("levels", ("boundaries",), integers=True),
    Table("posture", ("variables", REST_WIDTH)),
    Table("moves", ("variables",)),  # largest move in one solve (radians, length scales), for solvers that bound motion
    # general goals: all goals except positions and rotations in the world; see ``goals.general``
    Table("general.ints", ("terms", GENERAL_WIDTH), integers=True),
    Table("general.data", ("terms", GENERAL_DATA_WIDTH)),
    # mass that row i carries rigidly, in the frame of row i; last, the mass that no joint moves; empty if unused
    Table("general.masses", ("masses", MASS_WIDTH)),
    Table("general.vertices", ("vertices", 3)),  # corners of support polygons, counterclockwise about up
    # clearance goals, see ``goals.clearance``
    Table("clear.ints", ("clearances", CLEAR_WIDTH), integers=True),
    Table("clear.data", ("clearances", CLEAR_DATA_WIDTH)),
    Table("clear.links", ("links", LINK_WIDTH), integers=True),  # links of the body, then obstacles named in pairs
    Table("clear.balls", ("links", BALL_WIDTH)),  # sphere around the shapes of each link, in the frame of its row
    Table("clear.pairs", ("link_pairs", PAIR_WIDTH), integers=True),  # pairs of links
    Table("clear.shapes", ("shapes", SHAPE_WIDTH)),  # shapes in the frames of their rows, ordered by link
    Table("clear.points", ("hull_points", 3)),  # points of hulls, each in the frame of its shape
    Table("clear.nodes", ("nodes", NODE_WIDTH)),  # nodes of all trees of obstacles
    # loops, see ``loops.ties``; their residual rows precede all others
    Table("loops.ints", ("loops", TIE_WIDTH), integers=True),
    Table("loops.data", ("loops", TIE_DATA_WIDTH)),
    Table("loops.monomials", ("monomials", MONOMIAL_WIDTH), integers=True),  # monomials of couplings
    Table("loops.coefficients", ("monomials",)),
    # learned starts: a binary tree, stored as a heap, and the proposals of its leaves, see ``proposals.propose``
    Table("learned.nodes", ("leaves", NODE_NUMBERS), integers=True),
    Table("learned.borders", ("leaves",)),  # value of the feature at which each node divides
    Table("learned.rows", ("proposals", "proposal")),
)
# Scratch memory of one thread
WORK: Final = (
    # the watch, STATE and OTHERS share one table, because each table costs time in every call
    Table("work.watch", ("watch",)),
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
    Table("work.H", ("curved", "curved")),  # the Hessian minus JᵀJ
    Table("work.K", ("curved", "curved")),  # factor of the Hessian
    Table("work.box", ("columns", BOX_WIDTH)),  # bounds of a step and directions of ball joints, see ``tree.chart``
    Table("work.solver_scratch", ("solver",)),  # scratch memory that only the solver uses, see ``Solver.extra_scratch``
    # only for clearance goals
    Table("meeting.contacts", ("slots", KEPT_CONTACT_WIDTH)),  # the nearest contacts of each goal at the last pose
    Table("meeting.found", ("found", KEPT_CONTACT_WIDTH)),  # contacts of a goal at this pose, before they are sorted
    Table("meeting.placed", ("placed", SHAPE_WIDTH)),  # a pair of shapes in the world
    Table("meeting.corners", ("corners", CORNER_WIDTH)),
    Table("meeting.faces", ("faces", FACE_WIDTH)),
    Table("meeting.edges", ("edges", EDGE_WIDTH)),
    Table("meeting.state", ("placed",)),  # IGNORED, MEASURED
    # only for loops, to close them again after a step
    Table("closing.frames", ("tied_rows", FRAME_WIDTH)),
    Table("closing.J", ("tied", "tied_columns")),
    Table("closing.box", ("tied_columns", BOX_WIDTH)),
    Table("closing.step", ("tied_columns",)),
    Table("closing.start", ("tied_variables", 4)),  # values of variables from which the largest move is measured
    Table("closing.before", ("tied_q",)),  # the pose before a step
    Table("closing.end", ("tied_q",)),  # end of a path to a random pose
    Table("closing.nearest", ("tied_q",)),  # the pose with the smallest closure error
    Table("closing.scratch", ("closing",)),  # scratch memory of a level, see ``hierarchy.basis``
)

# Scratch memory of ``pursuit.follow``: H y = g is the system of a step
PURSUED: Final = (
    Table("targets", ("goals", TRANSFORM_WIDTH)),
    Table("before", ("variables", 4)),  # the pose of the frame before
    Table("damp", ("columns",)),  # damping of each column by level 0
    Table("H", ("columns", "columns")),
    Table("K", ("columns", "columns")),  # factors of H
    Table("g", ("columns",)),
)

# Scratch memory of a step of the hierarchy; ``hierarchy.basis`` gives the sizes
LEVELS: Final = (
    Table("G", ("rows", "columns")),  # rows of all levels, scaled by the columns' stiffness and permuted
    Table("e", ("rows",)),  # right side of each row
    Table("s", ("rows",)),  # residual e - G x of the step x
    Table("B", ("basis", "columns")),  # orthonormal basis
    Table("L", ("larger", "columns")),  # rows of the current level in that basis
    Table("A", ("larger", "larger")),  # A and c: linear system of the level
    Table("c", ("larger",)),
    # rows along directions that second derivatives make stiff (see ``hierarchy.newton``); the squared length of a row
    # is the stiffness, in units of the stiffness below which a direction is free
    Table("R", ("columns", "columns")),
    Table("best", ("levels",)),  # error of each level, then of the posture, at the best pose
    Table("errors", ("levels",)),  # errors at the current pose, in the same order
    Table("dampings", ("levels",)),  # damping of each level, then of the posture, while polishing
    Table("damping_floors", ("levels",)),  # lower bounds of ``dampings``
    # 1 if a row constrains the levels below; 0 if its level constrains them only by R
    Table("constrains", ("levels",)),
    Table("saved_errors", ("levels",)),  # errors at the saved pose
    Table("edges", ("levels",)),  # edge of the support polygon of each slack column (see ``hierarchy.inequalities``)
    Table("saved_pose", ("columns", 4)),  # values of each variable at the saved pose
    Table("active_bounds", ("columns",)),  # bound at which the last step of a level ended: -1, 1, or 0
    Table("v", (VECTORS, "columns")),
    Table("state", (STATES,)),
)
# Scratch memory of the Jacobian family, see ``jacobian.shared``
FAMILY: Final = (
    Table("W", ("rows", "columns")),  # a copy of J; the null-space step stores its objective in the row after it
    Table("U", ("rows", "rows")),  # the Gram matrix J Jᵀ
    Table("b", ("rows",)),  # right-hand side of the system
    Table("order", ("rows",)),  # pivots of ``solve_semidefinite``
    Table("z", ("columns",)),  # a direction in the null space
    Table("gradient", ("columns",)),  # ∇H of the secondary objectives
)
# Scratch memory of closed forms with branches, see ``closed_form.selection``
BRANCHES: Final = (
    Table("candidates", (64,)),  # values of all variables, one candidate after the other
    Table("singular", (1,)),  # 1 if a candidate is singular: two of its rotations are arbitrary; else 0
    Table("samples", (2 * LARGEST_DEGREE + 1,)),  # samples of a trigonometric polynomial
    Table("roots", (2 * LARGEST_DEGREE,)),  # angles at which the polynomial is 0
    Table("search", (SCRATCH_SIZE,)),  # scratch memory of the root search
)
# Scratch memory of closed forms that blend, see ``closed_form.blend``
BLEND_VALUES: Final = (
    Table("motion", (1,)),  # displacement of the targets since the last frame, infinite at the first
    Table("start", ("variables", 4)),  # value of each variable at the first start
    Table("last", ("variables", 4)),  # value of each variable in the last answer, before blending
)
# Paths that keep the distances of clearance goals, see ``goals.ways``
WAYS: Final = (
    Table("numbers", (WAY_WIDTH,)),
    Table("levers", ("pairs", "axes")),  # largest decrease of each pair's distance per unit of motion of each axis
    Table("left", ("pairs",)),  # lower bound of the remaining clearance of each pair at the last pose
    Table("least", ("pairs",)),  # smallest allowed clearance of each pair on the path
    Table("offset", ("axes",)),  # displacement of the robot from its commanded pose
    Table("begin", ("nq",)),  # pose where the path begins
    Table("end", ("nq",)),  # pose where the path ends
    # scratch memory
    Table("steps", ("axes",)),
    Table("sizes", ("axes",)),
    Table("poses", (3, "nq")),
    Table("rest", ("pairs",)),
    Table("after", ("pairs",)),
    Table("found", ("pairs",)),
)
# Scratch memory of the goals of a tick, see ``servo.levels``. "columns" are those of the Jacobian. Columns that depend
# on each other are a part, and come to rest at the same time.
TICK: Final = (
    Table("low", ("columns",)),  # bounds of the velocity of each column
    Table("high", ("columns",)),
    Table("choice", ("columns",)),  # chosen velocity
    Table("reference", ("columns",)),  # proposed velocity
    Table("times", ("columns",)),  # seconds in which the part of a column can come to rest
    Table("slope", ("columns",)),  # the column stops at slope * velocity + rest
    Table("rest", ("columns",)),
    Table("turn", ("columns",)),  # derivative of the stop of a column with respect to the time of its part
    # derivative of the time of a part with respect to the velocity of its slowest column; 0 for other columns
    Table("lead", ("columns",)),
    Table("unit", ("columns",)),  # 1 for angles, the length scale for lengths
    Table("shift", ("columns",)),  # step onto the held rows
    Table("least", ("columns",)),  # bounds of ``shift``
    Table("most", ("columns",)),
    Table("first", ("residuals",)),  # value of each residual row where a stop begins
    Table("line", ("residuals",)),  # decrease of each row from the begin of a stop to its end, to first order
    Table("gains", ("residuals", "columns")),  # derivatives of each row where a stop begins
    Table("chosen", ("axes",)),  # velocity of each axis that the levels choose
    Table("base", ("axes",)),  # velocity of each axis that the levels above far goals choose
    Table("plan", ("axes",)),  # velocity of each axis on the known stop
    Table("pose", ("nq",)),
    Table("sample", ("nq",)),
    Table("aimed", ("goals", TRANSFORM_WIDTH)),  # complete targets
    Table("given", ("goals", TARGET_WIDTH)),  # targets of followed or held goals
    Table("last", ("goals", TARGET_WIDTH)),  # targets of the tick before
    Table("errors", ("errors",)),  # distance and angle of each goal, in turn
)
# A stop of a whole body, see ``servo.whole``
WHOLE: Final = (
    Table("start", ("nq",)),
    Table("way", ("axes",)),
    Table("push", ("axes",)),
    Table("bends", (3, "axes")),  # coefficients b₀, b₁, b₂ of the bends
    Table("clock", (3,)),  # see ``servo.places``
)
# A row of the answer
ANSWER: Final = (
    Table("head", (OUT_HEAD,)),
    Table("q", ("nq",)),
    Table("errors", ("errors",)),  # length and angle of each goal's error
    Table("targets", ("goals", TRANSFORM_WIDTH)),  # target that was used for each goal
)

# Index of each table in the integers of a problem; the integer there is the start of the table in its array
STARTS: Final = {table.name: INT_HEAD + k for k, table in enumerate((*PROBLEM, *WORK))}
INT_TABLES: Final = INT_HEAD + len(STARTS)  # index where the tables of integers begin; tables of floats: FLOAT_HEAD


def size_of(table: Table, numbers: Mapping[str, int]) -> int:
    """Return the number of elements of a table, given the values of its named numbers of rows and columns."""
    return math.prod(numbers[size] if isinstance(size, str) else size for size in table.shape)


def size_of_all(tables: Iterable[Table], numbers: Mapping[str, int]) -> int:
    """Return the total number of elements of tables."""
    return sum(size_of(table, numbers) for table in tables)
