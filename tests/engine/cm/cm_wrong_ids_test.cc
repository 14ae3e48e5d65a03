// Tests every command of librdmacm that names an id: with an id that does not exist, and with an id
// of another channel. The results are ENOENT and EINVAL, as with Linux's rdma_ucm, and the id of
// the other channel does not change.
#include <gtest/gtest.h>

#include <cerrno>
#include <functional>

#include "tests/support/event_channel.h"

namespace rocemu::test {
namespace {

using namespace abi::ucma;

struct Case {
  const char* name;
  /// Runs the command on a channel with an id that does not belong to the channel. All other
  /// arguments are valid.
  std::function<int(EventChannel&, uint32_t id)> run;
};

template <class Join>
Join group_of(uint32_t id) {
  Join in{};
  in.id = id;
  engine::cm::emit(ip("239.1.2.3"), in.address.bytes);
  return in;
}

int ask_by_ip(EventChannel& channel, uint32_t id) {
  ResolveIp in{};
  in.id = id;
  in.timeout_ms = 2000;
  engine::cm::emit(ip("127.0.0.1", 7471), in.destination.bytes);
  return channel.ask(Command::kResolveIp, in);
}

int bind_by_ip(EventChannel& channel, uint32_t id) {
  BindIp in{};
  in.id = id;
  engine::cm::emit(ip("127.0.0.1", 7471), in.address.bytes);
  return channel.ask(Command::kBindIp, in);
}

int join(EventChannel& channel, uint32_t id) {
  auto in = group_of<JoinMcast>(id);
  in.address_size = static_cast<uint16_t>(ip("239.1.2.3").size());
  in.flags = JoinFlags::kFullMember;
  return channel.ask(Command::kJoinMcast, in);
}

const Case kCases[] = {
    {"DestroyId", [](EventChannel& c, uint32_t id) { return c.destroy_id(id); }},
    {"BindIp", bind_by_ip},
    {"Bind", [](EventChannel& c, uint32_t id) { return c.bind(id, ip("127.0.0.1", 7471)); }},
    {"ResolveIp", ask_by_ip},
    {"ResolveAddr",
     [](EventChannel& c, uint32_t id) { return c.resolve(id, ip("127.0.0.1", 7471)); }},
    {"ResolveRoute", [](EventChannel& c, uint32_t id) { return c.resolve_route(id); }},
    {"QueryRoute",
     [](EventChannel& c, uint32_t id) {
       return c.ask(Command::kQueryRoute, Query{0, id, {}});
     }},
    {"Query",
     [](EventChannel& c, uint32_t id) {
       return c.ask(Command::kQuery, Query{0, id, QueryKind::kAddr});
     }},
    {"Connect", [](EventChannel& c, uint32_t id) { return c.connect(id, {}); }},
    {"Listen", [](EventChannel& c, uint32_t id) { return c.listen(id); }},
    {"Accept", [](EventChannel& c, uint32_t id) { return c.accept(id, 1, {}); }},
    {"Reject",
     [](EventChannel& c, uint32_t id) {
       Reject in{};
       in.id = id;
       return c.ask(Command::kReject, in);
     }},
    {"Disconnect",
     [](EventChannel& c, uint32_t id) { return c.ask(Command::kDisconnect, Disconnect{id}); }},
    {"Notify",
     [](EventChannel& c, uint32_t id) {
       return c.ask(Command::kNotify, Notify{id, static_cast<uint32_t>(abi::EventType::kCommEst)});
     }},
    {"InitQpAttr",
     [](EventChannel& c, uint32_t id) {
       return c.ask(Command::kInitQpAttr,
                    InitQpAttr{0, id, static_cast<uint32_t>(abi::QpState::kInit)});
     }},
    {"SetOption",
     [](EventChannel& c, uint32_t id) {
       return c.ask(Command::kSetOption, SetOption{0, id, OptionLevel::kId, 0, 0});
     }},
    {"JoinIpMcast",
     [](EventChannel& c, uint32_t id) {
       return c.ask(Command::kJoinIpMcast, group_of<JoinIpMcast>(id));
     }},
    {"JoinMcast", join},
    {"RequestRead",
     [](EventChannel& c, uint32_t id) { return c.ask(Command::kGetEvent, RequestRead{id}); }},
    {"MigrateId",
     [](EventChannel& c, uint32_t id) {
       return c.ask(Command::kMigrateId, MigrateId{0, id, c.number().value});
     }},
};

class WrongIds : public testing::TestWithParam<Case> {};

TEST_P(WrongIds, AreRefused) {
  CmBench bench;
  EventChannel owner(bench, 1), stranger(bench, 2);
  const uint32_t id = owner.create_id(1, PortSpace::kUdp);
  for (const uint32_t nobody : {0u, id + 1, 0x7fff'ffffu, ~0u}) {
    EXPECT_EQ(GetParam().run(owner, nobody), ENOENT) << nobody;
  }
  EXPECT_EQ(GetParam().run(stranger, id), EINVAL);
  EXPECT_EQ(owner.bind(id, ip("127.0.0.1", 7471)), 0) << "it is as it was";
  EXPECT_EQ(GetParam().run(stranger, id), EINVAL);
  EXPECT_EQ(owner.destroy_id(id), 0);
  EXPECT_EQ(GetParam().run(owner, id), ENOENT);
}

INSTANTIATE_TEST_SUITE_P(Commands, WrongIds, testing::ValuesIn(kCases),
                         [](const auto& command) { return command.param.name; });

TEST(WrongGroups, AreRefused) {
  CmBench bench;
  EventChannel owner(bench, 1), stranger(bench, 2);
  const uint32_t id = owner.create_id(1, PortSpace::kUdp);
  ASSERT_EQ(owner.bind(id, ip("127.0.0.1")), 0);
  ASSERT_EQ(join(owner, id), 0);
  const uint32_t group = owner.next_event().id;
  for (const uint32_t nobody : {0u, group + 1, ~0u}) {
    EXPECT_EQ(owner.ask(Command::kLeaveMcast, DestroyId{0, nobody, 0}), ENOENT);
  }
  EXPECT_EQ(stranger.ask(Command::kLeaveMcast, DestroyId{0, group, 0}), EINVAL);
  EXPECT_EQ(owner.ask(Command::kLeaveMcast, DestroyId{0, group, 0}), 0);
}

}  // namespace
}  // namespace rocemu::test
