// The bytes of librdmacm's commands: parses the structs of abi/ucma.h, and writes responses.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "emulator/abi/ucma.h"
#include "emulator/engine/events.h"
#include "emulator/engine/rdmacm/addresses/socket_addresses.h"

namespace rocemu::engine::cm {

/// Returns the command's struct; nothing if the command has fewer bytes than `least`.
template <class Struct>
std::optional<Struct> parse(const CmCommand& command, size_t least = sizeof(Struct)) {
  if (command.in.size() < least) return std::nullopt;
  Struct value{};
  std::memcpy(&value, command.in.data(), std::min(command.in.size(), sizeof value));
  return value;
}

/// Writes the struct as the response. If the program has less space, writes only the part that
/// fits.
template <class Struct>
void respond(const CmCommand& command, const Struct& value, std::vector<std::byte>& response) {
  const auto bytes = std::as_bytes(std::span(&value, 1));
  response.assign(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(std::min<size_t>(
                                                     bytes.size(), command.out_size)));
}

inline std::optional<SocketAddress> address_in(const abi::ucma::SockaddrIn6& bytes) {
  return parse_socket_address(bytes.bytes);
}

/// Returns the address in the first `size` bytes of a storage.
inline std::optional<SocketAddress> address_in(const abi::ucma::SockaddrStorage& bytes,
                                               size_t size) {
  std::optional<SocketAddress> address = parse_socket_address(bytes.bytes);
  return address && address->size() == size ? address : std::nullopt;
}

}  // namespace rocemu::engine::cm
