// Tests rdma_write_cm_event(3), and the kernel's part of rdma_resolve_addrinfo(3).
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>

#include "tests/support/event_channel.h"

namespace rocemu::test {
namespace {

using abi::ucma::Command;
using abi::ucma::EventType;

constexpr uint64_t kUid = 7;

class WrittenEvents : public testing::Test {
 protected:
  static abi::ucma::WriteCmEvent event(uint32_t id, EventType type) {
    abi::ucma::WriteCmEvent in{};
    in.id = id;
    in.event = type;
    in.status = static_cast<uint32_t>(-5);
    in.arg = 0x1234'5678'9abc'def0;
    return in;
  }
  static abi::ucma::ResolveIbService service(uint32_t id) {
    abi::ucma::ResolveIbService in{};
    in.id = id;
    return in;
  }

  CmBench bench;
  EventChannel channel{bench, 1};
};

TEST_F(WrittenEvents, ComeInTheChannelOfTheirId) {
  const uint32_t id = channel.create_id(kUid);
  for (const EventType type : {EventType::kUser, EventType::kInternal}) {
    ASSERT_EQ(channel.ask(Command::kWriteCmEvent, event(id, type)), 0);
    const auto got = channel.next_event();
    EXPECT_EQ(got.event, type);
    EXPECT_EQ(got.id, id);
    EXPECT_EQ(got.uid, kUid);
    EXPECT_EQ(static_cast<int32_t>(got.status), -5);
    uint64_t arg;
    std::memcpy(&arg, &got.param, sizeof arg);
    EXPECT_EQ(arg, 0x1234'5678'9abc'def0u);
  }
}

TEST_F(WrittenEvents, CannotHaveOtherTypesOrIds) {
  const uint32_t id = channel.create_id(kUid);
  EXPECT_EQ(channel.ask(Command::kWriteCmEvent, event(id, EventType::kEstablished)), EINVAL);
  EXPECT_EQ(channel.ask(Command::kWriteCmEvent, event(id, EventType::kAddrinfoResolved)), EINVAL);
  EXPECT_EQ(channel.ask(Command::kWriteCmEvent, event(id + 1, EventType::kUser)), ENOENT);
  EventChannel other(bench, 2);
  EXPECT_EQ(other.ask(Command::kWriteCmEvent, event(id, EventType::kUser)), EINVAL);
}

TEST_F(WrittenEvents, ThereIsNoSubnetManagerToAskForAService) {
  const uint32_t id = channel.create_id(kUid);
  EXPECT_EQ(channel.ask(Command::kResolveIbService, service(id)), EINVAL) << "not bound";
  ASSERT_EQ(channel.bind(id, ip("127.0.0.1")), 0);
  EXPECT_EQ(channel.ask(Command::kResolveIbService, service(id)), EOPNOTSUPP);
  EXPECT_EQ(channel.ask(Command::kResolveIbService, service(id + 1)), ENOENT);
}

}  // namespace
}  // namespace rocemu::test
