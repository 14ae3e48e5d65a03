// Result<T, E>, a small std::expected (which is C++23), and ParseError, the reasons why bytes are
// refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include "wire/eth_headers.h"
#include "wire/require.h"

namespace rocemu::wire {

// The reasons are one flat list, so that a reason includes the place of the error, and an array can
// have a counter for each reason. The truncation errors name the first header (or trailer) that is
// incomplete.
enum class ParseError : uint8_t {
  kTruncatedEthernet,
  kTruncatedIpv4,
  kTruncatedIpv6,
  kTruncatedIpPayload,  // the IP header announces more bytes than there are
  kTruncatedUdp,
  kTruncatedBth,
#define ROCEMU_TRUNCATED(header, Type, member, name) kTruncated##Type,
  ROCEMU_EXTENDED_HEADERS(ROCEMU_TRUNCATED)
#undef ROCEMU_TRUNCATED
      kTruncatedIcrc,
  kNotIp,          // an Ethernet type, or a version nibble, other than those of IPv4 and IPv6
  kBadIpHeader,    // a field that contradicts another field or the RFC
  kBadIpChecksum,  // IPv4
  kFragmented,     // RoCEv2 datagrams are never fragmented
  kNotUdp,
  kBadLength,            // the UDP length contradicts the IP header's
  kNotRoce,              // UDP destination port other than 4791
  kBadTransportVersion,  // BTH TVer other than 0
  kUnknownOpcode,
  kBadPad,             // longer than its packet, or the payload does not end on 4 bytes
  kUnexpectedPayload,  // bytes between the last header and the ICRC of a packet without payload
  kBadIcrc,            // never from a parser: for callers that also call check_icrc
};
inline constexpr size_t kParseErrorCount = static_cast<size_t>(ParseError::kBadIcrc) + 1;

// Returns the name of the error, such as "truncated_reth" or "not_udp".
std::string_view name(ParseError error);

constexpr bool is_truncation(ParseError error) {
  return error <= ParseError::kTruncatedIcrc;
}

// Either a T or the reason why there is none. Accessing the one that is absent aborts.
template <class T, class E = ParseError>
class [[nodiscard]] Result {
  static_assert(!std::is_same_v<T, E>);

 public:
  using value_type = T;
  using error_type = E;

  constexpr Result(const T& value) : state_(std::in_place_index<0>, value) {}
  constexpr Result(T&& value) : state_(std::in_place_index<0>, std::move(value)) {}
  constexpr Result(E error) : state_(std::in_place_index<1>, std::move(error)) {}

  constexpr explicit operator bool() const { return state_.index() == 0; }
  constexpr bool has_value() const { return state_.index() == 0; }

  constexpr T& operator*() & { return checked<0>(); }
  constexpr const T& operator*() const& { return checked<0>(); }
  constexpr T&& operator*() && { return std::move(checked<0>()); }
  constexpr T* operator->() { return &checked<0>(); }
  constexpr const T* operator->() const { return &checked<0>(); }
  constexpr const E& error() const { return checked<1>(); }

 private:
  template <size_t Index>
  constexpr auto& checked() {
    auto* alternative = std::get_if<Index>(&state_);
    require(alternative != nullptr);
    return *alternative;
  }
  template <size_t Index>
  constexpr const auto& checked() const {
    const auto* alternative = std::get_if<Index>(&state_);
    require(alternative != nullptr);
    return *alternative;
  }

  std::variant<T, E> state_;
};

}  // namespace rocemu::wire
