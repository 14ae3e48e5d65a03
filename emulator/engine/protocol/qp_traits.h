// The packets of each QP type on the wire
#pragma once

#include "emulator/abi/verbs_values.h"
#include "wire/opcode.h"

namespace rocemu::engine {

wire::Transport transport_of(abi::QpType type);

/// Returns whether requests are acknowledged and repeated: RC and XRC.
bool is_reliable(abi::QpType type);

/// Returns the opcode for the operation of an RC opcode in another transport that has it.
constexpr wire::Opcode in_transport(wire::Transport transport, wire::Opcode rc) {
  return static_cast<wire::Opcode>(static_cast<uint8_t>(rc) | static_cast<uint8_t>(transport));
}

}  // namespace rocemu::engine
