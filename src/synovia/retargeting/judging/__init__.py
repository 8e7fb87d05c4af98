"""Judge clips: how close they are to their source, and whether they can be used."""

from synovia.retargeting.judging.causes import sides_of_clip
from synovia.retargeting.judging.judge import Judgement, aligned, judge

__all__ = ["Judgement", "aligned", "judge", "sides_of_clip"]
