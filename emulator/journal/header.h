// The beginning of a journal: the program that recorded it and the configuration of the engine. It
// is JSON, so that `head` shows it.
#pragma once

#include <cstdint>
#include <string>

#include "emulator/engine/config.h"
#include "emulator/journal/bytes.h"

namespace rocemu::journal {

/// The first bytes of the file, followed by the format's version as a u32.
inline constexpr char kMagic[8] = {'r', 'o', 'c', 'e', 'm', 'u', 'J', '\n'};
/// Version of the records' layout. Each change increments it, so that other journals are refused
/// and not misread.
inline constexpr uint32_t kFormatVersion = 8;

struct Header {
  std::string rocemu_version = ROCEMU_VERSION;
  /// "real" or "lockstep"; "virtual" in recordings of builds that had such a mode, which are read
  /// and compared like those of the real clock.
  std::string clock = "real";
  /// The wall-clock time of Instant 0, in nanoseconds since 1970.
  int64_t wall_start_ns = 0;
  engine::FabricConfig fabric;
};

std::string to_json(const Header& header);

/// Parses the header. Throws std::runtime_error with the name of the wrong field.
Header parse_header(std::string_view json);

}  // namespace rocemu::journal
