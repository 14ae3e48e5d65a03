// Tests two connection managers with different paths between them: two devices of one fabric, one
// device and itself, and two fabrics over a link that loses, repeats and reorders frames.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "emulator/engine/base/random.h"
#include "emulator/engine/fabric.h"
#include "tests/support/array_memory.h"
#include "tests/support/cm_script.h"

namespace rocemu::test {
namespace {

using engine::cm::ConnectionId;
using engine::cm::ConnectionManager;
using engine::cm::Event;
using engine::cm::Route;

constexpr uint64_t kService = 0x0000000001061c06;

engine::cm::Connect request(uint32_t qpn, const Route& route) {
  engine::cm::Connect connect;
  connect.route = route;
  connect.service_id = kService;
  connect.qpn = engine::QpNumber{qpn};
  return connect;
}

engine::cm::Accept acceptance(uint32_t qpn) {
  engine::cm::Accept accept;
  accept.qpn = engine::QpNumber{qpn};
  return accept;
}

// One fabric, which is stepped until no work remains at the current time.
struct Bed {
  explicit Bed(engine::FabricConfig config) : fabric(std::move(config), memory) {}

  template <class Call>
  void step(Call call) {
    outputs.clear();
    fabric.begin_step(now, outputs);
    fabric.begin_expiry();
    call(fabric.connections);
    fabric.run();
    while (const auto event = fabric.connections.next_event()) events.push_back(*event);
  }

