"""Retarget a recorded hand of 21 points to any hand."""

from synovia.retargeting.hands.live import LiveHand
from synovia.retargeting.hands.retarget_hand import HandPinch, RetargetedHand, retarget_hand

__all__ = ["HandPinch", "LiveHand", "RetargetedHand", "retarget_hand"]
