// The names that a scenario may use for numbers. Case, and prefixes such as IBV_WC_, do not matter.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/engine/faults/rule.h"

namespace rocemu::scenario {

struct Name {
  std::string_view text;
  uint32_t value;
};

/// A set of names of one kind of thing.
struct Names {
  std::string_view what;    // "completion status"
  std::string_view prefix;  // "IBV_WC_", which may be left out
  std::span<const Name> names;

  std::optional<uint32_t> find(std::string_view text) const;
  std::vector<std::string_view> texts() const;
  /// "" if no name has it.
  std::string_view text_of(uint32_t value) const;
};

extern const Names kPlaceNames;
extern const Names kWcStatusNames;
extern const Names kEventNames;
extern const Names kCmEventNames;
extern const Names kCmMessageNames;
extern const Names kRejectReasonNames;
extern const Names kWrOpcodeNames;
extern const Names kWcOpcodeNames;
extern const Names kNakNames;
extern const Names kFieldNames;
/// All errno values of Linux.
const Names& errno_names();
const Names& verb_names();

/// A BTH opcode ("RC_SEND_FIRST", "SEND_FIRST" of every transport) or group of them ("SEND").
struct Opcodes {
  engine::faults::Kinds kinds;
  std::bitset<4> answers;
};
std::optional<Opcodes> find_opcodes(std::string_view text);
/// Returns the opcodes of one transport: "RC", "UC", "UD", "XRC".
std::optional<engine::faults::Kinds> find_transport(std::string_view text);
std::vector<std::string> opcode_names();
/// The opcode of exactly one packet.
std::optional<uint8_t> find_opcode(std::string_view text);

/// Upper case, '-' and ' ' as '_'.
std::string normalized(std::string_view text);

/// The one of them that `text` was probably meant to be, or nothing.
std::string_view nearest(std::string_view text, std::span<const std::string_view> candidates);

}  // namespace rocemu::scenario
