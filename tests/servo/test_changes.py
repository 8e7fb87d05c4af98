"""Goals, limits and worlds that change while a body moves, as an outside judge sees the commands."""

import numpy as np
import pytest

import synovia as sy
from servo.judge import differences, turn_differences

RATE = 100
ARM = [
    [sy.PoseGoal("tool")],
    [sy.PositionGoal("tool"), sy.DirectionGoal("tool", (0, 0, 1.0), (0, 0, -1.0), name="down", priority=1)],
    [sy.PoseGoal("tool"), sy.RestGoal()],
    [sy.PositionGoal("tool", (0.4, 0.1, 0.5))],
    [sy.PositionGoal("joint4", name="elbow", priority=1), sy.PositionGoal("tool")],
]
FEET = [sy.PoseGoal("left_foot"), sy.PoseGoal("right_foot")]
HUMANOID = [
    [*FEET, sy.PositionGoal("left_hand", priority=1), sy.PositionGoal("right_hand", priority=2)],
    [*FEET, sy.PositionGoal("right_hand", priority=1), sy.RestGoal()],
]
PAWS = [f"{side}_fore_paw" for side in ("left", "right")]
QUADRUPED = [
    [sy.PositionGoal(PAWS[0]), sy.PositionGoal(PAWS[1], priority=1)],
    [sy.PositionGoal(PAWS[0]), sy.PositionGoal(PAWS[1]), sy.PositionGoal("head", priority=1)],
]
SLIDES = [[sy.PositionGoal("tip")], [sy.PositionGoal("tip"), sy.PositionGoal("middle", priority=1)]]
DISTANCE = 0.01
WORLD = sy.World(
    {"a": sy.Sphere(center=(0.4, 0.2, 0.4), radius=0.1), "b": sy.Sphere(center=(-0.3, 0.3, 0.5), radius=0.1)}
)
CLEAR = [[*ARM[0], sy.ClearanceGoal(DISTANCE, world=WORLD)], [*ARM[1], sy.ClearanceGoal(DISTANCE, world=WORLD)]]
ABOVE = np.array([0.2, 0.1, 0.1, -0.6, 0.1, 0.5, 0.3])
BODIES = {
    "arm": (lambda: sy.bundled("arm7"), ARM, (1.5, 8.0, 100.0), "fixed"),
    "humanoid": (lambda: sy.bundled("humanoid"), HUMANOID, (2.0, 10.0, 100.0), "free"),
    "quadruped": (lambda: sy.bundled("quadruped"), QUADRUPED, (2.0, 10.0, 100.0), "fixed"),
    "cart": (lambda: sy.bundled("arm7"), ARM[:2], (1.0, 5.0, 60.0), "x,y,yaw"),
    "slides": (lambda: slides(), SLIDES, (1.0, 6.0, 80.0), "fixed"),
}
MORE = {"clear arm": (lambda: sy.bundled("arm7"), CLEAR, (1.5, 8.0, 100.0), "fixed")}


def slides():
    """Slides and hinges in turn."""
    rest = np.eye(4)
    rest[0, 3] = 0.3
    kinds = [sy.Kind.SLIDE, sy.Kind.HINGE, sy.Kind.SLIDE, sy.Kind.HINGE, sy.Kind.HINGE]
    axes = [(1.0, 0, 0), (0, 0, 1.0), (0, 1.0, 0), (0, 1.0, 0), (0, 0, 1.0)]
    names = ["rail", "turn", "middle", "bend", "wrist"]
    joints = [
        sy.Joint(name, before, kind, rest if before else np.eye(4), axis=np.array(axis), limit=sy.Interval(-1.0, 1.0))
        for name, before, kind, axis in zip(names, [None, *names], kinds, axes, strict=False)
    ]
    return sy.Skeleton([*joints, sy.Joint("tip", "wrist", rest=rest, tip=True)], name="slides", meters_per_unit=1.0)


