// Fuzzes a QP with frames from its network. The first byte of the input selects the QP's type and
// state. The rest of the input is frames, each after two bytes with its length, whose upper three
// bits are Flags.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tests/support/script.h"

namespace rocemu::test {
namespace {

constexpr uint16_t kLength = 0x1fff;
enum Flags : uint16_t {
  kAsItIs = 0x8000,     // the frame is delivered unchanged; without this flag, a frame that can be
                        // parsed is changed to come from the peer, to the QP, with a good ICRC and
                        // with a PSN that is possible
  kMayAccess = 0x4000,  // addresses of remote memory are moved into a region
  kTimePasses = 0x2000  // time passes before the frame arrives, enough for a retransmission
};

std::vector<uint8_t> plausible(Script& script, const std::vector<uint8_t>& frame, uint16_t flags) {
  const auto parsed = wire::parse_frame(frame);
  if (!parsed) return frame;
  PacketSpec spec{.packet = *parsed};
  // the PSNs of both directions begin at 0, so small PSNs are possible
  spec.packet.bth.psn = psn(spec.packet.bth.psn.value() & 0xf);
  if ((flags & kMayAccess) != 0) {
    const uint64_t offset = spec.packet.reth.va & 0x7ff8;
    spec.packet.reth.va = spec.packet.atomic.va = Endpoint::kRecvBuffer + offset;
    spec.packet.reth.rkey = spec.packet.atomic.rkey = script.app().recv_mr.rkey;
    spec.packet.reth.dma_length &= 0x7fff;
  }
  spec.msn = parsed->aeth.msn & 0xf;
  spec.payload.emplace(parsed->payload.begin(), parsed->payload.end());
  return script.frame(spec);
}

int run(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  ScriptOptions options;
  options.state = static_cast<abi::QpState>(data[0] % 7);
  if (options.state == abi::QpState::kSqe) return 0;  // only an error brings a QP into SQE
  constexpr abi::QpType kTypes[] = {abi::QpType::kRc, abi::QpType::kUc, abi::QpType::kUd};
  options.connection.type = kTypes[data[0] / 7 % 3];
  options.connection.mtu = abi::Mtu::k256;
  options.connection.max_rd_atomic = 4;
  options.connection.access = options.recv_access =
      abi::kAccessLocalWrite | abi::kAccessRemoteWrite | abi::kAccessRemoteRead |
      abi::kAccessRemoteAtomic;
  Script script(options);
  if (options.state == abi::QpState::kRtr || options.state == abi::QpState::kRts) {
    for (uint64_t i = 0; i < 4; ++i) script.app_posts_recv(i, 1000);
  }
  if (options.state == abi::QpState::kRts && options.connection.type == abi::QpType::kRc) {
    for (uint64_t i = 4; i < 8; ++i) script.app_posts_send(i, 600);
    script.app_posts({.wr_id = 8,
                      .opcode = abi::WrOpcode::kRdmaRead,
                      .sges = {script.app().recv_sge(600)},
                      .remote_address = 0x1000,
                      .rkey = 1});
  }
  for (size_t at = 1; at + 2 <= size;) {
    const auto header = static_cast<uint16_t>(data[at] << 8 | data[at + 1]);
    at += 2;
    const size_t length = std::min<size_t>(header & kLength, size - at);
    std::vector<uint8_t> frame(data + at, data + at + length);
    at += length;
    if ((header & kTimePasses) != 0) {
      const auto now = script.bench().now().time_since_epoch();
      script.bench().advance_to(now + ack_timeout(options.connection.timeout));
    }
    if ((header & kAsItIs) == 0) frame = plausible(script, frame, header);
    script.bench().step(engine::ReceivedFrame{engine::DeviceIndex{0}, frame});
    script.bench().log.clear();  // whatever it is
  }
  script.bench().log.clear();
  return 0;
}

}  // namespace
}  // namespace rocemu::test

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  testing::FLAGS_gtest_break_on_failure = true;  // makes failed checks of the script itself crash
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return rocemu::test::run(data, size);
}
