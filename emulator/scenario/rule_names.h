// The names that a scenario may use instead of numbers. Upper or lower case does not matter, and
// prefixes such as IBV_WC_ may be omitted.
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

/// The names of all values of one kind
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
/// Returns the verb with this name, as verb_names() has it; empty if there is none. Upper or lower
/// case and the prefix "ibv_" do not matter.
std::string verb_named(std::string_view text);

/// The opcodes that a name selects: a BTH opcode ("RC_SEND_FIRST", or "SEND_FIRST" for every
/// transport), or a group of opcodes ("SEND")
struct Opcodes {
  engine::faults::Kinds kinds;
  std::bitset<4> answers;
};
std::optional<Opcodes> find_opcodes(std::string_view text);
/// Returns the opcodes of the transport "RC", "UC", "UD" or "XRC".
std::optional<engine::faults::Kinds> find_transport(std::string_view text);
std::vector<std::string> opcode_names();
/// Returns the opcode with this name; nothing if the name selects none or several.
std::optional<uint8_t> find_opcode(std::string_view text);

/// Returns the text in upper case, with '-' and ' ' replaced by '_'.
std::string normalized(std::string_view text);

/// Returns the candidate that `text` was probably meant to be; an empty text if none is similar.
std::string_view nearest(std::string_view text, std::span<const std::string_view> candidates);

}  // namespace rocemu::scenario