class Run:
    """A servo whose goals, priorities and limits change at random, with the limits that hold in each tick."""

    def __init__(self, name, seed, jerk, *, keeps=(), **options):
        make, self.sets, (self.V, self.A, self.J), root = (BODIES | MORE)[name]
        self.rng, self.jerk = np.random.default_rng(seed), jerk
        self.limits = {"velocity": self.V, "acceleration": self.A} | ({"jerk": self.J} if jerk else {})
        self.servo = sy.Servo(make(), self.sets[0], rate=RATE, root=root, **self.limits, **options)
        self.servo.reset()
        self.keeps, self.changes, self.targets = set(keeps), 0, {}
        self.q = [self.servo.step(dt=0).q] * 3
        self.names = self.servo.skeleton.joint_keys
        self.allowed = {key: dict(self.limits) for key in self.names}
        self.rows, self.commands = [], []

    def go(self, ticks):
        for _ in range(ticks):
            if self.rng.random() < 0.05:
                self.change()
                self.changes += 1
            if self.rng.random() < 0.05:
                self.aim()
            command = self.servo.step(self.targets or None)
            self.commands.append(command)
            self.q.append(command.q)
            late = command.limited
            for key, most in self.allowed.items():
                recovers = late.get(key) == "recovering"
                for limit, value in self.limits.items():
                    most[limit] = max(most[limit], value) if recovers else value
            self.rows.append([list(self.allowed[key].values()) for key in self.names])

    def change(self):
        kind = self.rng.integers(0, 4)
        if kind == 0:
            self.servo.change(self.sets[self.rng.integers(len(self.sets))])
            self.targets = {}
        elif kind == 1:
            names = [goal.label for goal in self.servo.ik.goals if goal.has_priority and goal.label not in self.keeps]
            first = 1 if self.keeps else 0
            self.servo.change(priorities={name: int(self.rng.integers(first, 3)) for name in names})
        else:
            top = {"velocity": self.V, "acceleration": self.A, "jerk": self.J}
            picked = [name for name in self.limits if self.rng.random() < 0.6]
            self.limits |= {name: float(top[name] * self.rng.choice([0.2, 0.5, 1.0])) for name in picked}
            self.servo.change(**{name: self.limits[name] for name in picked})

    def aim(self):
        pose = self.servo.skeleton.random_pose(seed=int(self.rng.integers(1 << 30)))
        self.targets = {
            goal.label: pose.transform(goal.joint) if goal.kind == "pose" else pose.position(goal.joint)
            for goal in self.servo.ik.goals
            if goal.kind in ("pose", "position") and goal.label not in self.keeps and self.rng.random() < 0.7
        }

    def judge(self):
        """Check that each difference keeps the limits of its ticks."""
        body, q, rows = self.servo.skeleton, np.array(self.q), np.array(self.rows)
        low, high = body.limits
        assert (q >= low - 1e-9).all()
        assert (q <= high + 1e-9).all()
        times = np.full(len(q) - 1, 1.0 / RATE)
        for row in range(len(body)):
            part = body.q_slice(row)
            if part.stop == part.start:
                continue
            found = []
            if part.stop - part.start == 1:
                found = [(differences(q[:, part], times), 1.0)]
            else:
                found = [(turn_differences(q[:, part.stop - 4 : part.stop], times), 1.0)]
                if part.stop - part.start == 7:
                    found.append((differences(q[:, part.start : part.start + 3], times), self.servo.ik.reach))
            for values, unit in found:
                for order in range(rows.shape[2]):
                    sizes = np.linalg.norm(values[order], axis=1)[-len(rows) :]
                    most = rows[:, row, order].copy()
                    for back in range(1, order + 1):  # a difference over ticks with several limits keeps the largest
                        most[back:] = np.maximum(most[back:], rows[:-back, row, order])
                    rounding = 8.0 * np.spacing(np.abs(q[:, part]).max()) * RATE ** (order + 1)
                    assert (sizes <= unit * most * (1 + 1e-9) + rounding).all(), (body.joint_names[row], order)


