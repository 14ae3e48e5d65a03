// Values of network files, beside those of scenarios: sizes, rates, and mappings with fixed keys.
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

  /// "16MiB": a number and B, KB, MB, GB, KiB, MiB or GiB.
  uint64_t size(const scenario::Node& node) const;
  /// "100Gbps" or "100Gbit/s": a number and bps, Kbps, Mbps, Gbps or Tbps. Not 0.
  uint64_t rate(const scenario::Node& node) const;
  /// As in scenarios, and 0.
  engine::Duration delay(const scenario::Node& node) const;

  struct Field {
    std::string_view key;
    std::function<void(const scenario::Node&)> read;
  };
  /// Reads the values of a mapping. A key without a field is a mistake.
  void fields(const scenario::Node& node, std::string_view what,
              std::initializer_list<Field> fields) const;

 private:
  const scenario::NodeReader& reader_;
};

}  // namespace rocemu::network
