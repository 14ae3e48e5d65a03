#include "wire/opcode.h"

namespace rocemu::wire {
namespace {

using enum Opcode;
using enum Operation;
using enum ExtendedHeader;

// What a row says besides its headers.
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
constexpr auto kRows = std::to_array<OpcodeInfo>({
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

constexpr uint8_t kNoRow = 0xff;
static_assert(kRows.size() < kNoRow);

constexpr auto kRowOfOpcode = [] {
  std::array<uint8_t, 256> row_of_opcode{};
  row_of_opcode.fill(kNoRow);
  for (size_t i = 0; i < kRows.size(); ++i) {
    row_of_opcode[static_cast<uint8_t>(kRows[i].opcode)] = static_cast<uint8_t>(i);
  }
  return row_of_opcode;
}();

}  // namespace

const OpcodeInfo* find_opcode(uint8_t opcode) {
  const uint8_t row = kRowOfOpcode[opcode];
  return row == kNoRow ? nullptr : &kRows[row];
}

std::string_view name(Opcode opcode) {
  const OpcodeInfo* info = find_opcode(opcode);
  return info == nullptr ? "unknown opcode" : info->name;
}

}  // namespace rocemu::wire
