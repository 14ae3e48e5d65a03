// The names that a scenario may use for numbers. They may be in upper or lower case, and with or
// without prefixes such as IBV_WC_.
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

/// A set of names for values of one kind
struct Names {
  std::string_view what;    // "completion status"
  std::string_view prefix;  // "IBV_WC_", which may be left out
  std::span<const Name> names;

  std::optional<uint32_t> find(std::string_view text) const;
  std::vector<std::string_view> texts() const;
  /// Returns the name of the value; "" if it has none.
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
/// Returns all errno values of Linux.
const Names& errno_names();
const Names& verb_names();

/// A BTH opcode ("RC_SEND_FIRST", or "SEND_FIRST" for every transport) or a group of them ("SEND")
struct Opcodes {
  engine::faults::Kinds kinds;
  std::bitset<4> answers;
};
std::optional<Opcodes> find_opcodes(std::string_view text);
/// Returns the opcodes of one transport: "RC", "UC", "UD", "XRC".
std::optional<engine::faults::Kinds> find_transport(std::string_view text);
std::vector<std::string> opcode_names();
/// Returns the opcode with that name, if the name means exactly one.
std::optional<uint8_t> find_opcode(std::string_view text);

/// Returns the text in upper case, with '_' for '-' and ' '.
std::string normalized(std::string_view text);

/// Returns the candidate that `text` was probably meant to be, or nothing.
std::string_view nearest(std::string_view text, std::span<const std::string_view> candidates);

}  // namespace rocemu::scenario
