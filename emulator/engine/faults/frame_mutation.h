// Changes the bytes of a frame for faults.
#pragma once

#include <cstdint>

#include "emulator/engine/base/frame.h"
#include "emulator/engine/base/random.h"
#include "emulator/engine/faults/rule.h"
#include "wire/packet.h"

namespace rocemu::engine::faults {

/// Changes the packet as `changes` says.
void change(wire::Packet& packet, const std::vector<FieldChange>& changes);

/// Returns the packet as a frame, with a correct ICRC; nothing if it is too long for a frame.
Frame frame_of(FramePool& frames, const wire::Packet& packet);

/// Returns the frame with inverted bits, and an ICRC that is no longer correct.
Frame corrupted(FramePool& frames, const Frame& frame, const Corruption& corruption,
                Random& random);

}  // namespace rocemu::engine::faults
