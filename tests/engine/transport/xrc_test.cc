// Tests extended reliable connections (IBTA vol 1, annex A14; ibv_open_xrcd(3), ibv_open_qp(3)):
// several processes can receive on one QP, and the sender selects one by naming its SRQ.
#include <gtest/gtest.h>

#include <cerrno>
#include <optional>

#include "emulator/engine/base/random.h"
#include "tests/support/bench.h"
#include "tests/support/matchers.h"
#include "tests/support/pair.h"

namespace rocemu::test {
namespace {

using abi::QpType;
using abi::WcStatus;
using abi::WrOpcode;

constexpr wire::IpAddress kSender = wire::IpAddress::from_v4(10, 0, 0, 1);
constexpr wire::IpAddress kReceivers = wire::IpAddress::from_v4(10, 0, 0, 2);
constexpr uint64_t kBuffer = 0x10000000;
// the handle of the first reference to the target; each further reference has the next number
constexpr uint64_t kTargetHandle = 800;
constexpr abi::QpCap kCap = {.max_send_wr = 16,
                             .max_recv_wr = 16,
                             .max_send_sge = 4,
                             .max_recv_sge = 4,
                             .max_inline_data = 64};
constexpr uint32_t kAllAccess = abi::kAccessLocalWrite | abi::kAccessRemoteWrite |
                                abi::kAccessRemoteRead | abi::kAccessRemoteAtomic;

engine::FabricConfig two_devices(uint32_t ack_coalescing) {
  engine::FabricConfig config;
  config.ack_coalescing = ack_coalescing;
  config.devices = {
      {.name = "left", .mac = {{2, 0, 0, 0, 0, 1}}, .addresses = {kSender}, .policy = {}},
      {.name = "right", .mac = {{2, 0, 0, 0, 0, 2}}, .addresses = {kReceivers}, .policy = {}}};
  return config;
}

struct OpenXrcd {
  uint64_t inode = 42;
  bool create = true;
  bool exclusive = false;
};

uint32_t open_xrcd(Client& client, const OpenXrcd& how = {}) {
  abi::Request::Body body{};
  body.open_xrcd = {.device = 7,
                    .inode = how.inode,
                    .create = how.create ? 1u : 0u,
                    .exclusive = how.exclusive ? 1u : 0u};
  const abi::Reply reply = client.command(abi::Op::kOpenXrcd, body);
  client.error = reply.error;
  return reply.body.object.handle;
}

int close_xrcd(Client& client, uint32_t handle) {
  abi::Request::Body body{};
  body.object.handle = handle;
  return client.command(abi::Op::kCloseXrcd, body).error;
}

int open_qp(Client& client, uint32_t xrcd, uint32_t qpn, uint64_t user_handle) {
  abi::Request::Body body{};
  body.open_qp = {.user_handle = user_handle, .xrcd = xrcd, .qpn = qpn};
  return client.command(abi::Op::kOpenQp, body).error;
}

/// A process of the receiving side, with its own SRQ and memory.
struct Receiver {
  Receiver(Bench& bench, uint32_t id)
      : client(bench, engine::ClientId{id}, engine::DeviceIndex{1}),
        xrcd(open_xrcd(client)),
        pd(client.alloc_pd()),
        cq(client.create_cq(64)) {
    bench.memory.map(client.id(), kBuffer, 65536);
    mr = client.reg_mr(pd, kBuffer, 65536, kAllAccess);
    srq = client.create_srq(
        {.pd = pd, .user_handle = 700 + id, .type = abi::SrqType::kXrc, .xrcd = xrcd, .cq = cq});
    EXPECT_EQ(client.error, 0);
  }
  void post(uint64_t wr_id, uint32_t length = 1024) {
    client.post_srq_recv(srq, {.wr_id = wr_id, .sges = {{kBuffer, length, mr.lkey}}});
  }
  std::vector<uint8_t> bytes(size_t length, uint64_t offset = 0) {
    const auto all = client.bench().memory.at(client.id(), kBuffer + offset, length);
    return {all.begin(), all.end()};
  }

