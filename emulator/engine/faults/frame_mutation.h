// Changes the bytes of frames, for faults.
#pragma once

#include <cstdint>

#include "emulator/engine/base/frame.h"
#include "emulator/engine/base/random.h"
#include "emulator/engine/faults/rule.h"
#include "wire/packet.h"

namespace rocemu::engine::faults {

/// Changes fields of the packet's headers.
void change(wire::Packet& packet, const std::vector<FieldChange>& changes);

/// Returns the packet as a frame with a correct ICRC; an empty Frame if it is too long.
Frame frame_of(FramePool& frames, const wire::Packet& packet);

/// Returns a copy of the frame in which bits are inverted and the ICRC is no longer correct.
Frame corrupted(FramePool& frames, const Frame& frame, const Corruption& corruption,
                Random& random);

}  // namespace rocemu::engine::faults