@pytest.mark.parametrize("jerk", [False, True])
@pytest.mark.parametrize("name", BODIES)
def test_limits_hold_whatever_changes(name, jerk):
    run = Run(name, 1, jerk)
    run.go(400)
    assert run.changes > 10
    run.judge()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 12))
@pytest.mark.parametrize("jerk", [False, True])
@pytest.mark.parametrize("name", BODIES)
def test_limits_hold_in_many_runs(name, jerk, seed):
    run = Run(name, seed, jerk)
    run.go(400)
    run.judge()


@pytest.mark.parametrize(("name", "seed"), [("arm", 115), ("cart", 112), ("slides", 101)])
def test_a_velocity_near_its_limit_is_kept_by_changes(name, seed):
    """A stop that is planned again after a change begins later than the known one, and would be too fast."""
    run = Run(name, seed, jerk=True)
    run.go(400)
    run.judge()


@pytest.mark.slow
@pytest.mark.compiled
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("jerk", [False, True])
def test_distances_and_speeds_of_tools_hold_whatever_changes(jerk, seed):
    """New limits apply once the body can stop with them clear of obstacles and with a slow tool."""
    run = Run("clear arm", seed, jerk, keeps=("clearance",), tool_speed={"tool": 0.5})
    run.servo.reset(ABOVE)
    run.q = [run.servo.step(dt=0).q] * 3
    run.go(300)
    run.judge()
    assert run.changes > 5
    places = np.array([sy.Pose(run.servo.skeleton, q).position("tool") for q in run.q])
    assert np.linalg.norm(np.diff(places, axis=0), axis=1).max() <= 0.5 / RATE * (1 + 1e-9)
    near = [command.solution.contacts for command in run.commands[::5]]
    assert min(found[0].distance for found in near if found) >= DISTANCE - run.servo.ik.tolerance[0]


@pytest.mark.compiled
def test_a_limited_ball_stops_inside_its_limits_with_a_limit_of_the_jerk():
    """In this run, a shoulder comes to the end of its swing at speed."""
    run = Run("humanoid", 330, True)
    run.go(200)
    run.judge()


@pytest.mark.compiled
def test_a_stop_keeps_accelerations_between_the_instants_at_which_it_is_judged():
    """In this run, the acceleration of a long stop has its peak there."""
    run = Run("clear arm", 128, True, tool_speed={"tool": 0.5})
    run.servo.reset(ABOVE)
    run.q = [run.servo.step(dt=0).q] * 3
    run.go(300)
    run.judge()


@pytest.mark.parametrize("seed", range(3))
def test_feet_stay_whatever_changes_below_them(seed):
    run = Run("humanoid", seed, False, keeps=("left_foot", "right_foot"))
    run.go(600)
    start = sy.Pose(run.servo.skeleton, run.q[0])
    off = [
        np.linalg.norm(command.pose.position(foot) - start.position(foot))
        for command in run.commands
        for foot in ("left_foot", "right_foot")
    ]
    assert max(off) <= run.servo.ik.tolerance[0] + 2e-4
    run.judge()


def test_two_hands_exchange_priorities():
    """The left hand leads, then the right one, which could not come so far before."""
    body = sy.bundled("humanoid")
    goals = [*FEET, sy.PositionGoal("left_hand", priority=1), sy.PositionGoal("right_hand", priority=2)]
    servo = sy.Servo(body, goals, rate=RATE, velocity=2.0, acceleration=10.0, root="free")
    servo.reset()
    targets = {"left_hand": (0.9, 1.2, 1.0), "right_hand": (-0.9, 1.2, 1.0)}
    before = [servo.step(targets) for _ in range(300)]
    assert before[-1].states["left_hand"] == "reached"
    assert before[-1].states["right_hand"] == "missed"
    servo.change(priorities={"left_hand": 2, "right_hand": 1})
    after = [servo.step(targets) for _ in range(500)]
    assert after[-1].states["right_hand"] == "reached"
    assert after[-1].states["left_hand"] != "reached"
    velocities = np.array([command.velocity for command in [*before, *after]])
    assert np.abs(np.diff(velocities, axis=0)).max() <= 10.0 / RATE * (1 + 1e-6)
    assert before[-1].states["right_hand"] == "missed"  # commands keep the goals of their tick
    assert before[-1].errors[3].position > 0.2


