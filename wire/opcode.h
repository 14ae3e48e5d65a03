// The BTH opcodes and what each says about the rest of its packet: one table row per opcode.
// (IBTA vol 1, 9.2.1 table "OpCode field" and 9.3-9.5; XRC: annex A14; CNP: annex A17.)
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace rocemu::wire {

enum class Opcode : uint8_t {
  kRcSendFirst = 0x00,
  kRcSendMiddle = 0x01,
  kRcSendLast = 0x02,
  kRcSendLastImm = 0x03,
  kRcSendOnly = 0x04,
  kRcSendOnlyImm = 0x05,
  kRcWriteFirst = 0x06,
  kRcWriteMiddle = 0x07,
  kRcWriteLast = 0x08,
  kRcWriteLastImm = 0x09,
  kRcWriteOnly = 0x0a,
  kRcWriteOnlyImm = 0x0b,
  kRcReadRequest = 0x0c,
  kRcReadResponseFirst = 0x0d,
  kRcReadResponseMiddle = 0x0e,
  kRcReadResponseLast = 0x0f,
  kRcReadResponseOnly = 0x10,
  kRcAck = 0x11,
  kRcAtomicAck = 0x12,
  kRcCompareSwap = 0x13,
  kRcFetchAdd = 0x14,
  kRcSendLastInv = 0x16,
  kRcSendOnlyInv = 0x17,
  kRcFlush = 0x1c,
  kRcAtomicWrite = 0x1d,

  kUcSendFirst = 0x20,
  kUcSendMiddle = 0x21,
  kUcSendLast = 0x22,
  kUcSendLastImm = 0x23,
  kUcSendOnly = 0x24,
  kUcSendOnlyImm = 0x25,
  kUcWriteFirst = 0x26,
  kUcWriteMiddle = 0x27,
  kUcWriteLast = 0x28,
  kUcWriteLastImm = 0x29,
  kUcWriteOnly = 0x2a,
  kUcWriteOnlyImm = 0x2b,

  kUdSendOnly = 0x64,
  kUdSendOnlyImm = 0x65,

  kCnp = 0x81,

  kXrcSendFirst = 0xa0,
  kXrcSendMiddle = 0xa1,
  kXrcSendLast = 0xa2,
  kXrcSendLastImm = 0xa3,
  kXrcSendOnly = 0xa4,
  kXrcSendOnlyImm = 0xa5,
  kXrcWriteFirst = 0xa6,
  kXrcWriteMiddle = 0xa7,
  kXrcWriteLast = 0xa8,
  kXrcWriteLastImm = 0xa9,
  kXrcWriteOnly = 0xaa,
  kXrcWriteOnlyImm = 0xab,
  kXrcReadRequest = 0xac,
  kXrcReadResponseFirst = 0xad,
  kXrcReadResponseMiddle = 0xae,
  kXrcReadResponseLast = 0xaf,
  kXrcReadResponseOnly = 0xb0,
  kXrcAck = 0xb1,
  kXrcAtomicAck = 0xb2,
  kXrcCompareSwap = 0xb3,
  kXrcFetchAdd = 0xb4,
  kXrcSendLastInv = 0xb6,
  kXrcSendOnlyInv = 0xb7,
};

// The upper bits of an opcode. CNP has bits of its own, which no queue pair's transport has.
enum class Transport : uint8_t { kRc = 0x00, kUc = 0x20, kUd = 0x60, kCnp = 0x80, kXrc = 0xa0 };

enum class Operation : uint8_t {
  kSend,
  kWrite,
  kReadRequest,
  kReadResponse,
  kAck,
  kAtomicAck,
  kCompareSwap,
  kFetchAdd,
  kFlush,
  kAtomicWrite,
  kCongestionNotification,
};

// The extended transport headers, between the BTH and the payload.
enum class ExtendedHeader : uint8_t {
  kXrceth,
  kDeth,
  kFeth,
  kReth,
  kAtomicEth,
  kAeth,
  kAtomicAckEth,
  kImmDt,
  kIeth,
  kCnpReserved,  // the 16 zero bytes of a CNP
};

constexpr size_t header_size(ExtendedHeader header) {
  switch (header) {
    case ExtendedHeader::kXrceth:
    case ExtendedHeader::kFeth:
    case ExtendedHeader::kAeth:
    case ExtendedHeader::kImmDt:
    case ExtendedHeader::kIeth:
      return 4;
    case ExtendedHeader::kDeth:
    case ExtendedHeader::kAtomicAckEth:
      return 8;
    case ExtendedHeader::kReth:
    case ExtendedHeader::kCnpReserved:
      return 16;
    case ExtendedHeader::kAtomicEth:
      return 28;
  }
  return 0;
}

// Headers in wire order.
class HeaderList {
 public:
  constexpr HeaderList() = default;
  constexpr HeaderList(std::initializer_list<ExtendedHeader> headers) {
    for (const ExtendedHeader header : headers) headers_[count_++] = header;
  }

  constexpr const ExtendedHeader* begin() const { return headers_.data(); }
  constexpr const ExtendedHeader* end() const { return headers_.data() + count_; }
  constexpr size_t count() const { return count_; }

  constexpr bool contains(ExtendedHeader wanted) const {
    for (const ExtendedHeader header : *this) {
      if (header == wanted) return true;
    }
    return false;
  }

  constexpr size_t size_in_bytes() const {
    size_t size = 0;
    for (const ExtendedHeader header : *this) size += header_size(header);
    return size;
  }

 private:
  std::array<ExtendedHeader, 3> headers_{};
  uint8_t count_ = 0;
};

struct OpcodeInfo {
  Opcode opcode;
  std::string_view name;  // "RC SEND First"
  Transport transport;
  Operation operation;
  HeaderList headers;
  uint8_t headers_size;  // all of `headers` together
  bool has_payload;      // may carry some; whether it must is a question of lengths
  bool is_first;         // begins a message; both are set on an Only or one-packet operation
  bool is_last;          // ends a message
  bool needs_receive;    // cannot be executed without a receive work request: SEND, and immediate
  bool is_response;      // goes from responder to requester

  constexpr bool has(ExtendedHeader header) const { return headers.contains(header); }
};

// nullptr for an opcode that is reserved or belongs to a transport we do not speak (RD).
const OpcodeInfo* find_opcode(uint8_t opcode);
inline const OpcodeInfo* find_opcode(Opcode opcode) {
  return find_opcode(static_cast<uint8_t>(opcode));
}

// "RC SEND First", or "unknown opcode".
std::string_view name(Opcode opcode);

}  // namespace rocemu::wire
