"""Diagnosis: why a goal is missed."""
