// A QP in each state (the first byte says which) and the frames that its network brings: the rest,
// each behind two bytes of length, with a good ICRC unless the length's top bit is set.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "tests/support/script.h"

using namespace rocemu;
using namespace rocemu::test;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  ScriptOptions options;
  options.state = static_cast<abi::QpState>(data[0] % 7);
  if (options.state == abi::QpState::kSqe) return 0;  // no RC QP gets there
  options.connection.mtu = abi::Mtu::k256;
  Script script(options);
  if (options.state == abi::QpState::kRtr || options.state == abi::QpState::kRts) {
    for (uint64_t i = 0; i < 4; ++i) script.app_posts_recv(i, 1000);
  }
  if (options.state == abi::QpState::kRts) {
    for (uint64_t i = 4; i < 8; ++i) script.app_posts_send(i, 600);
  }
  for (size_t at = 1; at + 2 <= size;) {
    const uint32_t header = static_cast<uint32_t>(data[at] << 8 | data[at + 1]);
    at += 2;
    const size_t length = std::min<size_t>(header & 0x1fff, size - at);
    std::vector<uint8_t> frame(data + at, data + at + length);
    at += length;
    if ((header & 0x8000) == 0 && frame.size() >= 64) wire::write_icrc(frame);
    script.bench().step(engine::ReceiveFrame{engine::DeviceIndex{0}, frame});
    script.bench().log.clear();
  }
  return 0;
}
