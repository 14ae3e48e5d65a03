// Writes and reads values that occur in both the inputs and the outputs of a step.
#pragma once

#include <cstdint>
#include <variant>

#include "emulator/engine/events.h"
#include "emulator/journal/bytes.h"

namespace rocemu::journal {

/// Reads a bool. Fails for any byte except 0 and 1, since the bool's value would be undefined.
inline bool take_bool(Taker& from) {
  const auto value = from.take<uint8_t>();
  if (value > 1) from.fail();
  return value == 1;
}

inline void put_owner(Appender& to, const engine::Owner& owner) {
  to.put(static_cast<uint8_t>(owner.index()));
  std::visit([&](auto id) { to.put(id); }, owner);
}

inline engine::Owner take_owner(Taker& from) {
  const auto index = from.take<uint8_t>();
  if (index > 1) from.fail();
  if (index == 0) return from.take<engine::ClientId>();
  return from.take<engine::CmChannelId>();
}

}  // namespace rocemu::journal