  Client client;
  uint32_t xrcd, pd, cq;
  Mr mr;
  uint32_t srq = 0;
};

struct Xrc {
  explicit Xrc(uint32_t ack_coalescing = 1)
      : bench(two_devices(ack_coalescing)),
        sender(bench, engine::ClientId{1}, engine::DeviceIndex{0}),
        first(bench, 2),
        second(bench, 3) {
    bench.memory.map(sender.id(), kBuffer, 65536);
    pd = sender.alloc_pd();
    cq = sender.create_cq(64);
    mr = sender.reg_mr(pd, kBuffer, 65536);
    initiator = sender.create_qp({.pd = pd, .send_cq = cq, .type = QpType::kXrcSend, .cap = kCap});
    EXPECT_EQ(sender.error, 0);
    target = first.client.create_qp(
        {.xrcd = first.xrcd, .type = QpType::kXrcRecv, .user_handle = kTargetHandle});
    EXPECT_EQ(first.client.error, 0);
    EXPECT_EQ(open_qp(second.client, second.xrcd, target, kTargetHandle + 1), 0);
    Connection connection;
    connection.max_rd_atomic = 4;
    connection.access = kAllAccess;
    connection.type = QpType::kXrcSend;
    EXPECT_TRUE(bring_up(sender, initiator, abi::QpState::kRts, connection,
                         address_vector(kReceivers), target));
    connection.type = QpType::kXrcRecv;
    EXPECT_TRUE(bring_up(first.client, target, abi::QpState::kRts, connection,
                         address_vector(kSender), initiator));
    bench.log.clear();
  }

  SendWr wr(uint64_t wr_id, const Receiver& to, uint32_t length = 3) const {
    return {.wr_id = wr_id,
            .sges = {{kBuffer, length, mr.lkey}},
            .remote_address = kBuffer + 512,
            .rkey = to.mr.rkey,
            .remote_srqn = to.srq};
  }
  void fill(const std::vector<uint8_t>& bytes) {
    std::ranges::copy(bytes, bench.memory.at(sender.id(), kBuffer, bytes.size()).begin());
  }
  std::vector<abi::Cqe> take(engine::ClientId client) {
    auto out = completions_of(bench.log, client);
    std::erase_if(bench.log, [&](const Timed& entry) {
      const auto* completion = std::get_if<engine::Completion>(&entry.output);
      return completion != nullptr && completion->client == client;
    });
    return out;
  }
  /// Returns (client, event) for all async events since the last call.
  std::vector<std::pair<uint32_t, abi::EventType>> take_events() {
    std::vector<std::pair<uint32_t, abi::EventType>> out;
    for (const Timed& entry : bench.log) {
      const auto* event = std::get_if<engine::AsyncEvent>(&entry.output);
      if (event != nullptr) out.emplace_back(event->client.value, event->type);
    }
    bench.log.clear();
    return out;
  }

  Bench bench;
  Client sender;
  Receiver first, second;
  uint32_t pd = 0, cq = 0, initiator = 0, target = 0;
  Mr mr;
};

// A14.3.1: receive WQE, PD and CQ, and therefore the process, are those of the SRQ that the XRCETH
// names.
TEST(Xrc, AMessageGoesToTheProcessWhoseSrqItNames) {
  Xrc x;
  x.first.post(10);
  x.second.post(20);
  x.fill({1, 2, 3});
  x.sender.post_send(x.initiator, x.wr(1, x.second));
  const auto done = x.take(x.second.client.id());
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].wr_id, 20u);
  EXPECT_EQ(done[0].status, 0u);
  EXPECT_EQ(done[0].byte_len, 3u);
  EXPECT_EQ(done[0].qp_num, x.target);
  EXPECT_EQ(done[0].src_qp, x.initiator);
  EXPECT_EQ(done[0].queue, abi::WorkQueue::kSrq);
  EXPECT_EQ(done[0].wqe_count, x.second.srq);
  EXPECT_EQ(x.second.bytes(3), (std::vector<uint8_t>{1, 2, 3}));
  EXPECT_EQ(x.first.bytes(3), (std::vector<uint8_t>{0, 0, 0}));
  ASSERT_EQ(x.take(x.sender.id()).size(), 1u);

  x.sender.post_send(x.initiator, x.wr(2, x.first, 3000));
  // The message is too long for the buffer of x.first, which has 1024 bytes. The error shows that
  // x.first's WQE was used.
  const auto failed = x.take(x.first.client.id());
  ASSERT_EQ(failed.size(), 1u);
  EXPECT_EQ(failed[0].status, static_cast<uint32_t>(WcStatus::kLocLenErr));
}

