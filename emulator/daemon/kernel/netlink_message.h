// Writes and parses netlink messages as bytes. A message to parse can come from any process.
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

/// A message under construction: a header and attributes
class NetlinkMessage {
 public:
  /// Starts a reply to `request`, with the same sequence number and port.
  NetlinkMessage(const nlmsghdr& request, uint16_t type, uint16_t flags);

  void add_bytes(std::span<const std::byte> bytes);  // not an attribute; pads to 4 bytes
  void add_attribute(uint16_t attribute, std::span<const std::byte> value);
  void add_u8(uint16_t attribute, uint8_t value);
  void add_u32(uint16_t attribute, uint32_t value);
  void add_u64(uint16_t attribute, uint64_t value);
  void add_text(uint16_t attribute, std::string_view text);  // with a terminating zero

  /// A nested attribute. All attributes that are added while this object exists are nested in it.
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

/// The attributes of a request. If a type occurs twice, the last attribute is used.
class NetlinkAttributes {
 public:
  /// Parses the attributes. Returns nothing if the lengths in `bytes` are inconsistent.
  static std::optional<NetlinkAttributes> parse(std::span<const std::byte> bytes);

  bool has(uint16_t attribute) const { return values_.contains(attribute); }
  /// Returns the value of an attribute; nothing if there is none of that type, or if its size is
  /// wrong.
  std::optional<uint32_t> u32(uint16_t attribute) const;
  std::optional<std::string_view> text(uint16_t attribute) const;

 private:
  std::map<uint16_t, std::span<const std::byte>> values_;
};

}  // namespace rocemu::daemon
