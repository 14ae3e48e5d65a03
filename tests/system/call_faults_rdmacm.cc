// Attempts of each function of rdma_cma.h that can fail.
#include <rdma/rdma_cma.h>

#include "tests/system/call_faults.h"
#include "tests/system/rdmacm_fixture.h"

namespace rocemu::system_test {
namespace {

/// Both ends of a connection, established as far as a call needs it.
class Conversation {
 public:
  Conversation() {
    EXPECT_EQ(rdma_create_id(passive_.get(), &listener, nullptr, RDMA_PS_TCP), 0);
    sockaddr_in any = address(INADDR_LOOPBACK, 0);
    EXPECT_EQ(rdma_bind_addr(listener, reinterpret_cast<sockaddr*>(&any)), 0);
    EXPECT_EQ(rdma_create_id(active_.get(), &client, nullptr, RDMA_PS_TCP), 0);
  }
  ~Conversation() {
    for (rdma_cm_id* id : {client, server, listener}) {
      if (id != nullptr) {
        EXPECT_EQ(rdma_destroy_id(id), 0);
      }
    }
  }

  int listen() { return rdma_listen(listener, 4); }
  int resolve_addr() {
    sockaddr_in to = address(INADDR_LOOPBACK, rdma_get_src_port(listener));
    return rdma_resolve_addr(client, nullptr, reinterpret_cast<sockaddr*>(&to), 2000);
  }
  int connect() {
    rdma_conn_param param = parameters();
    return rdma_connect(client, &param);
  }
  int accept() {
    rdma_conn_param param = parameters();
    return rdma_accept(server, &param);
  }

  void to_address() {
    EXPECT_EQ(listen(), 0);
    EXPECT_EQ(resolve_addr(), 0);
    active_.expect(RDMA_CM_EVENT_ADDR_RESOLVED);
  }
  void to_route() {
    to_address();
    EXPECT_EQ(rdma_resolve_route(client, 2000), 0);
    active_.expect(RDMA_CM_EVENT_ROUTE_RESOLVED);
  }
  void to_request() {
    to_route();
    EXPECT_EQ(connect(), 0);
    server = passive_.expect(RDMA_CM_EVENT_CONNECT_REQUEST);
  }
  void to_response() {
    to_request();
    EXPECT_EQ(accept(), 0);
    active_.expect(RDMA_CM_EVENT_CONNECT_RESPONSE);
  }
  void to_connection() {
    to_response();
    EXPECT_EQ(rdma_establish(client), 0);
    passive_.expect(RDMA_CM_EVENT_ESTABLISHED);
  }
  EventChannel& active() { return active_; }

  static sockaddr_in address(uint32_t ip, uint16_t big_endian_port) {
    sockaddr_in result{};
    result.sin_family = AF_INET;
    result.sin_port = big_endian_port;
    result.sin_addr.s_addr = htonl(ip);
    return result;
  }

  rdma_cm_id* listener = nullptr;
  rdma_cm_id* client = nullptr;
  rdma_cm_id* server = nullptr;

 private:
  static rdma_conn_param parameters() {
    static uint32_t next_qpn = 0x4000;
    rdma_conn_param param{};
    param.qp_num = next_qpn++;
    param.retry_count = param.rnr_retry_count = 7;
    return param;
  }

