// Tests private data of every length in every command that has some: the limit is exactly the space
// that the connection manager's own data leaves in the message.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>

#include "tests/support/event_channel.h"

namespace rocemu::test {
namespace {

using abi::ucma::Command;
using abi::ucma::EventType;
using abi::ucma::PortSpace;

constexpr uint64_t kUid = 0x1234'5678'9abc'def0;
constexpr uint16_t kPort = 7471;
constexpr unsigned kLongest = 255;  // the longest length that a command can state
// The lengths of "private data" in each message's table (IBTA vol 1, 12.6), less the 36 bytes of
// annex A11 in requests.
constexpr unsigned kReq = 92 - 36, kRep = 196, kRej = 148, kSidrReq = 216 - 36, kSidrRep = 136;

class PrivateData : public testing::Test {
 protected:
  void listen(PortSpace space) {
    const uint32_t listener = passive.create_id(kUid, space);
    ASSERT_EQ(passive.bind(listener, ip("127.0.0.2", kPort)), 0);
    ASSERT_EQ(passive.listen(listener, 1000), 0);
  }
  uint32_t resolved(PortSpace space) {
    const uint32_t id = active.create_id(kUid, space);
    EXPECT_EQ(active.resolve(id, ip("127.0.0.2", kPort)), 0);
    EXPECT_EQ(active.next_event().event, EventType::kAddrResolved);
    EXPECT_EQ(active.resolve_route(id), 0);
    EXPECT_EQ(active.next_event().event, EventType::kRouteResolved);
    return id;
  }
  abi::ucma::ConnParam parameters(unsigned length) {
    abi::ucma::ConnParam param{};
    param.qp_num = ++last_qpn_;  // a QP has one connection at a time (IBTA vol 1, 12.9.8.3.1)
    param.private_data_len = static_cast<uint8_t>(length);
    for (unsigned i = 0; i < length; ++i) param.private_data[i] = byte(length, i);
    return param;
  }
  /// Checks that an event contains as many bytes as its message has space for: the sender's bytes,
  /// then zeros.
  template <class Parameters>
  static void expect_data(const Parameters& param, unsigned length, unsigned room) {
    ASSERT_EQ(param.private_data_len, room);
    for (unsigned i = 0; i < room; ++i) {
      ASSERT_EQ(param.private_data[i], i < length ? byte(length, i) : 0) << length << " at " << i;
    }
  }
  static uint8_t byte(unsigned length, unsigned i) {
    return static_cast<uint8_t>(1 + (length + 3 * i) % 255);
  }
  /// Returns (id of the client that sent a request, id that the listener got for it).
  std::pair<uint32_t, uint32_t> request(PortSpace space) {
    const uint32_t client = resolved(space);
    EXPECT_EQ(active.connect(client, parameters(0)), 0);
    return {client, passive.next_event().id};
  }

  CmBench bench;
  EventChannel active{bench, 1}, passive{bench, 2};

 private:
  uint32_t last_qpn_ = 16;
};

TEST_F(PrivateData, OfAConnectionRequest) {
  listen(PortSpace::kTcp);
  for (unsigned length = 0; length <= kLongest; ++length) {
    const uint32_t client = resolved(PortSpace::kTcp);
    const int error = active.connect(client, parameters(length));
    ASSERT_EQ(error, length <= kReq ? 0 : EINVAL) << length;
    if (error == 0) expect_data(passive.next_event().param.conn, length, kReq);
    ASSERT_EQ(active.destroy_id(client), 0);
  }
}

TEST_F(PrivateData, OfAReply) {
  listen(PortSpace::kTcp);
  for (unsigned length = 0; length <= kLongest; ++length) {
    const auto [client, server] = request(PortSpace::kTcp);
    const int error = passive.accept(server, kUid, parameters(length));
    ASSERT_EQ(error, length <= kRep ? 0 : EINVAL) << length;
    const auto event = active.next_event();
    // As in the kernel, rdma_accept(3) with more data than can be sent rejects the request.
    ASSERT_EQ(event.event, error == 0 ? EventType::kConnectResponse : EventType::kRejected);
    if (error == 0) expect_data(event.param.conn, length, kRep);
    ASSERT_EQ(passive.destroy_id(server), 0);
    ASSERT_EQ(active.destroy_id(client), 0);
    while (active.next_event().id != 0 || passive.next_event().id != 0) continue;
  }
}

TEST_F(PrivateData, OfARejection) {
  listen(PortSpace::kTcp);
  for (unsigned length = 0; length <= kLongest; ++length) {
    const auto [client, server] = request(PortSpace::kTcp);
    abi::ucma::Reject in{};
    in.id = server;
    in.private_data_len = static_cast<uint8_t>(length);
    for (unsigned i = 0; i < length; ++i) in.private_data[i] = byte(length, i);
    const int error = passive.ask(Command::kReject, in);
    ASSERT_EQ(error, length <= kRej ? 0 : EINVAL) << length;
    if (error == 0) {
      const auto event = active.next_event();
      ASSERT_EQ(event.event, EventType::kRejected);
      expect_data(event.param.conn, length, kRej);
    }
    ASSERT_EQ(passive.destroy_id(server), 0);
    ASSERT_EQ(active.destroy_id(client), 0);
    while (active.next_event().id != 0) continue;
  }
}

TEST_F(PrivateData, OfAServiceResolution) {
  listen(PortSpace::kUdp);
  for (unsigned length = 0; length <= kLongest; ++length) {
    const uint32_t client = resolved(PortSpace::kUdp);
    const int error = active.connect(client, parameters(length));
    ASSERT_EQ(error, length <= kSidrReq ? 0 : EINVAL) << length;
    if (error == 0) expect_data(passive.next_event().param.ud, length, kSidrReq);
    ASSERT_EQ(active.destroy_id(client), 0);
  }
}

TEST_F(PrivateData, OfItsAnswer) {
  listen(PortSpace::kUdp);
  for (unsigned length = 0; length <= kLongest; ++length) {
    const auto [client, server] = request(PortSpace::kUdp);
    const int error = passive.accept(server, kUid, parameters(length));
    ASSERT_EQ(error, length <= kSidrRep ? 0 : EINVAL) << length;
    const auto event = active.next_event();
    ASSERT_EQ(event.event, error == 0 ? EventType::kEstablished : EventType::kUnreachable);
    if (error == 0) expect_data(event.param.ud, length, kSidrRep);
    ASSERT_EQ(passive.destroy_id(server), 0);
    ASSERT_EQ(active.destroy_id(client), 0);
  }
}

}  // namespace
}  // namespace rocemu::test
