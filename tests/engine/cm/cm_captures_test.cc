// Replays captured conversations of rxe, and takes the place of each of the two ends in turn: the
// other end's frames are delivered one by one, and this side must send the frames that rxe sent,
// with the same fields.
//
// Some fields may differ and are adjusted before the comparison:
//   - communication IDs of this side (those of rxe are byte-swapped counters, ours are random)
//   - transaction IDs of this side's own requests (an answer must have the ID of its request)
//   - the IPv4 identification (rxe counts frames, here it is 0), and therefore checksum and ICRC
//   - the BTH's PSN (each capture starts in the middle of rxe's count)
// The values that the program chooses (QP numbers, starting PSNs, private data ...) come from the
// capture.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "emulator/engine/fabric.h"
#include "tests/support/array_memory.h"
#include "tests/wire/captures.h"
#include "wire/cm/cm_print.h"

namespace rocemu::test {
namespace {

using engine::cm::ConnectionId;
using engine::cm::EventKind;
using wire::CmMad;

constexpr engine::DeviceIndex kDevice{0};

struct Step {
  bool ours = false;
  std::vector<uint8_t> frame;
  wire::Packet packet;  // the packet in `frame`
  CmMad mad;
};

std::vector<Step> conversation(const wire::Capture& capture, const wire::IpAddress& us) {
  std::vector<Step> steps;
  for (size_t i = 0; i < capture.frames.size(); ++i) {
    if (capture.name == wire::kBadIcrcCapture && i == wire::kBadIcrcFrame) continue;
    const auto packet = wire::parse_frame(capture.frames[i]);
    if (!packet || packet->bth.dest_qpn != wire::kGsiQpn) continue;
    const auto mad = wire::parse_cm_mad(packet->payload);
    if (!mad) continue;
    Step step{.ours = packet->src_ip == us, .frame = capture.frames[i], .packet = {}, .mad = *mad};
    step.packet = *packet;
    steps.push_back(std::move(step));
  }
  // If two DREQs crossed, this side must send its own before it receives the peer's; the capture
  // can have them in either order.
  for (size_t i = 0; i + 1 < steps.size(); ++i) {
    if (!steps[i].ours && steps[i + 1].ours &&
        std::holds_alternative<wire::CmDreq>(steps[i].mad.message) &&
        std::holds_alternative<wire::CmDreq>(steps[i + 1].mad.message)) {
      std::swap(steps[i], steps[i + 1]);
    }
  }
  return steps;
}

// One end of a conversation.
class Side {
 public:
  Side(const wire::Capture& capture, const wire::IpAddress& us)
      : steps_(conversation(capture, us)), fabric_(config(steps_, us), memory_) {}

  void replay() {
    for (const Step& step : steps_) {
      SCOPED_TRACE((step.ours ? "sends " : "gets ") + wire::to_string(step.mad));
      step.ours ? send(step) : deliver(step);
      if (testing::Test::HasFatalFailure()) return;
    }
    EXPECT_TRUE(sent_.empty()) << "one more: " << wire::to_string(sent_.front());
  }

  size_t steps() const { return steps_.size(); }

 private:
  static engine::FabricConfig config(const std::vector<Step>& steps, const wire::IpAddress& us) {
    engine::FabricConfig config;
    engine::DeviceConfig device;
    device.name = "rxe";
    device.addresses = {us};
    for (const Step& step : steps)
      device.mac = step.ours ? step.packet.src_mac : step.packet.dst_mac;
    config.devices.push_back(device);
    return config;
  }

  engine::cm::ConnectionManager& manager() { return fabric_.connections; }

  template <class Call>
  void act(Call call) {
    fabric_.begin_step(engine::Instant(), outputs_);
    fabric_.begin_expiry();
    call();
    fabric_.run();
    for (const engine::Output& output : outputs_.list) {
      const auto* transmit = std::get_if<engine::TransmitFrame>(&output);
      ASSERT_NE(transmit, nullptr);
      const auto bytes = transmit->frame.bytes();
      frames_.emplace_back(bytes.begin(), bytes.end());
      sent_.push_back(*wire::parse_cm_mad(wire::parse_frame(frames_.back())->payload));
    }
    outputs_.list.clear();
    while (const auto event = manager().next_event()) {
      if (event->kind == EventKind::kRequest || event->kind == EventKind::kResolveRequest) {
        requests_.push_back(event->connection);
      }
    }
  }

  // ---- IDs ----

  uint32_t to_ours(uint32_t rxe) const {
    const auto found = ours_.find(rxe);
    return found != ours_.end() ? found->second : rxe;
  }

  static bool begins_transaction(const wire::CmMessage& message) {
    return std::holds_alternative<wire::CmReq>(message) ||
           std::holds_alternative<wire::CmDreq>(message) ||
           std::holds_alternative<wire::CmSidrReq>(message);
  }
  uint64_t transaction_here(uint64_t captured) const {
    const auto found = transactions_.find(captured);
    return found != transactions_.end() ? found->second : captured;
  }