  ArrayMemory memory;
  engine::Fabric fabric;
  engine::Outputs outputs;
  engine::Instant now{};
  std::vector<Event> events;
};

Event take(Bed& bed, EventKind kind) {
  EXPECT_FALSE(bed.events.empty());
  if (bed.events.empty()) return {};
  const Event event = bed.events.front();
  EXPECT_EQ(event.kind, kind);
  bed.events.erase(bed.events.begin());
  return event;
}

void connect_and_disconnect(Bed& bed, const Route& route) {
  bed.step([](ConnectionManager& m) { ASSERT_TRUE(m.listen({.service_id = kService})); });
  bed.step([&](ConnectionManager& m) { ASSERT_TRUE(m.connect(request(17, route))); });
  const Event asked = take(bed, EventKind::kRequest);
  bed.step([&](ConnectionManager& m) { EXPECT_EQ(m.accept(asked.connection, acceptance(18)), 0); });
  const Event replied = take(bed, EventKind::kReply);
  bed.step([&](ConnectionManager& m) { EXPECT_EQ(m.ready(replied.connection), 0); });
  EXPECT_EQ(take(bed, EventKind::kEstablished).connection, asked.connection);

  // The attributes of each side must fit those of the other side.
  const auto& m = bed.fabric.connections;
  using abi::QpState;
  const auto active_rtr = *m.qp_attributes(replied.connection, QpState::kRtr);
  const auto active_rts = *m.qp_attributes(replied.connection, QpState::kRts);
  const auto passive_rtr = *m.qp_attributes(asked.connection, QpState::kRtr);
  const auto passive_rts = *m.qp_attributes(asked.connection, QpState::kRts);
  EXPECT_EQ(active_rtr.attr.rq_psn, passive_rts.attr.sq_psn);
  EXPECT_EQ(passive_rtr.attr.rq_psn, active_rts.attr.sq_psn);
  EXPECT_EQ(active_rtr.attr.dest_qp_num, 18u);
  EXPECT_EQ(passive_rtr.attr.dest_qp_num, 17u);

  bed.step([&](ConnectionManager& n) { EXPECT_EQ(n.disconnect(asked.connection), 0); });
  EXPECT_EQ(take(bed, EventKind::kDisconnectRequest).connection, replied.connection);
  bed.step([&](ConnectionManager& n) { EXPECT_EQ(n.answer_disconnect(replied.connection), 0); });
  take(bed, EventKind::kDisconnectReply);
  bed.now = *bed.fabric.next_deadline();
  bed.step([](ConnectionManager&) {});
  take(bed, EventKind::kTimewaitExit);
  take(bed, EventKind::kTimewaitExit);
  EXPECT_TRUE(bed.events.empty());
  EXPECT_EQ(m.size(), 0u);
}

TEST(CmPair, TwoDevicesOfOneFabricConnect) {
  Bed bed(engine::default_fabric(2));
  connect_and_disconnect(bed, {.remote = wire::IpAddress::from_v4(127, 0, 0, 2)});
  using engine::Counter;
  const auto count = [&](uint32_t device, Counter which) {
    return bed.fabric.objects.devices[engine::DeviceIndex{device}].counters.get(which);
  };
  EXPECT_EQ(count(0, Counter::kFramesOut), 3u);  // REQ, RTU, DREP
  EXPECT_EQ(count(1, Counter::kFramesOut), 2u);  // REP, DREQ
  EXPECT_EQ(count(0, Counter::kFramesIn), 2u);
  EXPECT_EQ(count(1, Counter::kFramesIn), 3u);
  EXPECT_EQ(count(0, Counter::kMadsDropped) + count(1, Counter::kMadsDropped), 0u);
}

TEST(CmPair, ADeviceConnectsWithItself) {
  Bed bed(engine::default_fabric(1));
  connect_and_disconnect(bed, {.remote = wire::IpAddress::from_v4(127, 0, 0, 1)});
}

TEST(CmPair, OverIpv6Too) {
  Bed bed(engine::default_fabric(2));
  const wire::IpAddress remote =
      bed.fabric.objects.devices[engine::DeviceIndex{1}].config.addresses[1];
  connect_and_disconnect(bed, {.gid_index = 1, .remote = remote});
}

TEST(CmPair, FramesInsideAFabricAreTraced) {
  engine::FabricConfig config = engine::default_fabric(2);
  config.trace_frames = true;
  Bed bed(config);
  bed.step([&](ConnectionManager& m) {
    ASSERT_TRUE(m.connect(request(17, {.remote = wire::IpAddress::from_v4(127, 0, 0, 2)})));
  });
  std::vector<wire::CmAttribute> traced;
  for (const engine::Output& output : bed.outputs.list) {
    const auto bytes = std::get<engine::FrameTrace>(output).frame.bytes();
    EXPECT_TRUE(wire::check_icrc(bytes));
    traced.push_back(attribute_of(wire::parse_cm_mad(wire::parse_frame(bytes)->payload)->message));
  }
  EXPECT_EQ(traced, (std::vector{wire::CmAttribute::kReq, wire::CmAttribute::kRej}));
  take(bed, EventKind::kRejected);
}

/// Returns the marks of all frames that the step sent.
std::vector<engine::FrameMarks> marks_of(const Bed& bed) {
  std::vector<engine::FrameMarks> marks;
  for (const engine::Output& output : bed.outputs.list) {
    if (const auto* trace = std::get_if<engine::FrameTrace>(&output)) marks.push_back(trace->marks);
  }
  return marks;
}

TEST(CmPair, ARequestThatIsNotAnsweredIsMarkedWithTheTimerThatExpired) {
  engine::FabricConfig config = engine::default_fabric(1);
  config.trace_frames = true;
  Bed bed(config);
  bed.step([&](ConnectionManager& m) {
    ASSERT_TRUE(m.connect(request(17, {.remote = wire::IpAddress::from_v4(10, 9, 9, 9)})));
  });
  const auto first = marks_of(bed);
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(first[0].resend.why, engine::Resent::kNo);
  bed.now += kCmTimeout;
  bed.step([](ConnectionManager&) {});
  const auto again = marks_of(bed);
  ASSERT_EQ(again.size(), 1u);
  EXPECT_GT(again[0].number, first[0].number);
  EXPECT_EQ(again[0].resend.why, engine::Resent::kNoReply);
  EXPECT_EQ(again[0].resend.waited, kCmTimeout);
}

TEST(CmPair, AReplyToARepeatedRequestIsMarkedAsRepeated) {
  engine::FabricConfig config = engine::default_fabric(2);
  config.trace_frames = true;
  Bed bed(config);
  bed.step([](ConnectionManager& m) { ASSERT_TRUE(m.listen({.service_id = kService})); });
  bed.step([&](ConnectionManager& m) {
    ASSERT_TRUE(m.connect(request(17, {.remote = wire::IpAddress::from_v4(127, 0, 0, 2)})));
  });
  const auto req = std::get<engine::FrameTrace>(bed.outputs.list[0]).frame.bytes();
  const std::vector<uint8_t> bytes(req.begin(), req.end());
  const Event asked = take(bed, EventKind::kRequest);
  bed.step([&](ConnectionManager& m) { EXPECT_EQ(m.accept(asked.connection, acceptance(18)), 0); });
  EXPECT_EQ(marks_of(bed).at(0).resend.why, engine::Resent::kNo);
  const auto packet = *wire::parse_frame(bytes);
  bed.step([&](ConnectionManager& m) { m.receive(engine::DeviceIndex{1}, packet); });
  EXPECT_EQ(marks_of(bed).at(0).resend.why, engine::Resent::kDuplicate);
}

// ---- A bad link ----

// A program on each side that answers after a while, and sometimes changes its decision.
class Wild {
 public:
  explicit Wild(uint64_t seed) : random_(seed) {
    for (uint32_t i = 0; i < 2; ++i) {
      engine::FabricConfig config = engine::default_fabric(2);
      config.devices = {config.devices[i]};
      config.seed = seed * 2 + i;
      beds_.push_back(std::make_unique<Bed>(std::move(config)));
      beds_[i]->step([](ConnectionManager& m) { ASSERT_TRUE(m.listen({.service_id = kService})); });
    }
  }

