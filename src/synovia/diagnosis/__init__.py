"""Explain missed goals: reasons found by solving variations, and sentences."""

from synovia.diagnosis.explain import explain, unit_hint
from synovia.diagnosis.reasons import find_reasons, reasons_as_json

__all__ = ["explain", "find_reasons", "reasons_as_json", "unit_hint"]