  void deliver(const Step& step) {
    CmMad mad = step.mad;
    std::visit(
        [&](auto& message) {
          if constexpr (requires { message.remote_comm_id; }) {
            message.remote_comm_id = to_ours(message.remote_comm_id);
          }
        },
        mad.message);
    if (auto* rep = std::get_if<wire::CmSidrRep>(&mad.message)) {
      rep->request_id = to_ours(rep->request_id);
    }
    mad.transaction_id = transaction_here(mad.transaction_id);
    wire::Packet packet = step.packet;
    std::array<uint8_t, wire::kMadSize> payload;
    wire::emit(mad, payload);
    packet.payload = payload;
    std::vector<uint8_t> frame(wire::frame_size(packet, payload.size()));
    wire::emit_frame(packet, frame);
    const engine::ReceivedFrame received{kDevice, frame};
    act([&] { fabric_.receive({{&received, 1}}); });
  }

  void send(const Step& step) {
    // If rxe's program had nothing to decide, this side has already sent its answer.
    if (sent_.empty())
      act([&] { std::visit([&](const auto& m) { answer(m, step); }, step.mad.message); });
    ASSERT_EQ(sent_.size(), 1u);
    CmMad got = sent_.front();
    std::vector<uint8_t> frame = frames_.front();
    sent_.clear();
    frames_.clear();
    std::visit([&](auto& message) { learn_ids(message, step.mad.message); }, got.message);
    const uint64_t transaction = step.mad.transaction_id;
    if (begins_transaction(step.mad.message)) transactions_[transaction] = got.transaction_id;
    EXPECT_EQ(got.transaction_id, transaction_here(transaction));
    got.transaction_id = transaction;
    EXPECT_EQ(got, step.mad) << "got      " << wire::to_string(got) << "\nexpected "
                             << wire::to_string(step.mad);
    compare_frames(frame, got, step);
  }

  // This side and rxe choose different IDs. Records which ID of rxe corresponds to the ID in `got`,
  // and replaces the ID in `got` by rxe's.
  template <class Message>
  void learn_ids(Message& got, const wire::CmMessage& captured) {
    const auto* rxe = std::get_if<Message>(&captured);
    if (rxe == nullptr) return;
    if constexpr (requires { got.local_comm_id; }) {
      if (rxe->local_comm_id == 0) return;
      const auto known = ours_.find(rxe->local_comm_id);
      if (known != ours_.end()) {
        EXPECT_EQ(got.local_comm_id, known->second);
      }
      ours_[rxe->local_comm_id] = got.local_comm_id;
      got.local_comm_id = rxe->local_comm_id;
    } else if constexpr (std::is_same_v<Message, wire::CmSidrReq>) {
      ours_[rxe->request_id] = got.request_id;
      got.request_id = rxe->request_id;
    }
  }

  // Compares the whole frame with the captured one, after the fields that may differ were replaced
  // by those of the capture.
  void compare_frames(std::span<const uint8_t> frame, const CmMad& mad, const Step& step) {
    wire::Packet packet = *wire::parse_frame(frame);
    std::array<uint8_t, wire::kMadSize> payload;
    wire::emit(mad, payload);
    packet.payload = payload;
    // the engine does not know MAC addresses outside the fabric: the daemon's sockets do
    packet.dst_mac = step.packet.dst_mac;
    packet.ip_id = step.packet.ip_id;
    packet.bth.psn = step.packet.bth.psn;
    std::vector<uint8_t> bytes(wire::frame_size(packet, payload.size()));
    wire::emit_frame(packet, bytes);
    EXPECT_EQ(bytes, step.frame) << wire::to_string(packet);
  }

  // ---- The program, which repeats the actions of rxe's ----

  ConnectionId next_request() {
    EXPECT_FALSE(requests_.empty());
    const ConnectionId id = requests_.empty() ? ConnectionId{} : requests_.front();
    if (!requests_.empty()) requests_.erase(requests_.begin());
    return id;
  }

  void answer(const wire::CmReq& req, const Step&) {
    engine::cm::Connect connect;
    connect.route = {.device = kDevice,
                     .remote = req.primary.remote_gid,
                     .traffic_class = req.primary.traffic_class,
                     .hop_limit = req.primary.hop_limit,
                     .flow_label = req.primary.flow_label};
    connect.service_id = req.service_id;
    connect.qpn = engine::QpNumber{req.local_qpn};
    connect.starting_psn = req.starting_psn.value();
    connect.srq = req.srq;
    connect.flow_control = req.end_to_end_flow_control;
    connect.responder_resources = req.responder_resources;
    connect.initiator_depth = req.initiator_depth;
    connect.retry_count = req.retry_count;
    connect.rnr_retry_count = req.rnr_retry_count;
    connect.path_mtu = static_cast<abi::Mtu>(req.path_mtu);
    connect.private_data = req.private_data;
    EXPECT_TRUE(manager().connect(connect));
  }

  void answer(const wire::CmRep& rep, const Step&) {
    engine::cm::Accept accept;
    accept.qpn = engine::QpNumber{rep.local_qpn};
    accept.starting_psn = rep.starting_psn.value();
    accept.srq = rep.srq;
    accept.flow_control = rep.end_to_end_flow_control;
    accept.responder_resources = rep.responder_resources;
    accept.initiator_depth = rep.initiator_depth;
    accept.rnr_retry_count = rep.rnr_retry_count;
    accept.private_data = rep.private_data;
    EXPECT_EQ(manager().accept(next_request(), accept), 0);
  }