def test_goals_that_stay_keep_their_targets_and_twists():
    servo = sy.Servo(sy.bundled("arm7"), sy.PositionGoal("tool"), rate=RATE, velocity=1.5, acceleration=8.0)
    servo.reset({"joint2": 0.6, "joint4": -1.2, "joint6": 0.9})
    begin = servo.step(dt=0).pose.position("tool")
    for k in range(200):
        if k == 100:
            servo.change([sy.PositionGoal("tool"), sy.RestGoal()])
        command = servo.step({"tool": sy.Twist((0.0, 0.1, 0.0))})
    assert np.allclose(command.pose.position("tool") - begin, (0.0, 0.2, 0.0), atol=5e-3)
    servo.step({"tool": begin})
    servo.change(weights={"tool": 2.0})
    assert [servo.step() for _ in range(40)][-1].states["tool"] != "waiting"
    clutch = servo.clutch("tool")
    servo.change([sy.RestGoal(), sy.PositionGoal("tool")])
    clutch.engage()
    servo.step({"tool": (3.0, 0.0, 0.0)})
    clutch.release()
    assert servo.step().states["tool"] == "lost"


def test_another_world_is_avoided():
    arm = sy.with_shapes(sy.bundled("arm7"))
    clear = sy.ClearanceGoal(0.01, world=sy.World({"far": sy.Sphere(center=(5.0, 0.0, 0.0), radius=0.1)}))
    servo = sy.Servo(arm, [sy.PositionGoal("tool"), clear], rate=RATE, velocity=1.5, acceleration=8.0)
    servo.reset(sy.solve(arm, [sy.PositionGoal("tool", (0.3, 0.1, 0.5)), clear]).pose)
    for _ in range(100):  # at rest, clear of the wall
        servo.step({"tool": (0.35, 0.1, 0.5)})
    servo.change(world=sy.World({"wall": sy.Box(center=(0.65, 0, 0.5), size=(0.02, 2, 2))}))
    pressed = [servo.step({"tool": (0.8, 0.3, 0.6)}) for _ in range(300)]
    assert min(one.solution.contacts[0].distance for one in pressed[::10]) > 0.0099
    assert pressed[-1].pose.position("tool")[0] > 0.5


BAD = {
    "none": ({"goals": []}, "goals: expected one Goal or several"),
    "kind": ({"goals": ["tool"]}, "goals: expected a Goal"),
    "joint": ({"goals": sy.PositionGoal("tol")}, "no joint named 'tol'"),
    "name": ({"weights": {"tol": 1.0}}, "no goal named 'tol'. Did you mean 'tool'"),
    "weight": ({"weights": {"tool": -1.0}}, "weight: expected a finite number above 0"),
    "priority": ({"priorities": {"tool": 0.5}}, "priority: expected a whole number"),
    "world": ({"world": sy.World({})}, "expected a servo with a ClearanceGoal"),
    "limit": ({"weights": {"tool": 3.0}, "velocity": -1.0}, "velocity: expected above 0"),
}


@pytest.mark.parametrize("case", BAD)
def test_changes_that_cannot_be_made_change_nothing(case):
    change, message = BAD[case]
    one, other = (
        sy.Servo(sy.bundled("arm7"), sy.PositionGoal("tool"), rate=RATE, velocity=1.5, acceleration=8.0)
        for _ in range(2)
    )
    for servo in (one, other):
        servo.reset()
        servo.step((0.4, 0.1, 0.5))
    with pytest.raises(sy.SynoviaError, match=message):
        one.change(**change)
    assert one.ik.goals[0].weight == 1.0
    for _ in range(50):
        assert np.array_equal(one.step((0.4, 0.1, 0.5)).q, other.step((0.4, 0.1, 0.5)).q)
    with pytest.raises(AttributeError, match=r"servo\.change\(velocity"):
        _ = one.limit
