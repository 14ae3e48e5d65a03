// What faults do to the bytes of a frame.
#pragma once

#include <cstdint>

#include "emulator/engine/base/frame.h"
#include "emulator/engine/base/random.h"
#include "emulator/engine/faults/rule.h"
#include "wire/packet.h"

namespace rocemu::engine::faults {

/// Of the packet, and of what `changes` say.
void change(wire::Packet& packet, const std::vector<FieldChange>& changes);

/// The packet as a frame, with an ICRC that is right; nothing if it is too long for one.
Frame frame_of(FramePool& frames, const wire::Packet& packet);

/// The frame with bits turned over, and an ICRC that is not right any more.
Frame corrupted(FramePool& frames, const Frame& frame, const Corruption& corruption,
                Random& random);

}  // namespace rocemu::engine::faults
