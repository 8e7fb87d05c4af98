"""Hands: fingers, recorded landmarks, and results of retargeting."""

import synovia.lazy as _lazy
from synovia.model.anatomy.hands.hand import Finger as Finger
from synovia.model.anatomy.hands.hand import Hand as Hand
from synovia.model.anatomy.hands.pointed import hand_landmarks as hand_landmarks
from synovia.retargeting.hands import HandPinch as HandPinch
from synovia.retargeting.hands import LiveHand as LiveHand
from synovia.retargeting.hands import RetargetedHand as RetargetedHand

__getattr__ = _lazy.renamed(__name__)  # for names that have changed
