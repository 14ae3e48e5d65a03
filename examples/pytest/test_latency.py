"""Asserts how long a protocol takes on a network of 100 Gbit/s. The time is virtual, so it is equal in each run, on
any machine, however busy. If the protocol needs one more round trip, the test fails."""
import pingpong
import pytest

# A message of 4,096 bytes is four frames, each of 1,106 bytes on the wire with FCS, preamble and gap. They cross two
# links of 500 ns each. The switch between the links forwards a frame when it has received all of it.
FRAME_NS = 1106 * 8 / 100
ONE_WAY_NS = 4 * FRAME_NS + 500 + FRAME_NS + 500
POLLS_NS = 2 * 50  # a poll takes 50 ns, so each of the two sides may see a message up to 50 ns late


def duration_of(fabric, round_trips):
    """Returns the time from the first frame of a message to the last one."""
    assert pingpong.run(fabric, round_trips) == (0, 0)
    times = [frame["t"] for frame in fabric.events("frame") if "SEND" in frame["opcode"]]
    assert len(times) == 2 * 4 * round_trips
    return max(times) - min(times)


@pytest.mark.rocemu(clock="lockstep", options=["--fabric", "star-16"])
@pytest.mark.parametrize("round_trips, is_in_time", [(10, True), (11, False)])
def test_takes_ten_round_trips(fabric, round_trips, is_in_time):
    # The last of the 20 messages starts after 19 have arrived.
    limit = 19 * (ONE_WAY_NS + POLLS_NS) + 4 * FRAME_NS
    assert (duration_of(fabric, round_trips) <= limit) == is_in_time
