// The BTH opcodes and the properties of their packets: one table row per opcode. (IBTA vol 1, 9.2.1
// table "OpCode field" and 9.3-9.5; XRC: annex A14; CNP: annex A17.)
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "wire/eth_headers.h"

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

// The upper bits of an opcode. CNP has separate bits, which no queue pair's transport has.
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

// The name of an operation; some operations belong to a group that has a name, too.
// Acknowledgements have none here, since their syndrome distinguishes them.
struct OperationName {
  Operation operation;
  std::string_view name;
  std::string_view group = {};
};
inline constexpr OperationName kOperationNames[] = {
    {Operation::kSend, "SEND"},
    {Operation::kWrite, "WRITE"},
    {Operation::kReadRequest, "READ"},
    {Operation::kCompareSwap, "COMPARE_SWAP", "ATOMIC"},
    {Operation::kFetchAdd, "FETCH_ADD", "ATOMIC"},
    {Operation::kAtomicWrite, "ATOMIC_WRITE"},
    {Operation::kFlush, "FLUSH"},
    {Operation::kReadResponse, "READ_RESPONSE"},
    {Operation::kAtomicAck, "ATOMIC_ACK"},
    {Operation::kCongestionNotification, "CNP"},
};

// Headers in wire order
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
  uint8_t headers_size;  // the total size of `headers`
  bool has_payload;      // may have a payload; the length rules say whether it must
  bool is_first;         // begins a message; an Only or one-packet operation has both flags
  bool is_last;          // ends a message
  bool needs_receive;    // needs a receive work request: SEND, and immediate data
  bool is_response;      // sent by a responder to a requester

  constexpr bool has(ExtendedHeader header) const { return headers.contains(header); }
};