  void answer(const wire::CmRtu& rtu, const Step&) {
    EXPECT_EQ(manager().ready({to_ours(rtu.local_comm_id)}, rtu.private_data), 0);
  }
  void answer(const wire::CmDreq& dreq, const Step&) {
    EXPECT_EQ(manager().disconnect({to_ours(dreq.local_comm_id)}, dreq.private_data), 0);
  }
  void answer(const wire::CmDrep& drep, const Step&) {
    EXPECT_EQ(manager().answer_disconnect({to_ours(drep.local_comm_id)}, drep.private_data), 0);
  }

  void answer(const wire::CmSidrReq& req, const Step& step) {
    engine::cm::Resolve resolve;
    resolve.route = {.device = kDevice, .remote = step.packet.dst_ip};
    resolve.service_id = req.service_id;
    resolve.private_data = req.private_data;
    EXPECT_TRUE(manager().resolve(resolve));
  }

  void answer(const wire::CmSidrRep& rep, const Step&) {
    engine::cm::Resolved resolved;
    resolved.status = static_cast<wire::SidrStatus>(rep.status);
    resolved.qpn = engine::QpNumber{rep.qpn};
    resolved.qkey = rep.qkey;
    resolved.private_data = rep.private_data;
    EXPECT_EQ(manager().answer_resolve(next_request(), resolved), 0);
  }

  template <class Message>
  void answer(const Message&, const Step&) {
    FAIL() << "no consumer's answer";
  }

 public:
  // Listens to all services, unless the capture shows that a service has no listener.
  void listen_to_what_was_served() {
    std::set<uint64_t> served;
    for (const Step& step : steps_) {
      if (step.ours) continue;
      if (const auto* req = std::get_if<wire::CmReq>(&step.mad.message))
        served.insert(req->service_id);
      if (const auto* req = std::get_if<wire::CmSidrReq>(&step.mad.message)) {
        served.insert(req->service_id);
      }
    }
    for (const Step& step : steps_) {
      const auto* rej = std::get_if<wire::CmRej>(&step.mad.message);
      if (step.ours && rej != nullptr && rej->reason == 8) served.clear();
    }
    for (const uint64_t service : served) {
      ASSERT_TRUE(manager().listen({.service_id = service}));
    }
  }

 private:
  std::vector<Step> steps_;
  ArrayMemory memory_;
  engine::Fabric fabric_;
  engine::Outputs outputs_;
  std::vector<CmMad> sent_;
  std::vector<std::vector<uint8_t>> frames_;
  std::vector<ConnectionId> requests_;
  std::map<uint32_t, uint32_t> ours_;          // this side's communication IDs, by rxe's
  std::map<uint64_t, uint64_t> transactions_;  // this side's transaction IDs, by rxe's
};

struct Case {
  const char* capture;
  wire::IpAddress client, server;
  size_t messages;
};

const wire::IpAddress kOne = wire::IpAddress::from_v4(10, 7, 0, 1);
const wire::IpAddress kTwo = wire::IpAddress::from_v4(10, 7, 0, 2);

class RxeConversation : public testing::TestWithParam<Case> {};

TEST_P(RxeConversation, IsTheSameWithUsOnEitherSide) {
  const Case& test = GetParam();
  for (const wire::Capture& capture : wire::rxe_captures()) {
    if (capture.name != test.capture) continue;
    for (const wire::IpAddress& us : {test.client, test.server}) {
      SCOPED_TRACE("as " + wire::to_string(us));
      Side side(capture, us);
      ASSERT_EQ(side.steps(), test.messages);
      side.listen_to_what_was_served();
      side.replay();
    }
    return;
  }
  FAIL() << "no such capture";
}

INSTANTIATE_TEST_SUITE_P(Captures, RxeConversation,
                         testing::Values(Case{"rping.pcap", kTwo, kOne, 5},
                                         Case{"ucmatose.pcap", kTwo, kOne, 5},
                                         Case{"udaddy.pcap", kTwo, kOne, 2},
                                         Case{"cm_reject.pcap", kTwo, kOne, 2},
                                         Case{"perf_write_cm.pcap", kTwo, kOne, 12},
                                         Case{"rsocket_rstream.pcap", kTwo, kOne, 7}),
                         [](const auto& param) {
                           const std::string name = param.param.capture;
                           return name.substr(0, name.find('.'));
                         });

// One of the two requests in this capture was made by hand, not by rxe, so only the other side can
// be replayed.
TEST(RxeConversation, AHandMadeRequestGetsRxesReply) {
  for (const wire::Capture& capture : wire::rxe_captures()) {
    if (capture.name != wire::kBadIcrcCapture) continue;
    Side side(capture, wire::IpAddress::from_v4(10, 9, 0, 2));
    ASSERT_EQ(side.steps(), 2u);
    side.listen_to_what_was_served();
    side.replay();
  }
}

}  // namespace
}  // namespace rocemu::test
