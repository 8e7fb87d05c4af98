"""Explain missed goals: reasons found by solving variations, and sentences."""

from synovia.diagnosis.conflict import find_conflict
from synovia.diagnosis.explain import explain
from synovia.diagnosis.reasons import find_reasons, reasons_as_json
from synovia.diagnosis.units import unit_hint

__all__ = ["explain", "find_conflict", "find_reasons", "reasons_as_json", "unit_hint"]
