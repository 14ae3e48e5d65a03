#include "wire/bth.h"

#include "wire/big_endian.h"
#include "wire/layout.h"

namespace rocemu::wire {
namespace {

constexpr uint8_t kSolicited = 0x80;
constexpr uint8_t kMigReq = 0x40;
constexpr unsigned kPadShift = 4;
constexpr uint8_t kPadMask = 0x3;
constexpr uint8_t kTverMask = 0x0f;
constexpr uint8_t kFecn = 0x80;
constexpr uint8_t kBecn = 0x40;
constexpr uint8_t kAckReq = 0x80;

struct Layout {
  uint8_t opcode;
  uint8_t flags;  // solicited, migration request, pad count, transport version
  Be16 pkey;
  uint8_t congestion;
  Be24 dest_qpn;
  uint8_t ack_req;
  Be24 psn;
};
static_assert(sizeof(Layout) == Bth::kSize && alignof(Layout) == 1);

constexpr uint8_t bit(bool set, uint8_t mask) {
  return set ? mask : uint8_t{0};
}

}  // namespace

Result<Bth> parse_bth(std::span<const uint8_t, Bth::kSize> bytes) {
  const auto layout = load<Layout>(bytes);
  // The version is checked first: in another version the opcode may have another meaning.
  const auto tver = static_cast<uint8_t>(layout.flags & kTverMask);
  if (tver != 0) return ParseError::kBadTransportVersion;
  const OpcodeInfo* info = find_opcode(layout.opcode);
  if (info == nullptr) return ParseError::kUnknownOpcode;

  return Bth{.opcode = info->opcode,
             .solicited = (layout.flags & kSolicited) != 0,
             .mig_req = (layout.flags & kMigReq) != 0,
             .pad_count = static_cast<uint8_t>(layout.flags >> kPadShift & kPadMask),
             .tver = tver,
             .pkey = layout.pkey.get(),
             .fecn = (layout.congestion & kFecn) != 0,
             .becn = (layout.congestion & kBecn) != 0,
             .dest_qpn = layout.dest_qpn.get(),
             .ack_req = (layout.ack_req & kAckReq) != 0,
             .psn = Psn(layout.psn.get())};
}

void emit(const Bth& bth, std::span<uint8_t, Bth::kSize> bytes) {
  const int flags = bit(bth.solicited, kSolicited) | bit(bth.mig_req, kMigReq) |
                    (bth.pad_count & kPadMask) << kPadShift | (bth.tver & kTverMask);
  const int congestion = bit(bth.fecn, kFecn) | bit(bth.becn, kBecn);
  const Layout layout{.opcode = static_cast<uint8_t>(bth.opcode),
                      .flags = static_cast<uint8_t>(flags),
                      .pkey = Be16(bth.pkey),
                      .congestion = static_cast<uint8_t>(congestion),
                      .dest_qpn = Be24(bth.dest_qpn),
                      .ack_req = bit(bth.ack_req, kAckReq),
                      .psn = Be24(bth.psn.value())};
  store(layout, bytes);
}

}  // namespace rocemu::wire
