// Reads those values of network files that do not occur in scenarios: sizes, rates, and mappings
// with fixed keys.
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

  /// Returns a size such as "16MiB" in bytes. The text is a number and B, KB, MB, GB, KiB, MiB or
  /// GiB.
  uint64_t size(const scenario::Node& node) const;
  /// Returns a rate such as "100Gbps" or "100Gbit/s" in bits per second. The text is a number other
  /// than 0 and bps, Kbps, Mbps, Gbps or Tbps.
  uint64_t rate(const scenario::Node& node) const;
  /// Returns a time that is written as in scenarios. It may be 0.
  engine::Duration delay(const scenario::Node& node) const;

  struct Field {
    std::string_view key;
    std::function<void(const scenario::Node&)> read;
  };
  /// Reads the values of a mapping into the fields. Reports an error for a key that has no field.
  void fields(const scenario::Node& node, std::string_view what,
              std::initializer_list<Field> fields) const;

 private:
  const scenario::NodeReader& reader_;
};

}  // namespace rocemu::network
