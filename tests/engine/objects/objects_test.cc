// Tests how objects are created and destroyed: limits, owners, order (ibv_alloc_pd(3),
// ibv_reg_mr(3), ibv_create_cq(3), ibv_create_qp(3), ibv_create_ah(3) and the calls that destroy
// the objects).
#include <gtest/gtest.h>

#include <cerrno>

#include "emulator/engine/base/limits.h"
#include "tests/support/endpoint.h"
#include "tests/support/matchers.h"

namespace rocemu::test {
namespace {

using abi::Op;
using abi::QpState;
using engine::ClientId;
using engine::DeviceIndex;

constexpr abi::QpCap kCap = {.max_send_wr = 4,
                             .max_recv_wr = 4,
                             .max_send_sge = 2,
                             .max_recv_sge = 2,
                             .max_inline_data = 64};

class Objects : public testing::Test {
 protected:
  Bench bench{engine::default_fabric(2)};
  Client client{bench, ClientId{1}, DeviceIndex{0}};
  Client stranger{bench, ClientId{2}, DeviceIndex{0}};

  void TearDown() override {
    for (const Timed& entry : bench.log) ADD_FAILURE() << to_string(entry.output);
  }

  int create_qp_with(const abi::QpCap& cap) {
    const uint32_t pd = client.alloc_pd();
    const uint32_t cq = client.create_cq(1);
    client.create_qp(pd, cq, cq, cap);
    return client.error;
  }
};

// ---- Protection domains -----------------------------------------------------------------------

TEST_F(Objects, APdThatIsUsedIsBusy) {
  bench.memory.map(client.id(), 0x1000, 64);
  const uint32_t pd = client.alloc_pd();
  const Mr mr = client.reg_mr(pd, 0x1000, 64);
  EXPECT_EQ(client.dealloc_pd(pd), EBUSY);
  EXPECT_EQ(client.dereg_mr(mr.handle), 0);
  const uint32_t ah = client.create_ah(pd, address_vector(wire::IpAddress::from_v4(127, 0, 0, 2)));
  EXPECT_EQ(client.error, 0);
  EXPECT_EQ(client.dealloc_pd(pd), EBUSY);
  EXPECT_EQ(client.destroy_ah(ah), 0);
  const uint32_t cq = client.create_cq(1);
  const uint32_t qpn = client.create_qp(pd, cq, cq, kCap);
  EXPECT_EQ(client.dealloc_pd(pd), EBUSY);
  EXPECT_EQ(client.destroy_qp(qpn), 0);
  EXPECT_EQ(client.dealloc_pd(pd), 0);
  EXPECT_EQ(client.dealloc_pd(pd), ENOENT);
}

// ---- Memory regions ---------------------------------------------------------------------------

TEST_F(Objects, AnMrNeedsMemory) {
  const uint32_t pd = client.alloc_pd();
  bench.memory.map(client.id(), 0x1000, 64);
  client.reg_mr(pd, 0x1000, 64);
  EXPECT_EQ(client.error, 0);
  client.reg_mr(pd, 0x1000, 65);
  EXPECT_EQ(client.error, EFAULT);
  client.reg_mr(pd, 0xfff, 2);
  EXPECT_EQ(client.error, EFAULT);
  client.reg_mr(pd, 0x900000, 1);
  EXPECT_EQ(client.error, EFAULT);
  // only the other process has mapped this memory
  stranger.reg_mr(stranger.alloc_pd(), 0x1000, 64);
  EXPECT_EQ(stranger.error, EFAULT);
}

TEST_F(Objects, AnMrDoesNotWrapAroundTheAddressSpace) {
  const uint32_t pd = client.alloc_pd();
  bench.memory.map(client.id(), 0x1000, 64);
  client.reg_mr(pd, ~uint64_t{0} - 10, 64);
  EXPECT_EQ(client.error, EINVAL);
  client.reg_mr(pd, 0x1000, 64, 0, ~uint64_t{0} - 10);
  EXPECT_EQ(client.error, EINVAL);
  client.reg_mr(pd, 0x1000, ~uint64_t{0});
  EXPECT_EQ(client.error, EINVAL);
}

// ibv_reg_mr(3): "If IBV_ACCESS_REMOTE_WRITE or IBV_ACCESS_REMOTE_ATOMIC is set, then
// IBV_ACCESS_LOCAL_WRITE must be set too".
TEST_F(Objects, RemoteWriteAndAtomicNeedLocalWrite) {
  const uint32_t pd = client.alloc_pd();
  bench.memory.map(client.id(), 0x1000, 64);
  struct Case {
    uint32_t access;
    int error;
  };
  for (const auto& [access, error] :
       {Case{0, 0}, Case{abi::kAccessLocalWrite, 0}, Case{abi::kAccessRemoteRead, 0},
        Case{abi::kAccessRemoteWrite, EINVAL}, Case{abi::kAccessRemoteAtomic, EINVAL},
        Case{abi::kAccessRemoteWrite | abi::kAccessLocalWrite, 0},
        Case{abi::kAccessRemoteAtomic | abi::kAccessLocalWrite, 0},
        Case{abi::kAccessRelaxedOrdering, 0},  // optional: a NIC may ignore it
        Case{1u << 10, EOPNOTSUPP}, Case{1u << 19, EOPNOTSUPP}, Case{1u << 31, EOPNOTSUPP}}) {
    client.reg_mr(pd, 0x1000, 64, access);
    EXPECT_EQ(client.error, error) << "access 0x" << std::hex << access;
  }
}

TEST_F(Objects, EveryMrHasUniqueKeys) {
  const uint32_t pd = client.alloc_pd();
  bench.memory.map(client.id(), 0x1000, 64);
  std::vector<uint32_t> keys;
  for (int i = 0; i < 200; ++i) {
    const Mr mr = client.reg_mr(pd, 0x1000, 64);
    keys.insert(keys.end(), {mr.lkey, mr.rkey});
  }
  std::sort(keys.begin(), keys.end());
  EXPECT_EQ(std::adjacent_find(keys.begin(), keys.end()), keys.end());
}

// ---- Completion queues ------------------------------------------------------------------------

TEST_F(Objects, ACqHoldsOneToTheLimit) {
  client.create_cq(0);
  EXPECT_EQ(client.error, EINVAL);
  client.create_cq(1);
  EXPECT_EQ(client.error, 0);
  client.create_cq(engine::kMaxCqe);
  EXPECT_EQ(client.error, 0);
  client.create_cq(engine::kMaxCqe + 1);
  EXPECT_EQ(client.error, EINVAL);
}

// ibv_create_cq(3): comp_vector is "at least zero and less than num_comp_vectors".
TEST_F(Objects, ACqNeedsACompletionVectorThatExists) {
  abi::Request::Body body{};
  body.create_cq.capacity = 1;
  const uint32_t vectors = client.command(Op::kQueryDevice, {}).body.device.num_comp_vectors;
  for (uint32_t i = 0; i < vectors; ++i) {
    body.create_cq.comp_vector = i;
    EXPECT_EQ(client.command(Op::kCreateCq, body).error, 0);
  }
  body.create_cq.comp_vector = vectors;
  EXPECT_EQ(client.command(Op::kCreateCq, body).error, EINVAL);
}

// ibv_destroy_cq(3) fails "if any queue is still associated with this CQ".
TEST_F(Objects, ACqThatIsUsedIsBusy) {
  const uint32_t pd = client.alloc_pd();
  const uint32_t send_cq = client.create_cq(1), recv_cq = client.create_cq(1);
  const uint32_t qpn = client.create_qp(pd, send_cq, recv_cq, kCap);
  EXPECT_EQ(client.destroy_cq(send_cq), EBUSY);
  EXPECT_EQ(client.destroy_cq(recv_cq), EBUSY);
  EXPECT_EQ(client.destroy_qp(qpn), 0);
  EXPECT_EQ(client.destroy_cq(send_cq), 0);
  EXPECT_EQ(client.destroy_cq(recv_cq), 0);
  EXPECT_EQ(client.destroy_cq(recv_cq), ENOENT);
}

TEST_F(Objects, OneCqCanServeBothQueues) {
  const uint32_t pd = client.alloc_pd();
  const uint32_t cq = client.create_cq(1);
  const uint32_t qpn = client.create_qp(pd, cq, cq, kCap);
  EXPECT_EQ(client.destroy_cq(cq), EBUSY);
  EXPECT_EQ(client.destroy_qp(qpn), 0);
  EXPECT_EQ(client.destroy_cq(cq), 0);
}

// ---- Queue pairs ------------------------------------------------------------------------------

// ibv_create_qp(3) accepts QPs up to the limits of ibv_query_device(3).
TEST_F(Objects, AQpIsAsLargeAsTheDeviceAllows) {
  const abi::DeviceAttr limits = client.command(Op::kQueryDevice, {}).body.device;
  struct Case {
    uint32_t abi::QpCap::*member;
    uint32_t limit;
  };
  for (const auto& [member, limit] : {Case{&abi::QpCap::max_send_wr, limits.max_qp_wr},
                                      Case{&abi::QpCap::max_recv_wr, limits.max_qp_wr},
                                      Case{&abi::QpCap::max_send_sge, limits.max_sge},
                                      Case{&abi::QpCap::max_recv_sge, limits.max_sge},
                                      Case{&abi::QpCap::max_inline_data, limits.max_inline_data}}) {
    abi::QpCap cap = kCap;
    cap.*member = 0;
    EXPECT_EQ(create_qp_with(cap), 0);
    cap.*member = limit;
    EXPECT_EQ(create_qp_with(cap), 0);
    cap.*member = limit + 1;
    EXPECT_EQ(create_qp_with(cap), EINVAL);
    cap.*member = ~0u;
    EXPECT_EQ(create_qp_with(cap), EINVAL);
  }
}

TEST_F(Objects, QpTypesThatTheDeviceDoesNotHaveAreNotSupported) {
  abi::Request::Body body{};
  body.create_qp.pd = client.alloc_pd();
  body.create_qp.send_cq = body.create_qp.recv_cq = client.create_cq(1);
  for (const uint32_t type : {0u, 1u, 5u, 8u, 77u}) {
    body.create_qp.type = static_cast<abi::QpType>(type);
    EXPECT_EQ(client.command(Op::kCreateQp, body).error, EOPNOTSUPP);
  }
}

TEST_F(Objects, QpNumbersAreUniqueInTheFabricAndNotReusedAtOnce) {
  Client other(bench, ClientId{3}, DeviceIndex{1});
  std::vector<uint32_t> numbers;
  for (Client* owner : {&client, &stranger, &other}) {
    const uint32_t pd = owner->alloc_pd();
    const uint32_t cq = owner->create_cq(1);
    for (int i = 0; i < 20; ++i) {
      numbers.push_back(owner->create_qp(pd, cq, cq, kCap));
      if (i % 2 == 0) {
        EXPECT_EQ(owner->destroy_qp(numbers.back()), 0);
      }
    }
  }
  EXPECT_GE(*std::min_element(numbers.begin(), numbers.end()), 2u);  // 0 and 1 are management QPs
  std::sort(numbers.begin(), numbers.end());
  EXPECT_EQ(std::adjacent_find(numbers.begin(), numbers.end()), numbers.end());
}

TEST_F(Objects, ADestroyedQpIsUnknown) {
  const uint32_t pd = client.alloc_pd();
  const uint32_t cq = client.create_cq(1);
  const uint32_t qpn = client.create_qp(pd, cq, cq, kCap);
  EXPECT_EQ(client.destroy_qp(qpn), 0);
  EXPECT_EQ(client.destroy_qp(qpn), ENOENT);
  EXPECT_EQ(client.set_state(qpn, QpState::kErr), ENOENT);
  client.query_qp(qpn);
  EXPECT_EQ(client.error, ENOENT);
}

// ---- Objects of another client ----------------------------------------------------------------

TEST_F(Objects, HandlesOfOtherClientsAreInvalid) {
  bench.memory.map(client.id(), 0x1000, 64);
  bench.memory.map(stranger.id(), 0x1000, 64);
  const uint32_t pd = client.alloc_pd();
  const uint32_t cq = client.create_cq(1);
  const Mr mr = client.reg_mr(pd, 0x1000, 64);
  const auto vector = address_vector(wire::IpAddress::from_v4(127, 0, 0, 2));
  const uint32_t ah = client.create_ah(pd, vector);
  const uint32_t qpn = client.create_qp(pd, cq, cq, kCap);
  const uint32_t own_pd = stranger.alloc_pd();
  const uint32_t own_cq = stranger.create_cq(1);

  EXPECT_EQ(stranger.dealloc_pd(pd), ENOENT);
  EXPECT_EQ(stranger.dereg_mr(mr.handle), ENOENT);
  EXPECT_EQ(stranger.destroy_cq(cq), ENOENT);
  EXPECT_EQ(stranger.destroy_ah(ah), ENOENT);
  EXPECT_EQ(stranger.destroy_qp(qpn), ENOENT);
  EXPECT_EQ(stranger.set_state(qpn, QpState::kErr), ENOENT);
  stranger.query_qp(qpn);
  EXPECT_EQ(stranger.error, ENOENT);
  stranger.reg_mr(pd, 0x1000, 64);
  EXPECT_EQ(stranger.error, ENOENT);
  stranger.create_ah(pd, vector);
  EXPECT_EQ(stranger.error, ENOENT);
  stranger.create_qp(pd, own_cq, own_cq, kCap);
  EXPECT_EQ(stranger.error, ENOENT);
  stranger.create_qp(own_pd, cq, own_cq, kCap);
  EXPECT_EQ(stranger.error, ENOENT);
  stranger.create_qp(own_pd, own_cq, cq, kCap);
  EXPECT_EQ(stranger.error, ENOENT);
  EXPECT_EQ(client.state(qpn), QpState::kReset);
}

TEST_F(Objects, HandlesThatDoNotExistAreRefused) {
  for (const uint32_t handle : {0u, 1u, 16u, 17u, 0xffffffu, 0xffffffffu}) {
    EXPECT_EQ(client.dealloc_pd(handle), ENOENT);
    EXPECT_EQ(client.dereg_mr(handle), ENOENT);
    EXPECT_EQ(client.destroy_cq(handle), ENOENT);
    EXPECT_EQ(client.destroy_ah(handle), ENOENT);
    EXPECT_EQ(client.destroy_qp(handle), ENOENT);
  }
}

// A creation that fails must not make the PD and the CQs busy.
TEST_F(Objects, AFailedCreationHoldsNothing) {
  const uint32_t pd = client.alloc_pd();
  const uint32_t cq = client.create_cq(1);
  abi::QpCap cap = kCap;
  cap.max_send_sge = 1000;
  client.create_qp(pd, cq, cq, cap);
  client.create_qp(pd, cq, 12345, kCap);
  client.create_ah(pd, {});
  client.reg_mr(pd, 0x1000, 64);
  EXPECT_EQ(client.error, EFAULT);
  EXPECT_EQ(client.destroy_cq(cq), 0);
  EXPECT_EQ(client.dealloc_pd(pd), 0);
}

TEST_F(Objects, UnknownOperationsAreNotSupported) {
  for (const uint32_t op : {0u, 998u, 999u}) {
    EXPECT_EQ(client.command(static_cast<Op>(op), {}).error, EOPNOTSUPP);
  }
}

// The daemon itself executes these calls. The engine gets them only for its rules, and accepts
// them.
TEST_F(Objects, TheEngineAcceptsTheCallsThatTheDaemonExecutes) {
  for (const Op op : {Op::kHello, Op::kCreateChannel}) {
    EXPECT_EQ(client.command(op, {}).error, 0);
  }
}

TEST_F(Objects, OnlyPortOneExists) {
  abi::Request::Body body{};
  for (const uint32_t port : {0u, 2u, 255u}) {
    body.query_port.port = port;
    EXPECT_EQ(client.command(Op::kQueryPort, body).error, EINVAL);
  }
  body.query_port.port = 1;
  const abi::Reply reply = client.command(Op::kQueryPort, body);
  EXPECT_EQ(reply.error, 0);
  EXPECT_EQ(reply.body.port.state, static_cast<uint32_t>(abi::PortState::kActive));
}

TEST_F(Objects, RepliesEchoTheRequest) {
  abi::Request request{};
  request.op = Op::kAllocPd;
  request.sequence = 4711;
  engine::Outputs outputs;
  bench.engine().step(bench.now(), engine::Command{client.id(), request}, outputs);
  ASSERT_TRUE(outputs.reply);
  EXPECT_EQ(outputs.reply->op, Op::kAllocPd);
  EXPECT_EQ(outputs.reply->sequence, 4711u);
  EXPECT_EQ(outputs.reply->magic, abi::kMagic);
}

// ---- Doorbells --------------------------------------------------------------------------------

class Doorbells : public Objects {
 protected:
  void SetUp() override {
    pd = client.alloc_pd();
    cq = client.create_cq(8);
    qpn = client.create_qp(pd, cq, cq, kCap);
  }
  void expect_violation_by(const Client& who, int line = __builtin_LINE()) {
    ASSERT_EQ(bench.log.size(), 1u) << "line " << line;
    const auto* got = std::get_if<engine::ClientViolation>(&bench.log[0].output);
    ASSERT_NE(got, nullptr) << "line " << line;
    EXPECT_EQ(got->client, who.id()) << "line " << line;
    bench.log.clear();
  }
  void post_send_bytes(Client& who, uint32_t number, size_t size) {
    bench.step(engine::PostSend{who.id(), engine::QpNumber{number}, std::vector<std::byte>(size)});
  }
  void post_recv_bytes(Client& who, uint32_t number, size_t size) {
    bench.step(engine::PostRecv{who.id(), engine::QpNumber{number}, std::vector<std::byte>(size)});
  }