namespace opcode_rows {

using enum Opcode;
using enum Operation;
using enum ExtendedHeader;

// The properties of an opcode besides its headers
enum Trait : unsigned {
  kPayload = 1,
  kFirst = 2,
  kLast = 4,
  kOnly = kFirst | kLast,
  kReceive = 8,
  kResponse = 16,
};

constexpr OpcodeInfo row(Opcode opcode, std::string_view name, Operation operation,
                         HeaderList headers, unsigned traits) {
  return {.opcode = opcode,
          .name = name,
          .transport = static_cast<Transport>(static_cast<uint8_t>(opcode) & 0xe0),
          .operation = operation,
          .headers = headers,
          .headers_size = static_cast<uint8_t>(headers.size_in_bytes()),
          .has_payload = (traits & kPayload) != 0,
          .is_first = (traits & kFirst) != 0,
          .is_last = (traits & kLast) != 0,
          .needs_receive = (traits & kReceive) != 0,
          .is_response = (traits & kResponse) != 0};
}

// clang-format off
inline constexpr auto kOpcodes = std::to_array<OpcodeInfo>({
  row(kRcSendFirst,           "RC SEND First",                       kSend,         {},                              kPayload | kFirst | kReceive),
  row(kRcSendMiddle,          "RC SEND Middle",                      kSend,         {},                              kPayload | kReceive),
  row(kRcSendLast,            "RC SEND Last",                        kSend,         {},                              kPayload | kLast | kReceive),
  row(kRcSendLastImm,         "RC SEND Last with Immediate",         kSend,         {kImmDt},                        kPayload | kLast | kReceive),
  row(kRcSendOnly,            "RC SEND Only",                        kSend,         {},                              kPayload | kOnly | kReceive),
  row(kRcSendOnlyImm,         "RC SEND Only with Immediate",         kSend,         {kImmDt},                        kPayload | kOnly | kReceive),
  row(kRcWriteFirst,          "RC RDMA WRITE First",                 kWrite,        {kReth},                         kPayload | kFirst),
  row(kRcWriteMiddle,         "RC RDMA WRITE Middle",                kWrite,        {},                              kPayload),
  row(kRcWriteLast,           "RC RDMA WRITE Last",                  kWrite,        {},                              kPayload | kLast),
  row(kRcWriteLastImm,        "RC RDMA WRITE Last with Immediate",   kWrite,        {kImmDt},                        kPayload | kLast | kReceive),
  row(kRcWriteOnly,           "RC RDMA WRITE Only",                  kWrite,        {kReth},                         kPayload | kOnly),
  row(kRcWriteOnlyImm,        "RC RDMA WRITE Only with Immediate",   kWrite,        {kReth, kImmDt},                 kPayload | kOnly | kReceive),
  row(kRcReadRequest,         "RC RDMA READ Request",                kReadRequest,  {kReth},                         kOnly),
  row(kRcReadResponseFirst,   "RC RDMA READ Response First",         kReadResponse, {kAeth},                         kPayload | kFirst | kResponse),
  row(kRcReadResponseMiddle,  "RC RDMA READ Response Middle",        kReadResponse, {},                              kPayload | kResponse),
  row(kRcReadResponseLast,    "RC RDMA READ Response Last",          kReadResponse, {kAeth},                         kPayload | kLast | kResponse),
  row(kRcReadResponseOnly,    "RC RDMA READ Response Only",          kReadResponse, {kAeth},                         kPayload | kOnly | kResponse),
  row(kRcAck,                 "RC Acknowledge",                      kAck,          {kAeth},                         kOnly | kResponse),
  row(kRcAtomicAck,           "RC ATOMIC Acknowledge",               kAtomicAck,    {kAeth, kAtomicAckEth},          kOnly | kResponse),
  row(kRcCompareSwap,         "RC CmpSwap",                          kCompareSwap,  {kAtomicEth},                    kOnly),
  row(kRcFetchAdd,            "RC FetchAdd",                         kFetchAdd,     {kAtomicEth},                    kOnly),
  row(kRcSendLastInv,         "RC SEND Last with Invalidate",        kSend,         {kIeth},                         kPayload | kLast | kReceive),
  row(kRcSendOnlyInv,         "RC SEND Only with Invalidate",        kSend,         {kIeth},                         kPayload | kOnly | kReceive),
  row(kRcFlush,               "RC FLUSH",                            kFlush,        {kFeth, kReth},                  kOnly),
  row(kRcAtomicWrite,         "RC ATOMIC WRITE",                     kAtomicWrite,  {kReth},                         kPayload | kOnly),

  row(kUcSendFirst,           "UC SEND First",                       kSend,         {},                              kPayload | kFirst | kReceive),
  row(kUcSendMiddle,          "UC SEND Middle",                      kSend,         {},                              kPayload | kReceive),
  row(kUcSendLast,            "UC SEND Last",                        kSend,         {},                              kPayload | kLast | kReceive),
  row(kUcSendLastImm,         "UC SEND Last with Immediate",         kSend,         {kImmDt},                        kPayload | kLast | kReceive),
  row(kUcSendOnly,            "UC SEND Only",                        kSend,         {},                              kPayload | kOnly | kReceive),
  row(kUcSendOnlyImm,         "UC SEND Only with Immediate",         kSend,         {kImmDt},                        kPayload | kOnly | kReceive),
  row(kUcWriteFirst,          "UC RDMA WRITE First",                 kWrite,        {kReth},                         kPayload | kFirst),
  row(kUcWriteMiddle,         "UC RDMA WRITE Middle",                kWrite,        {},                              kPayload),
  row(kUcWriteLast,           "UC RDMA WRITE Last",                  kWrite,        {},                              kPayload | kLast),
  row(kUcWriteLastImm,        "UC RDMA WRITE Last with Immediate",   kWrite,        {kImmDt},                        kPayload | kLast | kReceive),
  row(kUcWriteOnly,           "UC RDMA WRITE Only",                  kWrite,        {kReth},                         kPayload | kOnly),
  row(kUcWriteOnlyImm,        "UC RDMA WRITE Only with Immediate",   kWrite,        {kReth, kImmDt},                 kPayload | kOnly | kReceive),

  row(kUdSendOnly,            "UD SEND Only",                        kSend,         {kDeth},                         kPayload | kOnly | kReceive),
  row(kUdSendOnlyImm,         "UD SEND Only with Immediate",         kSend,         {kDeth, kImmDt},                 kPayload | kOnly | kReceive),

  row(kCnp,                   "CNP",                                 kCongestionNotification, {kCnpReserved},        kOnly),

  row(kXrcSendFirst,          "XRC SEND First",                      kSend,         {kXrceth},                       kPayload | kFirst | kReceive),
  row(kXrcSendMiddle,         "XRC SEND Middle",                     kSend,         {kXrceth},                       kPayload | kReceive),
  row(kXrcSendLast,           "XRC SEND Last",                       kSend,         {kXrceth},                       kPayload | kLast | kReceive),
  row(kXrcSendLastImm,        "XRC SEND Last with Immediate",        kSend,         {kXrceth, kImmDt},               kPayload | kLast | kReceive),
  row(kXrcSendOnly,           "XRC SEND Only",                       kSend,         {kXrceth},                       kPayload | kOnly | kReceive),
  row(kXrcSendOnlyImm,        "XRC SEND Only with Immediate",        kSend,         {kXrceth, kImmDt},               kPayload | kOnly | kReceive),
  row(kXrcWriteFirst,         "XRC RDMA WRITE First",                kWrite,        {kXrceth, kReth},                kPayload | kFirst),
  row(kXrcWriteMiddle,        "XRC RDMA WRITE Middle",               kWrite,        {kXrceth},                       kPayload),
  row(kXrcWriteLast,          "XRC RDMA WRITE Last",                 kWrite,        {kXrceth},                       kPayload | kLast),
  row(kXrcWriteLastImm,       "XRC RDMA WRITE Last with Immediate",  kWrite,        {kXrceth, kImmDt},               kPayload | kLast | kReceive),
  row(kXrcWriteOnly,          "XRC RDMA WRITE Only",                 kWrite,        {kXrceth, kReth},                kPayload | kOnly),
  row(kXrcWriteOnlyImm,       "XRC RDMA WRITE Only with Immediate",  kWrite,        {kXrceth, kReth, kImmDt},        kPayload | kOnly | kReceive),
  row(kXrcReadRequest,        "XRC RDMA READ Request",               kReadRequest,  {kXrceth, kReth},                kOnly),
  row(kXrcReadResponseFirst,  "XRC RDMA READ Response First",        kReadResponse, {kAeth},                         kPayload | kFirst | kResponse),
  row(kXrcReadResponseMiddle, "XRC RDMA READ Response Middle",       kReadResponse, {},                              kPayload | kResponse),
  row(kXrcReadResponseLast,   "XRC RDMA READ Response Last",         kReadResponse, {kAeth},                         kPayload | kLast | kResponse),
  row(kXrcReadResponseOnly,   "XRC RDMA READ Response Only",         kReadResponse, {kAeth},                         kPayload | kOnly | kResponse),
  row(kXrcAck,                "XRC Acknowledge",                     kAck,          {kAeth},                         kOnly | kResponse),
  row(kXrcAtomicAck,          "XRC ATOMIC Acknowledge",              kAtomicAck,    {kAeth, kAtomicAckEth},          kOnly | kResponse),
  row(kXrcCompareSwap,        "XRC CmpSwap",                         kCompareSwap,  {kXrceth, kAtomicEth},           kOnly),
  row(kXrcFetchAdd,           "XRC FetchAdd",                        kFetchAdd,     {kXrceth, kAtomicEth},           kOnly),
  row(kXrcSendLastInv,        "XRC SEND Last with Invalidate",       kSend,         {kXrceth, kIeth},                kPayload | kLast | kReceive),
  row(kXrcSendOnlyInv,        "XRC SEND Only with Invalidate",       kSend,         {kXrceth, kIeth},                kPayload | kOnly | kReceive),
});
// clang-format on

// For each opcode, the index of its row plus 1, or 0 if it has no row
inline constexpr auto kRowOfOpcode = [] {
  static_assert(kOpcodes.size() < 0xff);
  std::array<uint8_t, 256> row_of_opcode{};
  for (size_t i = 0; i < kOpcodes.size(); ++i) {
    row_of_opcode[static_cast<uint8_t>(kOpcodes[i].opcode)] = static_cast<uint8_t>(i + 1);
  }
  return row_of_opcode;
}();

}  // namespace opcode_rows

// Returns the row of the opcode; nullptr if the opcode is reserved or belongs to a transport that
// is not supported (RD).
constexpr const OpcodeInfo* find_opcode(uint8_t opcode) {
  const uint8_t row = opcode_rows::kRowOfOpcode[opcode];
  return row == 0 ? nullptr : &opcode_rows::kOpcodes[row - 1u];
}
constexpr const OpcodeInfo* find_opcode(Opcode opcode) {
  return find_opcode(static_cast<uint8_t>(opcode));
}

// Returns the opcode's name, such as "RC SEND First", or "unknown opcode".
constexpr std::string_view name(Opcode opcode) {
  const OpcodeInfo* info = find_opcode(opcode);
  return info == nullptr ? "unknown opcode" : info->name;
}

}  // namespace rocemu::wire