  EventChannel active_, passive_;
};

/// Returns an attempt that makes a call when the conversation has reached the state that `so_far`
/// brings about.
template <class Call>
Attempt after(void (Conversation::*so_far)(), Call call) {
  return [so_far, call](const Under& under) {
    Conversation conversation;
    if (so_far != nullptr) (conversation.*so_far)();
    return under([&] { return failure(call(conversation)); });
  };
}

/// Returns an attempt that makes a call with an id that is a member of a multicast group.
Attempt of_member(const std::function<int(const Under&, EventChannel&, rdma_cm_id*)>& use) {
  return [use](const Under& under) {
    EventChannel channel;
    rdma_cm_id* id = nullptr;
    EXPECT_EQ(rdma_create_id(channel.get(), &id, nullptr, RDMA_PS_UDP), 0);
    sockaddr_in any = Conversation::address(INADDR_LOOPBACK, 0);
    EXPECT_EQ(rdma_bind_addr(id, reinterpret_cast<sockaddr*>(&any)), 0);
    const int error = use(under, channel, id);
    EXPECT_EQ(rdma_destroy_id(id), 0);
    return error;
  };
}

}  // namespace

std::map<std::string, Attempt> attempts_of_rdmacm() {
  using C = Conversation;
  std::map<std::string, Attempt> all;
  all["rdma_create_event_channel"] = [](const Under& under) {
    return under([] {
      rdma_event_channel* channel = rdma_create_event_channel();
      const int error = failure(channel);
      if (channel != nullptr) rdma_destroy_event_channel(channel);
      return error;
    });
  };
  all["rdma_create_id"] = [](const Under& under) {
    const EventChannel channel;
    rdma_cm_id* id = nullptr;
    const int error =
        under([&] { return failure(rdma_create_id(channel.get(), &id, nullptr, RDMA_PS_TCP)); });
    if (error == 0) {
      EXPECT_EQ(rdma_destroy_id(id), 0);
    }
    return error;
  };
  all["rdma_destroy_id"] = [](const Under& under) {
    const EventChannel channel;
    rdma_cm_id* id = nullptr;
    EXPECT_EQ(rdma_create_id(channel.get(), &id, nullptr, RDMA_PS_TCP), 0);
    const int error = under([&] { return failure(rdma_destroy_id(id)); });
    if (error != 0) {
      EXPECT_EQ(rdma_destroy_id(id), 0);
    }
    return error;
  };
  all["rdma_create_ep"] = [](const Under& under) {
    rdma_addrinfo hints{};
    hints.ai_flags = RAI_PASSIVE | RAI_NUMERICHOST;
    hints.ai_port_space = RDMA_PS_TCP;
    rdma_addrinfo* found = nullptr;
    EXPECT_EQ(rdma_getaddrinfo("127.0.0.1", nullptr, &hints, &found), 0);
    const int error = under([&] {
      rdma_cm_id* id = nullptr;
      const int result = failure(rdma_create_ep(&id, found, nullptr, nullptr));
      if (result == 0) rdma_destroy_ep(id);
      return result;
    });
    rdma_freeaddrinfo(found);
    return error;
  };
  all["rdma_bind_addr"] = [](const Under& under) {
    const EventChannel channel;
    rdma_cm_id* id = nullptr;
    EXPECT_EQ(rdma_create_id(channel.get(), &id, nullptr, RDMA_PS_TCP), 0);
    sockaddr_in any = C::address(INADDR_LOOPBACK, 0);
    const int error =
        under([&] { return failure(rdma_bind_addr(id, reinterpret_cast<sockaddr*>(&any))); });
    EXPECT_EQ(rdma_destroy_id(id), 0);
    return error;
  };
  all["rdma_listen"] = after(nullptr, [](C& c) { return c.listen(); });
  all["rdma_resolve_addr"] = after(nullptr, [](C& c) { return c.resolve_addr(); });
  all["rdma_resolve_route"] =
      after(&C::to_address, [](C& c) { return rdma_resolve_route(c.client, 2000); });
  all["rdma_connect"] = after(&C::to_route, [](C& c) { return c.connect(); });
  all["rdma_accept"] = after(&C::to_request, [](C& c) { return c.accept(); });
  all["rdma_reject"] =
      after(&C::to_request, [](C& c) { return rdma_reject(c.server, nullptr, 0); });
  all["rdma_reject_ece"] =
      after(&C::to_request, [](C& c) { return rdma_reject_ece(c.server, nullptr, 0); });
  all["rdma_establish"] = after(&C::to_response, [](C& c) { return rdma_establish(c.client); });
  all["rdma_notify"] =
      after(&C::to_response, [](C& c) { return rdma_notify(c.server, IBV_EVENT_COMM_EST); });
#ifdef HAS_rdma_write_cm_event
  all["rdma_write_cm_event"] = after(
      &C::to_address, [](C& c) { return rdma_write_cm_event(c.client, RDMA_CM_EVENT_USER, 0, 0); });
#endif
  all["rdma_disconnect"] = after(&C::to_connection, [](C& c) { return rdma_disconnect(c.client); });
  all["rdma_set_option"] = after(nullptr, [](C& c) {
    uint8_t type_of_service = 32;
    return rdma_set_option(c.client, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &type_of_service,
                           sizeof type_of_service);
  });
  all["rdma_init_qp_attr"] = after(&C::to_route, [](C& c) {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_INIT;
    int mask = 0;
    return rdma_init_qp_attr(c.client, &attr, &mask);
  });
  all["rdma_migrate_id"] = [](const Under& under) {
    Conversation conversation;
    const EventChannel other;
    const int error =
        under([&] { return failure(rdma_migrate_id(conversation.client, other.get())); });
    EXPECT_EQ(rdma_destroy_id(conversation.client), 0);  // before that channel
    conversation.client = nullptr;
    return error;
  };
  const auto create_qp = [](bool extended) {
    return after(&C::to_address, [extended](C& c) {
      ibv_qp_init_attr_ex init{};
      init.qp_type = IBV_QPT_RC;
      init.cap = {.max_send_wr = 4,
                  .max_recv_wr = 4,
                  .max_send_sge = 1,
                  .max_recv_sge = 1,
                  .max_inline_data = 0};
      ibv_qp_init_attr basic{};
      basic.qp_type = init.qp_type;
      basic.cap = init.cap;
      const int result =
          extended ? rdma_create_qp_ex(c.client, &init) : rdma_create_qp(c.client, nullptr, &basic);
      if (result == 0) rdma_destroy_qp(c.client);
      return result;
    });
  };
  all["rdma_create_qp"] = create_qp(false);
  all["rdma_create_qp_ex"] = create_qp(true);
  const auto join = [](EventChannel&, rdma_cm_id* id, bool extended) {
    static sockaddr_in group;
    group = C::address(0xef010203, 0);  // 239.1.2.3
    rdma_cm_join_mc_attr_ex attr{};
    attr.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;
    attr.join_flags = RDMA_MC_JOIN_FLAG_FULLMEMBER;
    attr.addr = reinterpret_cast<sockaddr*>(&group);
    return extended ? rdma_join_multicast_ex(id, &attr, nullptr)
                    : rdma_join_multicast(id, attr.addr, nullptr);
  };
  for (const bool extended : {false, true}) {
    all[extended ? "rdma_join_multicast_ex" : "rdma_join_multicast"] =
        of_member([join, extended](const Under& under, EventChannel& channel, rdma_cm_id* id) {
          const int error = under([&] { return failure(join(channel, id, extended)); });
          if (error == 0) channel.expect(RDMA_CM_EVENT_MULTICAST_JOIN);
          return error;
        });
  }
  all["rdma_leave_multicast"] =
      of_member([join](const Under& under, EventChannel& channel, rdma_cm_id* id) {
        EXPECT_EQ(join(channel, id, false), 0);
        channel.expect(RDMA_CM_EVENT_MULTICAST_JOIN);
        sockaddr_in group = C::address(0xef010203, 0);
        return under(
            [&] { return failure(rdma_leave_multicast(id, reinterpret_cast<sockaddr*>(&group))); });
      });
  all["rdma_get_cm_event"] = [](const Under& under) {
    Conversation conversation;
    EXPECT_EQ(conversation.listen(), 0);
    const int error = under([&] {
      EXPECT_EQ(conversation.resolve_addr(), 0);
      rdma_cm_event* event = nullptr;
      const int result = failure(rdma_get_cm_event(conversation.active().get(), &event));
      if (result == 0) {
        EXPECT_EQ(rdma_ack_cm_event(event), 0);
      }
      return result;
    });
    // The event that the failed call did not return can still be read.
    if (error != 0) conversation.active().expect(RDMA_CM_EVENT_ADDR_RESOLVED);
    return error;
  };
  all["rdma_get_request"] = [](const Under& under) {
    rdma_cm_id* listener = nullptr;  // an id without a channel is synchronous
    EXPECT_EQ(rdma_create_id(nullptr, &listener, nullptr, RDMA_PS_TCP), 0);
    sockaddr_in any = C::address(INADDR_LOOPBACK, 0);
    EXPECT_EQ(rdma_bind_addr(listener, reinterpret_cast<sockaddr*>(&any)), 0);
    EXPECT_EQ(rdma_listen(listener, 4), 0);
    Conversation conversation;
    EXPECT_EQ(rdma_destroy_id(conversation.listener), 0);
    conversation.listener = listener;
    EXPECT_EQ(conversation.resolve_addr(), 0);
    conversation.active().expect(RDMA_CM_EVENT_ADDR_RESOLVED);
    EXPECT_EQ(rdma_resolve_route(conversation.client, 2000), 0);
    conversation.active().expect(RDMA_CM_EVENT_ROUTE_RESOLVED);
    return under([&] {
      EXPECT_EQ(conversation.connect(), 0);
      rdma_cm_id* server = nullptr;
      const int error = failure(rdma_get_request(listener, &server));
      if (error == 0) {
        EXPECT_EQ(rdma_destroy_id(server), 0);
      }
      return error;
    });
  };
  return all;
}

}  // namespace rocemu::system_test
