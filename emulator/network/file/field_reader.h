// Reads values of network files that scenarios do not have: sizes, rates, and mappings with fixed
// keys.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string_view>

#include "emulator/scenario/node_reader.h"

namespace rocemu::network {

class FieldReader {
 public:
  explicit FieldReader(const scenario::NodeReader& reader) : reader_(reader) {}

  const scenario::NodeReader& nodes() const { return reader_; }

  /// Returns a size such as "16MiB": a number and B, KB, MB, GB, KiB, MiB or GiB.
  uint64_t size(const scenario::Node& node) const;
  /// Returns a rate such as "100Gbps" or "100Gbit/s": a number, not 0, and bps, Kbps, Mbps, Gbps or
  /// Tbps.
  uint64_t rate(const scenario::Node& node) const;
  /// Returns a time in the notation of scenarios; 0 is allowed.
  engine::Duration delay(const scenario::Node& node) const;

  struct Field {
    std::string_view key;
    std::function<void(const scenario::Node&)> read;
  };
  /// Reads the values of a mapping. Reports an error for a key that has no field.
  void fields(const scenario::Node& node, std::string_view what,
              std::initializer_list<Field> fields) const;

 private:
  const scenario::NodeReader& reader_;
};

}  // namespace rocemu::network
