// The transport of each QP type on the wire
#pragma once

#include "emulator/abi/verbs_values.h"
#include "wire/opcode.h"

namespace rocemu::engine {

wire::Transport transport_of(abi::QpType type);

/// Returns whether requests of this QP type (RC or XRC) are acknowledged and retransmitted.
bool is_reliable(abi::QpType type);

/// Returns the opcode that means in another transport what `rc` means in RC. The transport must
/// have that operation.
constexpr wire::Opcode in_transport(wire::Transport transport, wire::Opcode rc) {
  return static_cast<wire::Opcode>(static_cast<uint8_t>(rc) | static_cast<uint8_t>(transport));
}

}  // namespace rocemu::engine
