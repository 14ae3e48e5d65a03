// Tests which work requests the engine executes for a QP of each type: the same requests as the
// provider accepts (tests/provider/post_test.cc), by the table of ibv_post_send(3).
#include "tests/support/post_send_table.h"

#include <gtest/gtest.h>

#include "tests/support/endpoint.h"
#include "tests/support/pair.h"

namespace rocemu::test {
namespace {

using abi::QpType;
using engine::VendorError;

/// Posts one work request with that opcode. Returns false only if the completion reports that this
/// QP type does not have the operation; the request may fail for other reasons.
bool carries_out(QpType type, uint32_t opcode) {
  Bench bench(engine::default_fabric(1));
  EndpointOptions options;
  options.connection.type = type;
  options.connection.access = abi::kAccessRemoteWrite;
  Endpoint app(bench, engine::ClientId{1}, engine::DeviceIndex{0}, options);
  const abi::AhAttr peer = address_vector(wire::IpAddress::from_v4(10, 0, 0, 9));
  EXPECT_TRUE(bring_up(app.client, app.qpn, abi::QpState::kRts, options.connection, peer, app.qpn));
  bench.log.clear();
  SendWr wr{.wr_id = 1, .opcode = static_cast<abi::WrOpcode>(opcode)};
  if (type == QpType::kUd) wr.ah = app.client.create_ah(app.pd, peer);
  app.post_send(wr);
  for (const abi::Cqe& cqe : completions_of(bench.log, app.client.id())) {
    if (cqe.vendor_err != static_cast<uint32_t>(VendorError::kOpcodeNotSupported)) continue;
    EXPECT_EQ(cqe.status, static_cast<uint32_t>(abi::WcStatus::kLocQpOpErr));
    return false;
  }
  return true;
}

TEST(PostSendTable, IsThatOfTheEngine) {
  for (const QpType type : {QpType::kUd, QpType::kUc, QpType::kRc, QpType::kXrcSend}) {
    for (uint32_t opcode = 0; opcode < kOpcodesTried; ++opcode) {
      EXPECT_EQ(carries_out(type, opcode), device_supports(type, opcode))
          << "QP type " << static_cast<uint32_t>(type) << ", opcode " << opcode;
    }
    EXPECT_FALSE(carries_out(type, ~0u));
  }
}

}  // namespace
}  // namespace rocemu::test
