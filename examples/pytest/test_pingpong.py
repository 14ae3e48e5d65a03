"""Runs ibv_rc_pingpong with faults. Each test has a separate NIC, so that `pytest -n 4` works, too."""
import pingpong
import pytest


@pytest.mark.rocemu(clock="lockstep", scenario="lost-send")
def test_survives_a_lost_message(fabric):
    assert pingpong.run(fabric)[0] == 0
    assert fabric.counters("rocemu0")["retransmitted_frames"] > 0


@pytest.mark.rocemu(clock="lockstep")
def test_fails_when_its_memory_is_refused(fabric):
    fabric.load("rules:\n- {on: verb, verb: reg_mr, device: rocemu1, do: {errno: ENOMEM}}\n")
    assert pingpong.run(fabric)[0] != 0
    assert fabric.rules()[0].fired == 1


@pytest.mark.rocemu(clock="lockstep")
def test_sends_and_acknowledges(fabric):
    assert pingpong.run(fabric)[0] == 0
    frames = fabric.events("frame")
    assert any(frame["opcode"] == "RC Acknowledge" for frame in frames)
