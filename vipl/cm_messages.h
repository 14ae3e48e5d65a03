// The messages of libvipl in rdma_cm's private data: 56 bytes in a request, 196 in a reply.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "vipl/vipl.h"

namespace rocemu::vipl {

/// The properties of a VI that each side of a connection sends to the other
struct Hello {
  VIP_VI_ATTRIBUTES attributes{};
  bool of_peer = false;       // VipConnectPeerRequest
  std::string discriminator;  // of the other side; empty in a reply
  std::string own_discriminator;
};

enum class Refusal : uint8_t { kNoMatch = 1, kByConsumer = 2, kReliability = 3, kMtu = 4 };

std::string to_bytes(const Hello& hello);
/// Parses the bytes. Returns nothing if they are not from this library.
std::optional<Hello> hello_of(const std::string& bytes);

std::string to_bytes(Refusal refusal);
std::optional<Refusal> refusal_of(const std::string& bytes);

}  // namespace rocemu::vipl
