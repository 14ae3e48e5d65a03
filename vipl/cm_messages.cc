#include "vipl/cm_messages.h"

#include <algorithm>

#include "vipl/net_address.h"

namespace rocemu::vipl {
namespace {

// The bytes of a message: 0 'V', 1 'I', 2 version, 3 flags, 4 reliability, 5 length of the other
// side's discriminator, 6 length of the own discriminator, 7-10 MaxTransferSize (big endian),
// 11 the discriminators.
constexpr char kMagic[] = {'V', 'I', 1};
constexpr size_t kFixed = 11;
static_assert(kFixed + 2 * kMaxDiscriminator <= 56);

constexpr uint8_t kRdmaWrite = 1;
constexpr uint8_t kRdmaRead = 2;
constexpr uint8_t kPeer = 4;

bool is_ours(const std::string& bytes) {
  return bytes.size() > sizeof kMagic && std::equal(kMagic, kMagic + sizeof kMagic, bytes.begin());
}

}  // namespace

std::string to_bytes(const Hello& hello) {
  std::string bytes(kMagic, sizeof kMagic);
  const int flags = (hello.attributes.EnableRdmaWrite ? kRdmaWrite : 0) |
                    (hello.attributes.EnableRdmaRead ? kRdmaRead : 0) | (hello.of_peer ? kPeer : 0);
  bytes += static_cast<char>(flags);
  bytes += static_cast<char>(hello.attributes.ReliabilityLevel);
  bytes += static_cast<char>(hello.discriminator.size());
  bytes += static_cast<char>(hello.own_discriminator.size());
  for (const int shift : {24, 16, 8, 0}) {
    bytes += static_cast<char>(hello.attributes.MaxTransferSize >> shift & 0xff);
  }
  return bytes + hello.discriminator + hello.own_discriminator;
}

std::optional<Hello> hello_of(const std::string& bytes) {
  if (!is_ours(bytes) || bytes.size() < kFixed) return std::nullopt;
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(bytes[i]); };
  const size_t length = byte(5);
  const size_t own_length = byte(6);
  // The message may be longer, because it is padded.
  if (bytes.size() < kFixed + length + own_length) return std::nullopt;
  Hello hello;
  hello.attributes.EnableRdmaWrite = (byte(3) & kRdmaWrite) != 0;
  hello.attributes.EnableRdmaRead = (byte(3) & kRdmaRead) != 0;
  hello.of_peer = (byte(3) & kPeer) != 0;
  hello.attributes.ReliabilityLevel = byte(4);
  for (size_t i = 7; i < kFixed; ++i) {
    hello.attributes.MaxTransferSize = hello.attributes.MaxTransferSize << 8 | byte(i);
  }
  hello.discriminator = bytes.substr(kFixed, length);
  hello.own_discriminator = bytes.substr(kFixed + length, own_length);
  return hello;
}

std::string to_bytes(Refusal refusal) {
  return std::string(kMagic, sizeof kMagic) + static_cast<char>(refusal);
}

std::optional<Refusal> refusal_of(const std::string& bytes) {
  if (!is_ours(bytes)) return std::nullopt;
  return static_cast<Refusal>(bytes[sizeof kMagic]);
}

}  // namespace rocemu::vipl
