#include "emulator/daemon/kernel/netlink_message.h"

#include <cstring>
#include <span>
#include <utility>

namespace rocemu::daemon {
namespace {

constexpr uint16_t kPadding = 0;  // the type of an attribute without a meaning

size_t aligned(size_t size) {
  return (size + NLA_ALIGNTO - 1) / NLA_ALIGNTO * NLA_ALIGNTO;
}

template <class Header>
std::span<const std::byte> bytes_of(const Header& header) {
  return std::as_bytes(std::span(&header, 1));
}

}  // namespace

NetlinkMessage::NetlinkMessage(const nlmsghdr& request, uint16_t type, uint16_t flags) {
  nlmsghdr header{};
  header.nlmsg_type = type;
  header.nlmsg_flags = flags;
  header.nlmsg_seq = request.nlmsg_seq;
  header.nlmsg_pid = request.nlmsg_pid;
  add_bytes(bytes_of(header));
}

void NetlinkMessage::add_bytes(std::span<const std::byte> bytes) {
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  bytes_.resize(aligned(bytes_.size()));
}

void NetlinkMessage::add_attribute(uint16_t attribute, std::span<const std::byte> value) {
  nlattr header{};
  header.nla_type = attribute;
  header.nla_len = static_cast<uint16_t>(sizeof header + value.size());
  add_bytes(bytes_of(header));
  add_bytes(value);
}

void NetlinkMessage::add_u8(uint16_t attribute, uint8_t value) {
  add_attribute(attribute, bytes_of(value));
}

void NetlinkMessage::add_u32(uint16_t attribute, uint32_t value) {
  add_attribute(attribute, bytes_of(value));
}

void NetlinkMessage::add_u64(uint16_t attribute, uint64_t value) {
  // Readers may access the value in place, so it must be aligned.
  if ((bytes_.size() + sizeof(nlattr)) % alignof(uint64_t) != 0) add_attribute(kPadding, {});
  add_attribute(attribute, bytes_of(value));
}

void NetlinkMessage::add_text(uint16_t attribute, std::string_view text) {
  const auto letters = std::as_bytes(std::span(text));
  Bytes terminated(letters.begin(), letters.end());
  terminated.push_back(std::byte{0});
  add_attribute(attribute, terminated);
}

NetlinkMessage::Nest::Nest(NetlinkMessage& message, uint16_t attribute)
    : message_(message), start_(message.bytes_.size()) {
  message_.add_attribute(attribute, {});
}

NetlinkMessage::Nest::~Nest() {
  const auto length = static_cast<uint16_t>(message_.bytes_.size() - start_);
  std::memcpy(&message_.bytes_[start_ + offsetof(nlattr, nla_len)], &length, sizeof length);
}

Bytes NetlinkMessage::take() {
  const auto length = static_cast<uint32_t>(bytes_.size());
  std::memcpy(&bytes_[offsetof(nlmsghdr, nlmsg_len)], &length, sizeof length);
  return std::move(bytes_);
}

std::optional<NetlinkAttributes> NetlinkAttributes::parse(std::span<const std::byte> bytes) {
  NetlinkAttributes attributes;
  while (!bytes.empty()) {
    nlattr header;
    if (bytes.size() < sizeof header) return std::nullopt;
    std::memcpy(&header, bytes.data(), sizeof header);
    if (header.nla_len < sizeof header || header.nla_len > bytes.size()) return std::nullopt;
    const uint16_t type = header.nla_type & static_cast<uint16_t>(NLA_TYPE_MASK);
    attributes.values_[type] = bytes.subspan(sizeof header, header.nla_len - sizeof header);
    bytes = bytes.subspan(std::min(aligned(header.nla_len), bytes.size()));
  }
  return attributes;
}

std::optional<uint32_t> NetlinkAttributes::u32(uint16_t attribute) const {
  const auto found = values_.find(attribute);
  uint32_t value;
  if (found == values_.end() || found->second.size() != sizeof value) return std::nullopt;
  std::memcpy(&value, found->second.data(), sizeof value);
  return value;
}

std::optional<std::string_view> NetlinkAttributes::text(uint16_t attribute) const {
  const auto found = values_.find(attribute);
  if (found == values_.end() || found->second.empty()) return std::nullopt;
  const std::string_view text(reinterpret_cast<const char*>(found->second.data()),
                              found->second.size());
  if (text.find('\0') != text.size() - 1) return std::nullopt;
  return text.substr(0, text.size() - 1);
}

}  // namespace rocemu::daemon