  uint32_t pd = 0, cq = 0, qpn = 0;
  const size_t send_size = abi::send_stride(kCap.max_send_sge, kCap.max_inline_data);
  const size_t recv_size = abi::recv_stride(kCap.max_recv_sge);
};

TEST_F(Doorbells, ForAnotherClientsObjectAreAViolation) {
  post_send_bytes(stranger, qpn, send_size);
  expect_violation_by(stranger);
  post_recv_bytes(stranger, qpn, recv_size);
  expect_violation_by(stranger);
  stranger.arm(cq, 0);
  expect_violation_by(stranger);
  post_send_bytes(client, 0xdead, send_size);
  expect_violation_by(client);
}

TEST_F(Doorbells, OfTheWrongSizeAreAViolation) {
  for (const size_t size : {size_t{0}, send_size - 1, send_size + 64}) {
    post_send_bytes(client, qpn, size);
    expect_violation_by(client);
  }
  for (const size_t size : {size_t{0}, recv_size - 1, recv_size + 16}) {
    post_recv_bytes(client, qpn, size);
    expect_violation_by(client);
  }
}

TEST_F(Doorbells, ForMoreThanTheQpHoldsAreAViolation) {
  ASSERT_TRUE(bring_up(client, qpn, QpState::kRts, {},
                       address_vector(wire::IpAddress::from_v4(10, 9, 9, 9)), 5));
  for (uint32_t i = 0; i < kCap.max_recv_wr; ++i) client.post_recv(qpn, {.wr_id = i});
  EXPECT_TRUE(bench.log.empty());
  client.post_recv(qpn, {.wr_id = 99});
  expect_violation_by(client);
  for (uint32_t i = 0; i < kCap.max_send_wr; ++i) client.post_send(qpn, {.wr_id = i});
  bench.log.clear();  // frames
  client.post_send(qpn, {.wr_id = 99});
  expect_violation_by(client);
}

// Receives that were posted one after another can be passed in one doorbell.
TEST_F(Doorbells, BringSeveralReceivesAtOnce) {
  ASSERT_TRUE(bring_up(client, qpn, QpState::kRts, {},
                       address_vector(wire::IpAddress::from_v4(10, 9, 9, 9)), 5));
  ASSERT_GE(kCap.max_recv_wr, 3u);
  post_recv_bytes(client, qpn, kCap.max_recv_wr * recv_size);
  EXPECT_TRUE(bench.log.empty());
  post_recv_bytes(client, qpn, recv_size);
  expect_violation_by(client);
}

TEST_F(Doorbells, WithMoreReceivesThanThereIsRoomForAreAViolation) {
  ASSERT_TRUE(bring_up(client, qpn, QpState::kRts, {},
                       address_vector(wire::IpAddress::from_v4(10, 9, 9, 9)), 5));
  post_recv_bytes(client, qpn, (kCap.max_recv_wr + 1) * recv_size);
  expect_violation_by(client);
}

// ---- Detach -----------------------------------------------------------------------------------

TEST_F(Objects, DetachDestroysAllObjectsOfTheClientOnly) {
  bench.memory.map(client.id(), 0x1000, 64);
  for (Client* owner : {&client, &stranger}) {
    const uint32_t pd = owner->alloc_pd();
    const uint32_t cq = owner->create_cq(1);
    if (owner == &client) owner->reg_mr(pd, 0x1000, 64);
    owner->create_ah(pd, address_vector(wire::IpAddress::from_v4(127, 0, 0, 2)));
    owner->create_qp(pd, cq, cq, kCap);
  }
  bench.detach(client.id());
  const auto device = bench.engine().snapshot().devices[0];
  EXPECT_EQ(device.pds.size(), 1u);
  EXPECT_EQ(device.ah_count, 1u);
  EXPECT_EQ(device.mrs.size(), 0u);
  ASSERT_EQ(device.cqs.size(), 1u);
  EXPECT_EQ(device.cqs[0].client, stranger.id());
  ASSERT_EQ(device.qps.size(), 1u);
  EXPECT_EQ(device.qps[0].client, stranger.id());
  bench.detach(stranger.id());
  EXPECT_TRUE(bench.engine().snapshot().devices[0].qps.empty());
}

}  // namespace
}  // namespace rocemu::test