TEST(Xrc, MessagesOfSeveralPacketsNameTheSrqInEach) {
  Xrc x;
  x.second.post(20, 8192);
  x.sender.post_send(x.initiator, x.wr(1, x.second, 5000));
  const auto done = x.take(x.second.client.id());
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].byte_len, 5000u);
}

TEST(Xrc, WritesReadsAndAtomicsAccessTheMemoryOfTheSrqsProcess) {
  Xrc x;
  x.fill({7, 8, 9});
  SendWr write = x.wr(1, x.second);
  write.opcode = WrOpcode::kRdmaWrite;
  x.sender.post_send(x.initiator, write);
  EXPECT_EQ(x.second.bytes(3, 512), (std::vector<uint8_t>{7, 8, 9}));
  EXPECT_EQ(x.first.bytes(3, 512), (std::vector<uint8_t>{0, 0, 0}));

  x.fill({0, 0, 0});
  SendWr read = x.wr(2, x.second);
  read.opcode = WrOpcode::kRdmaRead;
  x.sender.post_send(x.initiator, read);
  const auto bytes = x.bench.memory.at(x.sender.id(), kBuffer, 3);
  EXPECT_EQ(std::vector<uint8_t>(bytes.begin(), bytes.end()), (std::vector<uint8_t>{7, 8, 9}));

  SendWr add = x.wr(3, x.second, 8);
  add.opcode = WrOpcode::kAtomicFetchAndAdd;
  add.compare_add = 1;
  x.sender.post_send(x.initiator, add);
  EXPECT_EQ(x.second.bytes(3, 512), (std::vector<uint8_t>{8, 8, 9}));
  for (const abi::Cqe& cqe : x.take(x.sender.id())) EXPECT_EQ(cqe.status, 0u) << cqe.wr_id;

  x.second.post(20);
  SendWr with_imm = x.wr(4, x.second);
  with_imm.opcode = WrOpcode::kRdmaWriteWithImm;
  with_imm.imm = 5;
  x.sender.post_send(x.initiator, with_imm);
  ASSERT_EQ(x.take(x.second.client.id()).size(), 1u);
}

// The R_Key is checked against the PD of the SRQ, so a sender cannot name one process's SRQ and
// another's memory.
TEST(Xrc, AnRkeyOfAnotherProcessIsRefused) {
  Xrc x;
  SendWr write = x.wr(1, x.first);
  write.opcode = WrOpcode::kRdmaWrite;
  write.rkey = x.second.mr.rkey;
  x.sender.post_send(x.initiator, write);
  const auto done = x.take(x.sender.id());
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].status, static_cast<uint32_t>(WcStatus::kRemAccessErr));
  // ibv_open_qp(3): events of the QP go to all processes that opened it.
  EXPECT_EQ(x.take_events(), (std::vector<std::pair<uint32_t, abi::EventType>>{
                                 {2, abi::EventType::kQpAccessErr},
                                 {3, abi::EventType::kQpAccessErr},
                                 {2, abi::EventType::kQpLastWqeReached},
                                 {3, abi::EventType::kQpLastWqeReached}}));
}

TEST(Xrc, AnSrqThatIsNoXrcSrqOfTheDomainIsAnInvalidRequest) {
  for (const int which : {0, 1, 2}) {
    Xrc x;
    SendWr send = x.wr(1, x.first);
    if (which == 0) send.remote_srqn = 9999;
    if (which == 1) send.remote_srqn = x.first.client.create_srq({.pd = x.first.pd});
    if (which == 2) {
      const uint32_t other = open_xrcd(x.first.client, {.inode = 43});
      send.remote_srqn = x.first.client.create_srq(
          {.pd = x.first.pd, .type = abi::SrqType::kXrc, .xrcd = other, .cq = x.first.cq});
    }
    x.sender.post_send(x.initiator, send);
    const auto done = x.take(x.sender.id());
    ASSERT_EQ(done.size(), 1u);
    EXPECT_EQ(done[0].status, static_cast<uint32_t>(WcStatus::kRemInvReqErr));
  }
}

TEST(Xrc, AnEmptySrqIsReceiverNotReady) {
  Xrc x;
  x.sender.post_send(x.initiator, x.wr(1, x.second));
  EXPECT_TRUE(x.take(x.sender.id()).empty());
  x.second.post(20);
  x.bench.advance_to(10ms);
  EXPECT_EQ(x.take(x.sender.id()).size(), 1u);
}

