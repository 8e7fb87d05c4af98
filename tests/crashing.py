"""Tests for test_test_command.py, which pytest collects only by the name of this file: one ends its worker."""

import os
import signal
import time

import pytest


@pytest.mark.xdist_group("crash")
def test_before():
    """Pass: a crash leaves a group of which some is done."""


@pytest.mark.xdist_group("crash")
def test_that_is_killed():
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.xdist_group("crash")
def test_after():
    """Never run."""


@pytest.mark.xdist_group("others")
@pytest.mark.parametrize("number", range(3))
def test_that_takes_long(number):
    time.sleep(600)
