"""Shows which files a failed test leaves in rocemu-failed: `python3 -m pytest
fails_on_purpose.py`"""
import pingpong
import pytest


@pytest.mark.rocemu(clock="lockstep", scenario="retry-exceeded")
def test_loses_everything(fabric):
    assert pingpong.run(fabric)[0] == 0