TEST(Xrc, TheTargetLivesUntilItsLastReferenceIsDestroyed) {
  Xrc x;
  EXPECT_EQ(x.first.client.destroy_qp(x.target), 0);
  EXPECT_EQ(x.first.client.destroy_qp(x.target), ENOENT);
  x.second.post(20);
  x.sender.post_send(x.initiator, x.wr(1, x.second));
  EXPECT_EQ(x.take(x.second.client.id()).size(), 1u);
  EXPECT_EQ(x.second.client.state(x.target), abi::QpState::kRts);
  EXPECT_EQ(x.second.client.destroy_qp(x.target), 0);
  EXPECT_TRUE(x.bench.engine().snapshot().devices[1].qps.empty());
}

TEST(Xrc, TheTargetOutlivesTheProcessThatMadeIt) {
  Xrc x;
  x.bench.detach(x.first.client.id());
  x.second.post(20);
  x.sender.post_send(x.initiator, x.wr(1, x.second));
  EXPECT_EQ(x.take(x.second.client.id()).size(), 1u);
  // The SRQ of the process that ended does not exist any more.
  x.sender.post_send(x.initiator, x.wr(2, x.first));
  const auto done = x.take(x.sender.id());
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(done[1].status, static_cast<uint32_t>(WcStatus::kRemInvReqErr));
  x.bench.detach(x.second.client.id());
  EXPECT_TRUE(x.bench.engine().snapshot().devices[1].qps.empty());
  EXPECT_TRUE(x.bench.engine().snapshot().devices[1].xrcds.empty());
}

// The frames are those of an XRC peer, with any SRQ, opcode and length. No SRQ may lose a WQE.
TEST(Xrc, HostileFramesDoNoHarm) {
  constexpr std::array kOpcodes = {
      wire::Opcode::kXrcSendFirst,   wire::Opcode::kXrcSendMiddle,  wire::Opcode::kXrcSendLast,
      wire::Opcode::kXrcSendOnly,    wire::Opcode::kXrcSendOnlyImm, wire::Opcode::kXrcWriteFirst,
      wire::Opcode::kXrcWriteOnly,   wire::Opcode::kXrcReadRequest, wire::Opcode::kXrcFetchAdd,
      wire::Opcode::kXrcSendOnlyInv, wire::Opcode::kXrcAck};
  engine::Random random(1);
  std::optional<Xrc> x;
  uint64_t posted = 0, completed = 0;
  for (int i = 0; i < 8000; ++i) {
    if (!x || x->first.client.state(x->target) == abi::QpState::kErr || completed == posted) {
      x.emplace();
      completed = 0;
      for (posted = 0; posted < 8;) {
        x->first.post(posted++, 3000);
        x->second.post(posted++, 3000);
      }
    }
    wire::Packet packet;
    packet.src_ip = kSender;
    packet.dst_ip = kReceivers;
    packet.bth.opcode = kOpcodes[random.next() % kOpcodes.size()];
    packet.bth.dest_qpn = x->target;
    packet.bth.ack_req = true;
    const engine::FabricSnapshot now = x->bench.engine().snapshot();
    for (const auto& qp : now.devices[1].qps) {
      packet.bth.psn = wire::Psn(qp.expected_psn) + static_cast<uint32_t>(random.next() % 16 == 0);
    }
    const std::array srqs = {x->first.srq, x->second.srq, x->first.srq, 77u};
    packet.xrceth.srqn = srqs[random.next() % (random.next() % 8 == 0 ? 4 : 3)];
    packet.reth = {.va = kBuffer,
                   .rkey = x->first.mr.rkey,
                   .dma_length = static_cast<uint32_t>(random.next() % 2000)};
    packet.atomic = {.va = kBuffer, .rkey = x->second.mr.rkey};
    const size_t length = random.next() % 3 != 0 ? 1024 : random.next() % 1500;
    const bool has_payload = wire::find_opcode(packet.bth.opcode)->has_payload;
    const auto bytes = frame_of(packet, std::vector<uint8_t>(has_payload ? length : 0));
    x->bench.step(engine::ReceivedFrame{engine::DeviceIndex{1}, bytes});
    for (const engine::ClientId id : {x->first.client.id(), x->second.client.id()}) {
      completed += x->take(id).size();
    }
    x->bench.log.clear();
    ASSERT_LE(completed, posted);
  }
  x->first.client.set_state(x->target, abi::QpState::kReset);
  const engine::FabricSnapshot at_the_end = x->bench.engine().snapshot();
  uint64_t left = 0;
  for (const auto& srq : at_the_end.devices[1].srqs) left += srq.posted;
  EXPECT_EQ(left, posted - completed);
}

