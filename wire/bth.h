// The base transport header, which starts every packet's transport part.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "wire/opcode.h"
#include "wire/psn.h"
#include "wire/result.h"

namespace rocemu::wire {

inline constexpr uint16_t kDefaultPkey = 0xffff;

//   0               1               2               3
//  +---------------+-+-+---+-------+-------------------------------+
//  |    opcode     |S|M|pad| TVer  |            P_Key              |
//  +-+-+-----------+-+-+---+-------+-------------------------------+
//  |F|B| reserved  |             destination QP                    |
//  +-+-+-----------+-----------------------------------------------+
//  |A|  reserved   |                  PSN                          |
//  +-+-------------+-----------------------------------------------+
//  S solicited event, M migration request, F FECN, B BECN, A acknowledge request
struct Bth {
  static constexpr size_t kSize = 12;

  Opcode opcode = Opcode::kRcSendOnly;
  bool solicited = false;
  bool mig_req = false;
  uint8_t pad_count = 0;  // 0..3 zero bytes after the payload
  uint8_t tver = 0;
  uint16_t pkey = kDefaultPkey;
  bool fecn = false;
  bool becn = false;
  uint32_t dest_qpn = 0;  // 24 bits
  bool ack_req = false;
  Psn psn{};

  friend constexpr bool operator==(const Bth&, const Bth&) = default;
};

// Parses the header. Refuses an unknown opcode and a transport version other than 0. Reserved bits
// are ignored.
Result<Bth> parse_bth(std::span<const uint8_t, Bth::kSize> bytes);
void emit(const Bth& bth, std::span<uint8_t, Bth::kSize> bytes);

}  // namespace rocemu::wire
