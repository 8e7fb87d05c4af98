"""Processor steps of LeRobot, registered by its registry. Importing this module needs LeRobot."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final

from synovia.errors import InputError, MissingExtraError
from synovia.lerobot.body import BodyToJoints

try:
    _processor: Any = import_module("lerobot.processor")
    _types: Any = import_module("lerobot.configs.types")
except ImportError as error:
    raise MissingExtraError("processor steps of LeRobot need LeRobot", hint="run pip install lerobot") from error

BODY: Final = "body"  # key of the tracked body in an action
TIME: Final = "body.time"  # key of the time stamp of the body


@_processor.ProcessorStepRegistry.register("synovia_retarget_body_to_joints")
@dataclass
class RetargetBodyToJoints(_processor.RobotActionProcessorStep):
    """Retargets a tracked person to the joints of a robot, within limits of velocity and acceleration.

    The action has the person as ``"body"``: joint values (nq,) or positions (n, 3), as for ``LiveRetarget.step``. It
    may have a time stamp as ``"body.time"``, seconds. An action without ``"body"`` has no sample; after a timeout, the
    robot stops. Both keys are replaced by ``"NAME.pos"`` for each motor; other keys, such as a gripper's, are kept.

    The observation has the current joints, ``"NAME.pos"``.

    Args:
        joints: Computes the joint values of the robot.
    """

    joints: BodyToJoints

    def action(self, action: dict[str, Any]) -> dict[str, Any]:
        """Run one tick, and return the action with the values of the motors.

        Raises:
            InputError: If the observation lacks a motor, or the body cannot be used.
        """
        observation: dict[str, Any] = self.transition.get(_processor.TransitionKey.OBSERVATION) or {}
        names = self.joints.motor_names
        missing = [f"{name}.pos" for name in names if f"{name}.pos" not in observation]
        if missing:
            raise InputError("observation", value=sorted(observation), expected=f"an entry {missing[0]!r}")
        current = [float(observation[f"{name}.pos"]) for name in names]
        values = self.joints.step(current, action.pop(BODY, None), action.pop(TIME, None))
        action.update({f"{name}.pos": value for name, value in zip(names, values.tolist(), strict=True)})
        return action

    def reset(self) -> None:
        """Restart, as before a new episode."""
        self.joints.reset()

    def transform_features(self, features: dict[Any, dict[str, Any]]) -> dict[Any, dict[str, Any]]:
        """Return the features with the motors in place of the body."""
        actions = features[_types.PipelineFeatureType.ACTION]
        for key in (BODY, TIME):
            actions.pop(key, None)
        for name in self.joints.motor_names:
            actions[f"{name}.pos"] = _types.PolicyFeature(type=_types.FeatureType.ACTION, shape=(1,))
        return features