// After a CQ overran, completions of its SRQ can no longer be reported (ibv_get_async_event(3),
// IBV_EVENT_SRQ_ERR).
TEST(Xrc, AnOverrunOfItsCqFailsTheSrq) {
  Xrc x;
  const uint32_t cq = x.first.client.create_cq(1, 600);
  const uint32_t srq = x.first.client.create_srq({.pd = x.first.pd,
                                                  .user_handle = 777,
                                                  .type = abi::SrqType::kXrc,
                                                  .xrcd = x.first.xrcd,
                                                  .cq = cq});
  SendWr send = x.wr(1, x.first);
  send.remote_srqn = srq;
  for (uint64_t i = 0; i < 2; ++i) {
    x.first.client.post_srq_recv(srq, {.wr_id = i, .sges = {{kBuffer, 64, x.first.mr.lkey}}});
    x.sender.post_send(x.initiator, send);
  }
  // The message that overran the CQ is refused, so that its sender does not believe that it
  // arrived.
  const auto done = x.take(x.sender.id());
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(done[0].status, 0u);
  EXPECT_EQ(done[1].status, static_cast<uint32_t>(WcStatus::kRemOpErr));
  std::vector<std::pair<uint32_t, abi::EventType>> expected = {{2, abi::EventType::kCqErr}};
  for (const auto type : {abi::EventType::kQpReqErr, abi::EventType::kQpLastWqeReached}) {
    for (const uint32_t holder : {2u, 3u}) expected.emplace_back(holder, type);
  }
  expected.emplace_back(2, abi::EventType::kSrqErr);
  EXPECT_EQ(x.take_events(), expected);
}

// The messages are posted together: those that were received are acknowledged before the NAK.
TEST(Xrc, AnOverrunInARowOfMessagesRefusesTheOneThatFoundNoRoom) {
  for (const bool joins : {false, true}) {
    Xrc x(joins ? 16 : 1);
    const uint32_t cq = x.first.client.create_cq(3);
    const uint32_t srq = x.first.client.create_srq(
        {.pd = x.first.pd, .type = abi::SrqType::kXrc, .xrcd = x.first.xrcd, .cq = cq});
    std::vector<SendWr> sends;
    for (uint64_t i = 0; i < 6; ++i) {
      x.first.client.post_srq_recv(srq, {.wr_id = i, .sges = {{kBuffer, 64, x.first.mr.lkey}}});
      sends.push_back(x.wr(i, x.first));
      sends.back().remote_srqn = srq;
    }
    x.sender.post_sends(x.initiator, sends);
    const auto done = x.take(x.sender.id());
    ASSERT_EQ(done.size(), 6u);
    for (size_t i = 0; i < done.size(); ++i) {
      EXPECT_EQ(done[i].status, static_cast<uint32_t>(i < 3    ? WcStatus::kSuccess
                                                      : i == 3 ? WcStatus::kRemOpErr
                                                               : WcStatus::kWrFlushErr))
          << i;
    }
    EXPECT_EQ(x.take(x.first.client.id()).size(), 3u);
  }
}

/// Overruns `cq` so that its XRC SRQ fails: another QP with the same CQ is flushed.
void overrun(Receiver& receiver, uint32_t cq) {
  const uint32_t qp = receiver.client.create_qp(
      {.pd = receiver.pd, .send_cq = cq, .recv_cq = cq, .cap = EndpointOptions{}.cap});
  ASSERT_TRUE(bring_up(receiver.client, qp, abi::QpState::kRts, {}, address_vector(kSender), 1));
  for (uint64_t i = 0; i < 2; ++i) receiver.client.post_recv(qp, {.wr_id = i});
  receiver.client.set_state(qp, abi::QpState::kErr);
}

