"""Names of the columns and indices of the packed arrays that kernels read and write.

No other file defines any. This one holds plain numbers and imports nothing, so that code outside the kernels can use it
without loading the compiler. A name that ends in ``WIDTH`` is the number of columns of a table. The other names are
columns of a table, indices into a flat array, or values where the comment says so.
"""

# --- A problem: the head of its integers -----------------------------------------------------------------------------
N_ROWS, N_VARIABLES, N_GOALS, N_RESIDUALS, N_COLUMNS, N_Q, N_FOLLOWERS = 0, 1, 2, 3, 4, 5, 6
MAX_STEPS, ATTEMPTS, SEED, PATIENCE, COUPLED = 7, 8, 9, 10, 11
N_LEVELS, N_GENERAL, N_MASSES, N_VERTICES = 12, 13, 14, 15
GENERAL_INTS, GENERAL_FLOATS = 16, 17  # start of the tables of general goals in each of the two arrays
INT_HEAD = 18

# --- A problem: the head of its floats -------------------------------------------------------------------------------
TOLERANCE, TOLERANCE_ANGLE, REACH, MOST_WORK = 0, 1, 2, 3
PARAMS = 4  # first parameter of the solver, see the end of the file
FLOAT_HEAD = 20

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
POSITION_WEIGHT, ROTATION_WEIGHT = 0, 1  # square roots
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
WEIGHT = 0  # square root
OTHER_ORIENTATION, OTHER_ORIGIN = 1, 10  # frame on the other joint
TIP_POINT = 13  # the tip of the limb, in the frame of its row
NUMBERS = 16  # parameters of its kind, at most eight
GENERAL_DATA_WIDTH = 24

# --- Masses: of rows, and, summed up to the root, in the second half of ``Work.frames`` ------------------------------
MASS, MOMENT = 0, 1  # mass as a part of the whole, and mass times position
MASS_WIDTH = 4

# --- Targets: a 4x4 transform by rows, then which parts are given ----------------------------------------------------
LAST_ROW = 12  # of the transform
GIVEN = 16  # bits POSITION and ROTATION; 0 for a goal that keeps its start
TRANSFORM_WIDTH = 16
TARGET_WIDTH = 17

# --- A row of the answer: this head, then q, errors (2 a goal), targets (a transform a goal) -------------------------
STATUS, STEPS, TRIES, WINNER, COST = 0, 1, 2, 3, 4
FINISH = 5  # steps of a final descent by another method
STOPPED_BY = 6  # DEADLINE_PASSED, SIGNAL, SPENT or NO_GAIN if that ended the solve early, else 0
OUT_HEAD = 7
# Values of STATUS; a negative number -1 - g marks the target of goal g as invalid
REACHED, UNREACHABLE, CONFLICT, LIMITED, STALLED, STEPS_SPENT = 0, 1, 2, 3, 4, 5
# Values of STOPPED_BY and STOP_REASON
DEADLINE_PASSED, SIGNAL, SPENT = 1.0, 2.0, 3.0  # SPENT: the work limit is reached
NO_GAIN = -1.0  # the last attempt gained nothing, so more steps would not help

# --- The watch: the head of the scratch memory, see ``compiler.watch`` -----------------------------------------------
WORK_LEFT = 0  # work until the next look at the clock
DEADLINE = 1  # time, 0 for none
NEXT_SIGNAL_CHECK = 2  # time of the next look for signals
STOP_REASON = 3  # what has ended the solve, 0 if nothing
RAISED = 4  # three pointers: the exception that a signal handler raised
WORK_RESERVE = 7  # work allowed beyond WORK_LEFT
WATCH = 8
STATE = WATCH  # after the watch: state of the random numbers, one uint64
OTHERS = STATE + 1  # after that: further poses, (FINALISTS + 1, nq + 2)
FINALISTS = 3  # poses that are refined when a goal is missed

# --- The box of a step: one row for each Jacobian column -------------------------------------------------------------
BOX_LOWER, BOX_UPPER = 0, 1
HELD = 2  # 1: held at the upper bound, -1: at the lower one, 0: free
NEXT_HELD = 3  # the value that HELD should have
VELOCITY = 4  # angular velocity, in the joint's frame, of one unit of the column
BOX_WIDTH = 7

# --- Parameters of a solver: indices after PARAMS --------------------------------------------------------------------
PROGRESS = 0  # of iterating solvers: an attempt ends unless the cost falls to this part within PATIENCE steps
DAMPING, ERROR_DAMPING = 1, 2  # of damped solvers: constant part, and factor of the squared error
# Jacobian methods
METHOD, FORM, LARGEST_ERROR, LARGEST_TURN = 3, 4, 5, 6
POSTURE_WEIGHT, CENTRE_WEIGHT, MARGIN_WEIGHT, MARGIN, MANIPULABILITY_WEIGHT = 7, 8, 9, 10, 11  # secondary objectives
GRADIENT_WEIGHT = 12  # 1 with a secondary objective of the user, else 0
CALLBACK = 15  # address of the Python function that calls the user's functions
# Full body
LARGEST_STEP, LARGEST_MOVE, SETTLED, SOFT = 3, 4, 5, 6  # LARGEST_MOVE: the least of all ``moves``
# Heuristics
SMALLEST_TURN, STIFFNESS_FACTOR = 1, 2  # of CCD
ROUNDS = 1  # of particles; 0 chooses it by the length of the chains
# Closed forms
BLEND, TWIST = 0, 1  # weight of the answer against the start, and turn about the aimed axis
SOFTEN, PACE = 2, 3  # of two bones
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
FEED, FEED_ACCELERATION = 10, 11  # motion of the target that counts
RAW_FEED, RAW_FEED_ACCELERATION = 12, 13  # the last one measured
NEXT_LOWER, NEXT_UPPER = 14, 15  # velocities of the next tick that keep the limits
NEXT = 16  # the one that is chosen
REASON = 17  # the limit that holds the axis back: 0 or one of the values below
STRETCH = 18  # factor of time by which the axis goes more slowly than it could, so that all arrive together
PLAN_VELOCITY, PLAN_ACCELERATION, PLAN_JERK = 19, 20, 21  # the stop that is known, see ``servo.stop``
PLAN_FIRST, PLAN_MIDDLE, PLAN_LAST = 22, 23, 24  # seconds that its parts still take
PLAN_NEXT = 25  # velocity of the next tick on it
FEED_JERK = 26  # of the target
AXIS_WIDTH = 27
# Values of REASON
AT_POSITION, AT_VELOCITY, AT_ACCELERATION, AT_JERK, RECOVERING = 1, 2, 3, 4, 5
EMERGENCY = 6  # recovering with more acceleration than allowed, to stay inside the limits of the position
# Parts of a tick, as bits
PROPOSE, ADVANCE, STOP = 1, 2, 4
