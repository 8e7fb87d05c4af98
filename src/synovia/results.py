"""Types of results, for annotations and ``isinstance``."""

from synovia.clips import EditChange as EditChange
from synovia.clips import EditClearance as EditClearance
from synovia.clips import Edited as Edited
from synovia.clips import Fitted as Fitted
from synovia.clips import FootLocked as FootLocked
from synovia.ik import Branches as Branches
from synovia.ik import Conflict as Conflict
from synovia.ik import GoalError as GoalError
from synovia.ik import Reason as Reason
from synovia.ik import Redundancy as Redundancy
from synovia.ik import Relief as Relief
from synovia.ik import Solutions as Solutions
from synovia.ik import Span as Span
from synovia.ik.derivative import Derivative as Derivative
from synovia.ik.proofs import Proof as Proof
from synovia.ik.proofs import SharedProof as SharedProof
from synovia.ik.starts import LearnedStarts as LearnedStarts
from synovia.model.clip_tools.additive import Additive as Additive
from synovia.model.finding import Finding as Finding
from synovia.model.motion import InPlace as InPlace
from synovia.model.shapes.over_time import TooNear as TooNear
from synovia.retargeting import Judgement as Judgement
from synovia.retargeting import Retargeted as Retargeted
from synovia.text import Report as Report
from synovia.tracking import Tracked as Tracked
from synovia.viewer import View as View