// The SRQ still has a posted receive, but the completion of that receive could not be reported.
TEST(Xrc, AnSrqThatFailedRefusesMessages) {
  Xrc x;
  const uint32_t cq = x.first.client.create_cq(1);
  const uint32_t srq = x.first.client.create_srq(
      {.pd = x.first.pd, .type = abi::SrqType::kXrc, .xrcd = x.first.xrcd, .cq = cq});
  ASSERT_NO_FATAL_FAILURE(overrun(x.first, cq));
  x.first.client.post_srq_recv(srq, {.wr_id = 2, .sges = {{kBuffer, 64, x.first.mr.lkey}}});
  SendWr send = x.wr(1, x.first);
  send.remote_srqn = srq;
  x.sender.post_send(x.initiator, send);
  const auto done = x.take(x.sender.id());
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].status, static_cast<uint32_t>(WcStatus::kRemOpErr));
}

// A WRITE needs no receive, so it succeeds.
TEST(Xrc, AnSrqThatFailedStillNamesMemory) {
  Xrc x;
  const uint32_t cq = x.first.client.create_cq(1);
  const uint32_t srq = x.first.client.create_srq(
      {.pd = x.first.pd, .type = abi::SrqType::kXrc, .xrcd = x.first.xrcd, .cq = cq});
  ASSERT_NO_FATAL_FAILURE(overrun(x.first, cq));
  SendWr write = x.wr(1, x.first);
  write.remote_srqn = srq;
  write.opcode = WrOpcode::kRdmaWrite;
  x.sender.post_send(x.initiator, write);
  const auto done = x.take(x.sender.id());
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].status, 0u);
}

// ibv_get_async_event(3), IBV_EVENT_QP_LAST_WQE_REACHED: each process that has opened the target QP
// learns that the QP takes no more receives from any SRQ.
TEST(Xrc, ATargetThatFailsTellsAllItsHoldersOfTheLastWqe) {
  Xrc x;
  x.first.client.set_state(x.target, abi::QpState::kErr);
  EXPECT_EQ(x.take_events(),
            (std::vector<std::pair<uint32_t, abi::EventType>>{
                {2, abi::EventType::kQpLastWqeReached}, {3, abi::EventType::kQpLastWqeReached}}));
}

TEST(Xrc, AHalfHasNoQueuesOfTheOther) {
  Xrc x;
  const abi::QpCap initiator = x.sender.query_qp(x.initiator).cap;
  EXPECT_EQ(initiator.max_recv_wr, 0u);
  const abi::QpCap target = x.first.client.query_qp(x.target).cap;
  EXPECT_EQ(target.max_send_wr, 0u);
  EXPECT_EQ(target.max_recv_wr, 0u);
}

TEST(Xrc, ADestroyedSrqIsRefusedAndItsObjectsAreBusyUntilThen) {
  Xrc x;
  EXPECT_EQ(x.first.client.destroy_cq(x.first.cq), EBUSY);
  EXPECT_EQ(close_xrcd(x.first.client, x.first.xrcd), EBUSY);
  EXPECT_EQ(x.first.client.destroy_srq(x.first.srq), 0);
  EXPECT_EQ(x.first.client.destroy_cq(x.first.cq), 0);
  EXPECT_EQ(close_xrcd(x.first.client, x.first.xrcd), EBUSY);  // the target QP
  EXPECT_EQ(x.first.client.destroy_qp(x.target), 0);
  EXPECT_EQ(close_xrcd(x.first.client, x.first.xrcd), 0);
  EXPECT_EQ(close_xrcd(x.first.client, x.first.xrcd), ENOENT);
}

TEST(Xrc, OpeningAQpNeedsItsDomainAndATarget) {
  Xrc x;
  const uint32_t other = open_xrcd(x.second.client, {.inode = 43});
  EXPECT_EQ(open_qp(x.second.client, other, x.target, 0), EINVAL);
  EXPECT_EQ(open_qp(x.second.client, x.second.xrcd, x.initiator, 0), EINVAL);
  EXPECT_EQ(open_qp(x.second.client, x.second.xrcd, 999999, 0), EINVAL);
  EXPECT_EQ(open_qp(x.sender, x.second.xrcd, x.target, 0), ENOENT);
}

