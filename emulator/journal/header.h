// The header of a journal: the version of rocemu that recorded it, and the configuration of the
// engine. It is JSON, so that `head` shows it.
#pragma once

#include <cstdint>
#include <string>

#include "emulator/engine/config.h"
#include "emulator/journal/bytes.h"

namespace rocemu::journal {

/// The first bytes of the file, followed by the format's version as a u32.
inline constexpr char kMagic[8] = {'r', 'o', 'c', 'e', 'm', 'u', 'J', '\n'};
/// The version of the records' layout. Each change of the layout increments it, so that journals
/// with another layout are refused and not misread.
inline constexpr uint32_t kFormatVersion = 8;

struct Header {
  std::string rocemu_version = ROCEMU_VERSION;
  /// "real" or "lockstep". Recordings of older builds may have "virtual", which is read and
  /// compared like "real".
  std::string clock = "real";
  /// The wall-clock time of Instant 0, in nanoseconds since 1970.
  int64_t wall_start_ns = 0;
  engine::FabricConfig fabric;
};

std::string to_json(const Header& header);

/// Parses the header. Throws std::runtime_error, which names the first invalid field.
Header parse_header(std::string_view json);

}  // namespace rocemu::journal
