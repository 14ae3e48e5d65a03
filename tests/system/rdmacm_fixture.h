// Two rdma_cm ids of one process that connect through a listener, by the public librdmacm API only.
// No QPs exist, only QP numbers, so nothing is sent over the connection. Run the tests under
// `rocemu run`.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <rdma/rdma_cma.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace rocemu::system_test {

class EventChannel {
 public:
  EventChannel() : channel_(rdma_create_event_channel()) {
    EXPECT_NE(channel_, nullptr) << "no rdma_cm: is this run under `rocemu run`?";
  }
  ~EventChannel() { rdma_destroy_event_channel(channel_); }
  EventChannel(const EventChannel&) = delete;
  EventChannel& operator=(const EventChannel&) = delete;

  rdma_event_channel* get() const { return channel_; }

  /// Waits for an event, which must be of this type, and acknowledges it. Returns the event's id;
  /// for a connect request, this is the new id.
  rdma_cm_id* expect(rdma_cm_event_type type, int status = 0) {
    rdma_cm_event* event = nullptr;
    pollfd entry{channel_->fd, POLLIN, 0};
    EXPECT_EQ(poll(&entry, 1, kPatienceMs), 1) << "no " << rdma_event_str(type);
    if (entry.revents == 0 || rdma_get_cm_event(channel_, &event) != 0) {
      ADD_FAILURE() << std::strerror(errno);
      return nullptr;
    }
    EXPECT_STREQ(rdma_event_str(event->event), rdma_event_str(type));
    EXPECT_EQ(event->status, status);
    last_private_data.assign(static_cast<const char*>(event->param.conn.private_data),
                             event->param.conn.private_data_len);
    rdma_cm_id* id = event->id;
    rdma_ack_cm_event(event);
    return id;
  }
  bool is_empty() const {
    pollfd entry{channel_->fd, POLLIN, 0};
    return poll(&entry, 1, 0) == 0;
  }

  std::string last_private_data;

 private:
  static constexpr int kPatienceMs = 30'000;
  rdma_event_channel* channel_;
};

class RdmaCmTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(rdma_create_id(passive.get(), &listener, nullptr, RDMA_PS_TCP), 0);
    sockaddr_in any = loopback(0);
    ASSERT_EQ(rdma_bind_addr(listener, reinterpret_cast<sockaddr*>(&any)), 0);
    ASSERT_EQ(rdma_listen(listener, 8), 0);
    ASSERT_EQ(rdma_create_id(active.get(), &client, nullptr, RDMA_PS_TCP), 0);
    sockaddr_in to = loopback(rdma_get_src_port(listener));
    ASSERT_EQ(rdma_resolve_addr(client, nullptr, reinterpret_cast<sockaddr*>(&to), 2000), 0);
    active.expect(RDMA_CM_EVENT_ADDR_RESOLVED);
    ASSERT_EQ(rdma_resolve_route(client, 2000), 0);
    active.expect(RDMA_CM_EVENT_ROUTE_RESOLVED);
  }
  void TearDown() override {
    for (rdma_cm_id* id : {client, server, listener}) {
      if (id == nullptr) continue;
      EXPECT_EQ(rdma_destroy_id(id), 0) << std::strerror(errno);
    }
  }

  static sockaddr_in loopback(uint16_t big_endian_port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = big_endian_port;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
  }
  static rdma_conn_param parameters(const std::string& data = "") {
    rdma_conn_param param{};
    param.private_data = data.data();
    param.private_data_len = static_cast<uint8_t>(data.size());
    param.qp_num = next_qpn++;
    param.responder_resources = param.initiator_depth = 1;
    param.retry_count = param.rnr_retry_count = 7;
    return param;
  }
  void request_connection(const std::string& data = "") {
    rdma_conn_param param = parameters(data);
    ASSERT_EQ(rdma_connect(client, &param), 0) << std::strerror(errno);
    server = passive.expect(RDMA_CM_EVENT_CONNECT_REQUEST);
    ASSERT_NE(server, nullptr);
  }
  void accept(const std::string& data = "") {
    rdma_conn_param param = parameters(data);
    ASSERT_EQ(rdma_accept(server, &param), 0) << std::strerror(errno);
    active.expect(RDMA_CM_EVENT_CONNECT_RESPONSE);
  }
  void establish() {
    request_connection();
    accept();
    ASSERT_EQ(rdma_establish(client), 0);
    passive.expect(RDMA_CM_EVENT_ESTABLISHED);
  }

  EventChannel active, passive;
  rdma_cm_id* listener = nullptr;
  rdma_cm_id* client = nullptr;
  rdma_cm_id* server = nullptr;
  // The next QP number. Each connection needs a new one: with the number of a connected QP, a
  // request would be stale (IBTA vol 1, 12.9.8.3.1).
  static inline uint32_t next_qpn = 0x123;
};

}  // namespace rocemu::system_test