TEST(Xrc, CreatingInADomainNeedsTheClientToHaveOpenedIt) {
  Xrc x;
  x.sender.create_qp({.xrcd = x.first.xrcd, .type = QpType::kXrcRecv});
  EXPECT_EQ(x.sender.error, ENOENT);
  x.sender.create_srq({.pd = x.pd, .type = abi::SrqType::kXrc, .xrcd = x.first.xrcd, .cq = x.cq});
  EXPECT_EQ(x.sender.error, ENOENT);
  x.first.client.create_srq(
      {.pd = x.first.pd, .type = abi::SrqType::kXrc, .xrcd = x.first.xrcd, .cq = x.cq});
  EXPECT_EQ(x.first.client.error, ENOENT);
  // A QP with an SRQ of its own cannot use an XRC SRQ.
  x.first.client.create_qp({.pd = x.first.pd,
                            .send_cq = x.first.cq,
                            .recv_cq = x.first.cq,
                            .srq = x.first.srq,
                            .cap = kCap});
  EXPECT_EQ(x.first.client.error, EINVAL);
}

// As in Linux, these attributes are ignored, since perftest and other programs set the attributes
// of senders and receivers on any connected QP.
TEST(Xrc, AttributesOfTheHalfThatItDoesNotHaveAreIgnored) {
  Xrc x;
  const uint32_t target =
      x.first.client.create_qp({.xrcd = x.first.xrcd, .type = QpType::kXrcRecv});
  const uint32_t initiator =
      x.sender.create_qp({.pd = x.pd, .send_cq = x.cq, .type = QpType::kXrcSend, .cap = kCap});
  Connection both;
  both.max_rd_atomic = 3;
  EXPECT_TRUE(
      bring_up(x.sender, initiator, abi::QpState::kRts, both, address_vector(kReceivers), target));
  EXPECT_TRUE(bring_up(x.first.client, target, abi::QpState::kRts, both, address_vector(kSender),
                       initiator));
  EXPECT_EQ(x.sender.query_qp(initiator).max_rd_atomic, 3u);
  EXPECT_EQ(x.sender.query_qp(initiator).max_dest_rd_atomic, 0u);
  EXPECT_EQ(x.first.client.query_qp(target).max_rd_atomic, 0u);
  EXPECT_EQ(x.first.client.query_qp(target).max_dest_rd_atomic, 3u);
}

// ibv_open_xrcd(3).
TEST(XrcDomain, IsTheSameForAllThatOpenTheSameFile) {
  Bench bench(two_devices(1));
  Client a(bench, engine::ClientId{1}, engine::DeviceIndex{0});
  Client b(bench, engine::ClientId{2}, engine::DeviceIndex{0});
  Client elsewhere(bench, engine::ClientId{3}, engine::DeviceIndex{1});
  EXPECT_EQ(open_xrcd(a, {.create = false}), 0u);
  EXPECT_EQ(a.error, ENOENT);
  const uint32_t domain = open_xrcd(a, {.exclusive = true});
  EXPECT_EQ(a.error, 0);
  open_xrcd(b, {.exclusive = true});
  EXPECT_EQ(b.error, EEXIST);
  EXPECT_EQ(open_xrcd(b, {.create = false}), domain);
  EXPECT_EQ(open_xrcd(b, {.create = false, .exclusive = true}), domain);
  EXPECT_NE(open_xrcd(b, {.inode = 43}), domain);
  EXPECT_NE(open_xrcd(elsewhere), domain);

  EXPECT_EQ(close_xrcd(a, domain), 0);
  EXPECT_EQ(close_xrcd(a, domain), ENOENT);
  EXPECT_EQ(close_xrcd(b, domain), 0);
  EXPECT_EQ(close_xrcd(b, domain), 0);
  EXPECT_EQ(close_xrcd(b, domain), ENOENT);
  open_xrcd(b, {.create = false});
  EXPECT_EQ(b.error, ENOENT);
}

TEST(XrcDomain, WithoutAFileIsNotShared) {
  Bench bench(two_devices(1));
  Client a(bench, engine::ClientId{1}, engine::DeviceIndex{0});
  const uint32_t one = open_xrcd(a, {.inode = 0});
  EXPECT_EQ(a.error, 0);
  EXPECT_NE(open_xrcd(a, {.inode = 0}), one);
  open_xrcd(a, {.inode = 0, .create = false});
  EXPECT_EQ(a.error, EINVAL);
}

}  // namespace
}  // namespace rocemu::test
