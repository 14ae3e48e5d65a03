// Netlink messages as bytes: writing them, and reading those that anybody may have written.
// <linux/netlink.h> has the layouts.
#pragma once

#include <linux/netlink.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace rocemu::daemon {

using Bytes = std::vector<std::byte>;

/// One message in the making: a header and attributes.
class NetlinkMessage {
 public:
  /// Answers `request`: same sequence, to the same port.
  NetlinkMessage(const nlmsghdr& request, uint16_t type, uint16_t flags);

  void add_bytes(std::span<const std::byte> bytes);  // not an attribute; pads to 4 bytes
  void add_attribute(uint16_t attribute, std::span<const std::byte> value);
  void add_u8(uint16_t attribute, uint8_t value);
  void add_u32(uint16_t attribute, uint32_t value);
  void add_u64(uint16_t attribute, uint64_t value);
  void add_text(uint16_t attribute, std::string_view text);  // with a terminating zero

  /// Attributes added until the end of its life are in the nest.
  class Nest {
   public:
    Nest(NetlinkMessage& message, uint16_t attribute);
    ~Nest();
    Nest(const Nest&) = delete;
    Nest& operator=(const Nest&) = delete;

   private:
    NetlinkMessage& message_;
    size_t start_;
  };

  Bytes take();

 private:
  Bytes bytes_;
};

/// The attributes of a request. Of two of one type the last counts, unknown ones are ignored.
class NetlinkAttributes {
 public:
  /// Nothing if the lengths in `bytes` do not add up.
  static std::optional<NetlinkAttributes> parse(std::span<const std::byte> bytes);

  bool has(uint16_t attribute) const { return values_.contains(attribute); }
  /// Nothing if there is none of that type, or it is no such value.
  std::optional<uint32_t> u32(uint16_t attribute) const;
  std::optional<std::string_view> text(uint16_t attribute) const;

 private:
  std::map<uint16_t, std::span<const std::byte>> values_;
};

}  // namespace rocemu::daemon