  void run() {
    for (int i = 0; i < 400; ++i) {
      now_ += engine::Duration(random_.next() % 3'000'000'000);
      pass_time();
      act(random_.next() % 2);
      carry();
    }
    // Both programs destroy all ids. Even if the link still loses frames, both connection managers
    // must then become empty.
    for (const size_t side : {0u, 1u}) {
      for (const ConnectionId id : known_[side]) {
        on(side, [&](ConnectionManager& m) { m.destroy(id); });
      }
    }
    for (int rounds = 0; rounds < 100000; ++rounds) {
      carry();
      const auto next = next_deadline();
      if (!next) break;
      now_ = std::max(now_, *next);
      pass_time();
      for (const size_t side : {0u, 1u}) {  // ids of requests that were still on the link
        for (const ConnectionId id : known_[side]) {
          on(side, [&](ConnectionManager& m) { m.destroy(id); });
        }
        known_[side].clear();
      }
    }
    EXPECT_EQ(beds_[0]->fabric.connections.size(), 0u);
    EXPECT_EQ(beds_[1]->fabric.connections.size(), 0u);
  }

  int established = 0;

 private:
  template <class Call>
  void on(size_t side, Call call) {
    Bed& bed = *beds_[side];
    bed.now = now_;
    bed.step(call);
    for (const engine::Output& output : bed.outputs.list) {
      const auto bytes = std::get<engine::TransmitFrame>(output).frame.bytes();
      const uint64_t fate = random_.next() % 10;
      const int copies = fate < 3 ? 0 : fate < 5 ? 2 : 1;
      for (int i = 0; i < copies; ++i) {
        auto& queue = link_[1 - side];
        const size_t at =
            random_.next() % 3 == 0 ? random_.next() % (queue.size() + 1) : queue.size();
        queue.emplace(queue.begin() + static_cast<std::ptrdiff_t>(at), bytes.begin(), bytes.end());
      }
    }
    bed.outputs.clear();
    for (const Event& event : std::exchange(bed.events, {})) take_note(side, event);
  }

  // Checks what holds for every connection ID: it is new in a request, it is established at most
  // once and only if it was accepted, it gets at most one reply, and no event follows
  // kTimewaitExit.
  void take_note(size_t side, const Event& event) {
    const auto key = std::pair(side, event.connection);
    switch (event.kind) {
      case EventKind::kRequest:
        EXPECT_TRUE(known_[side].insert(event.connection).second) << "an ID twice";
        break;
      case EventKind::kEstablished:
        EXPECT_TRUE(accepted_.contains(key));
        EXPECT_TRUE(up_.insert(key).second) << "established twice";
        ++established;
        break;
      case EventKind::kReply:
        EXPECT_FALSE(replied_.contains(key)) << "a second reply";
        replied_.insert(key);
        break;
      default:
        break;
    }
    EXPECT_FALSE(over_.contains(key)) << "an event after the last";
    if (event.kind == EventKind::kTimewaitExit) over_.insert(key);
  }

  void act(size_t side) {
    if (random_.next() % 3 == 0) {
      const Route route{
          .remote =
              beds_[1 - side]->fabric.objects.devices[engine::DeviceIndex{0}].config.addresses[0]};
      on(side, [&](ConnectionManager& m) {
        if (const auto id = m.connect(request(next_qpn_++, route))) known_[side].insert(*id);
      });
    }
    const std::set<ConnectionId> ids = known_[side];
    for (const ConnectionId id : ids) {
      if (random_.next() % 2 == 0) continue;
      on(side, [&](ConnectionManager& m) {
        switch (random_.next() % 8) {
          case 0:
            m.destroy(id);
            known_[side].erase(id);
            break;
          case 1:
            (void)m.reject(id);
            break;
          case 2:
            (void)m.delay(id, 18);
            break;
          case 3:
            (void)m.disconnect(id);
            break;
          case 4:
            (void)m.answer_disconnect(id);
            break;
          default:
            if (m.accept(id, acceptance(next_qpn_++)) == 0) accepted_.insert({side, id});
            (void)m.ready(id);
        }
      });
    }
  }

  void carry() {
    for (int i = 0; i < 1000 && (!link_[0].empty() || !link_[1].empty()); ++i) {
      for (const size_t side : {0u, 1u}) {
        if (link_[side].empty()) continue;
        const std::vector<uint8_t> frame = link_[side].front();
        link_[side].erase(link_[side].begin());
        const engine::ReceivedFrame received{engine::DeviceIndex{0}, frame};
        on(side, [&](ConnectionManager&) { beds_[side]->fabric.receive({{&received, 1}}); });
      }
    }
  }

  std::optional<engine::Instant> next_deadline() {
    const auto a = beds_[0]->fabric.connections.next_deadline();
    const auto b = beds_[1]->fabric.connections.next_deadline();
    if (!a || !b) return a ? a : b;
    return std::min(*a, *b);
  }

  void pass_time() {
    for (const size_t side : {0u, 1u}) on(side, [](ConnectionManager&) {});
  }

  engine::Random random_;
  std::vector<std::unique_ptr<Bed>> beds_;
  engine::Instant now_{};
  std::array<std::vector<std::vector<uint8_t>>, 2> link_;  // frames on their way to each side
  std::array<std::set<ConnectionId>, 2> known_;
  std::set<std::pair<size_t, ConnectionId>> accepted_, up_, replied_, over_;
  uint32_t next_qpn_ = 17;
};

TEST(CmPair, OverABadLinkEverythingComesToAnEnd) {
  int established = 0;
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Wild wild(seed);
    wild.run();
    established += wild.established;
  }
  EXPECT_GT(established, 100);
}

}  // namespace
}  // namespace rocemu::test
