// Tests docs/statuses.md: the rule on the page for every ibv_wc_status, ibv_event_type and
// rdma_cm_event_type causes this value in a program of the public API. The list of values comes
// from the headers, so that none can be missing.
#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/system/faults_page.h"
#include "tests/system/verbs_fixture.h"

namespace rocemu::system_test {
namespace {

/// Returns the enumerators of an enum in a header, in order. Their values start with 0, since none
/// is given explicitly.
std::vector<std::string> enumerators(const char* header, const std::string& name) {
  const std::string text = content_of(header);
  std::smatch body;
  std::vector<std::string> names;
  if (!std::regex_search(text, body, std::regex("enum " + name + " \\{([^}]*)\\}"))) {
    ADD_FAILURE() << header << " has no enum " << name;
    return names;
  }
  std::stringstream lines(body[1]);
  for (std::string entry; std::getline(lines, entry, ',');) {
    std::smatch word;
    if (std::regex_search(entry, word, std::regex("([A-Z][A-Z0-9_]+)"))) names.push_back(word[1]);
  }
  return names;
}

class FaultTable : public VerbsTest {
 protected:
  /// Connects two QPs that use one SRQ, and sends a message from one to the other.
  void SetUp() override {
    VerbsTest::SetUp();
    send_cq = create_cq();
    recv_cq = create_cq();
    ibv_srq_init_attr srq_init{};
    srq_init.attr = {.max_wr = 8, .max_sge = 1, .srq_limit = 0};
    srq = ibv_create_srq(pd.get(), &srq_init);
    ASSERT_NE(srq, nullptr);
    for (ibv_qp*& qp : qps) {
      ibv_qp_init_attr init{};
      init.send_cq = send_cq.get();
      init.recv_cq = recv_cq.get();
      init.srq = srq;
      init.qp_type = IBV_QPT_RC;
      init.cap = {.max_send_wr = 8,
                  .max_recv_wr = 0,
                  .max_send_sge = 1,
                  .max_recv_sge = 0,
                  .max_inline_data = 0};
      qp = ibv_create_qp(pd.get(), &init);
      ASSERT_NE(qp, nullptr);
    }
    constexpr uint8_t kRnrRetries = 2;
    ASSERT_NO_FATAL_FAILURE(connect(qps[0], qps[1], kRnrRetries));
  }
  void TearDown() override {
    for (ibv_qp* qp : qps) EXPECT_EQ(ibv_destroy_qp(qp), 0);
    EXPECT_EQ(ibv_destroy_srq(srq), 0);
    ask_daemon(R"({"command":"clear"})");
    send_cq.reset();
    recv_cq.reset();
    mr.reset();
    pd.reset();
    context.reset();
  }

  void send_a_message() {
    ibv_sge entry = sge(1, 64);
    ibv_recv_wr recv{};
    recv.sg_list = &entry;
    recv.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_srq_recv(srq, &recv, &bad), 0);
    ASSERT_EQ(post_send(qps[0], 7), 0);
  }

  /// Acknowledges async events until `wanted` arrives, and returns the types of all of them.
  std::set<ibv_event_type> events_until(ibv_event_type wanted) {
    std::set<ibv_event_type> types;
    while (!types.contains(wanted) && readable(context->async_fd, 30'000)) {
      ibv_async_event event{};
      if (ibv_get_async_event(context.get(), &event) != 0) break;
      types.insert(event.event_type);
      if (event.event_type != IBV_EVENT_WQ_FATAL) ibv_ack_async_event(&event);
    }
    return types;
  }
  void take_remaining_events() {
    settle();
    while (readable(context->async_fd)) {
      ibv_async_event event{};
      if (ibv_get_async_event(context.get(), &event) != 0) return;
      if (event.event_type != IBV_EVENT_WQ_FATAL) ibv_ack_async_event(&event);
    }
  }

  CqPtr send_cq, recv_cq;
  ibv_srq* srq = nullptr;
  ibv_qp* qps[2] = {};
};

TEST_F(FaultTable, CausesEveryCompletionStatus) {
  const auto names = enumerators(ROCEMU_VERBS_H, "ibv_wc_status");
  ASSERT_GE(names.size(), 24u);
  for (size_t value = 0; value < names.size(); ++value) {
    SCOPED_TRACE(names[value]);
    if (value != 0) {
      ASSERT_NO_FATAL_FAILURE(SetUp());
    }
    inject(rule_for(names[value]));
    ASSERT_NO_FATAL_FAILURE(send_a_message());
    const auto done = poll_for(send_cq.get(), 1);
    ASSERT_EQ(done.size(), 1u);
    EXPECT_EQ(done[0].status, static_cast<ibv_wc_status>(value))
        << ibv_wc_status_str(done[0].status);
    EXPECT_EQ(done[0].wr_id, 7u);
    ibv_qp_attr attr{};
    ibv_qp_init_attr init{};
    ASSERT_EQ(ibv_query_qp(qps[0], &attr, IBV_QP_STATE, &init), 0);
    EXPECT_EQ(attr.qp_state, value == 0 ? IBV_QPS_RTS : IBV_QPS_ERR);
    take_remaining_events();
    if (value + 1 < names.size()) {
      ASSERT_NO_FATAL_FAILURE(TearDown());
    }
  }
}

// docs/scenarios.md: after a rule made a QP fail, its flushed requests complete as flushed (IBTA
// vol 1, 10.3.1.5), even if the rule has no count.
TEST_F(FaultTable, AFailedCompletionIsFollowedByFlushedOnes) {
  inject("{name: r, on: completion, queue: send, do: {status: GENERAL_ERR}}");
  for (uint64_t wr_id = 0; wr_id < 8; ++wr_id) ASSERT_EQ(post_send(qps[0], wr_id), 0);
  const auto done = poll_for(send_cq.get(), 8);
  ASSERT_EQ(done.size(), 8u);
  for (uint64_t i = 0; i < 8; ++i) {
    EXPECT_EQ(done[i].wr_id, i);
    EXPECT_EQ(done[i].status, i == 0 ? IBV_WC_GENERAL_ERR : IBV_WC_WR_FLUSH_ERR) << i;
  }
  take_remaining_events();
}

TEST_F(FaultTable, CausesEveryAsyncEvent) {
  const auto names = enumerators(ROCEMU_VERBS_H, "ibv_event_type");
  ASSERT_GE(names.size(), 20u);
  for (size_t value = 0; value < names.size(); ++value) {
    SCOPED_TRACE(names[value]);
    if (value != 0) {
      ASSERT_NO_FATAL_FAILURE(SetUp());
    }
    const std::string rule = rule_for(names[value]);
    inject(rule);
    if (rule.find("on: now") == std::string::npos) {
      ASSERT_NO_FATAL_FAILURE(send_a_message());
    }
    const auto type = static_cast<ibv_event_type>(value);
    EXPECT_TRUE(events_until(type).contains(type));
    take_remaining_events();
    if (rule.find("port: down") != std::string::npos) inject("{on: now, do: {port: up}}");
    take_remaining_events();
    if (value + 1 < names.size()) {
      ASSERT_NO_FATAL_FAILURE(TearDown());
    }
  }
}

/// A server, its client and a member of a multicast group. Each reacts to its events and proceeds
/// as far as it can, through all states of a connection.
class Conversation {
 public:
  Conversation() {
    channel_ = rdma_create_event_channel();
    create(listener_, RDMA_PS_TCP);
    create(client_, RDMA_PS_TCP);
    create(member_, RDMA_PS_UDP);
    sockaddr_in any = address(INADDR_LOOPBACK, 0);
    EXPECT_EQ(rdma_bind_addr(listener_, reinterpret_cast<sockaddr*>(&any)), 0);
    EXPECT_EQ(rdma_listen(listener_, 4), 0);
    sockaddr_in to = address(INADDR_LOOPBACK, rdma_get_src_port(listener_));
    EXPECT_EQ(rdma_resolve_addr(client_, nullptr, reinterpret_cast<sockaddr*>(&to), 2000), 0);
    EXPECT_EQ(rdma_bind_addr(member_, reinterpret_cast<sockaddr*>(&any)), 0);
    sockaddr_in group = address(0xef010203, 0);  // 239.1.2.3
    EXPECT_EQ(rdma_join_multicast(member_, reinterpret_cast<sockaddr*>(&group), nullptr), 0);
  }
  ~Conversation() {
    for (rdma_cm_id* id : {client_, server_, member_, listener_}) {
      if (id != nullptr) {
        EXPECT_EQ(rdma_destroy_id(id), 0);
      }
    }
    rdma_destroy_event_channel(channel_);
  }

  /// Proceeds until this event arrives. Returns whether it arrived.
  bool meets(rdma_cm_event_type wanted) {
    while (readable(channel_->fd, 30'000)) {
      rdma_cm_event* event = nullptr;
      if (rdma_get_cm_event(channel_, &event) != 0) return false;
      const rdma_cm_event_type type = event->event;
      rdma_cm_id* const id = event->id;
      rdma_ack_cm_event(event);
      if (type == wanted) return true;
      answer(type, id);
    }
    return false;
  }

 private:
  void create(rdma_cm_id*& id, rdma_port_space space) {
    EXPECT_EQ(rdma_create_id(channel_, &id, nullptr, space), 0) << std::strerror(errno);
  }
  static sockaddr_in address(uint32_t ip, uint16_t big_endian_port) {
    sockaddr_in result{};
    result.sin_family = AF_INET;
    result.sin_port = big_endian_port;
    result.sin_addr.s_addr = htonl(ip);
    return result;
  }
  static rdma_conn_param parameters() {
    static uint32_t next_qpn = 0x200;
    rdma_conn_param param{};
    param.qp_num = next_qpn++;
    param.retry_count = param.rnr_retry_count = 7;
    return param;
  }
  void answer(rdma_cm_event_type type, rdma_cm_id* id) {
    rdma_conn_param param = parameters();
    if (type == RDMA_CM_EVENT_ADDR_RESOLVED) {
      EXPECT_EQ(rdma_resolve_route(client_, 2000), 0);
    } else if (type == RDMA_CM_EVENT_ROUTE_RESOLVED) {
      EXPECT_EQ(rdma_connect(client_, &param), 0);
    } else if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
      server_ = id;
      EXPECT_EQ(rdma_accept(server_, &param), 0);
    } else if (type == RDMA_CM_EVENT_CONNECT_RESPONSE) {
      EXPECT_EQ(rdma_establish(client_), 0);
    } else if (type == RDMA_CM_EVENT_ESTABLISHED) {
      EXPECT_EQ(rdma_disconnect(client_), 0);
    }
  }

  rdma_event_channel* channel_ = nullptr;
  rdma_cm_id* listener_ = nullptr;
  rdma_cm_id* client_ = nullptr;
  rdma_cm_id* server_ = nullptr;
  rdma_cm_id* member_ = nullptr;
};

TEST(FaultTableOfRdmaCm, CausesEveryEvent) {
  const auto names = enumerators(ROCEMU_RDMA_CMA_H, "rdma_cm_event_type");
  ASSERT_GE(names.size(), 16u);
  for (size_t value = 0; value < names.size(); ++value) {
    SCOPED_TRACE(names[value]);
    // librdmacm creates these events itself, so a rule cannot cause them.
    if (names[value] == "RDMA_CM_EVENT_INTERNAL" ||
        names[value] == "RDMA_CM_EVENT_ADDRINFO_RESOLVED")
      continue;
    inject(rule_for(names[value]));
    Conversation conversation;
    EXPECT_TRUE(conversation.meets(static_cast<rdma_cm_event_type>(value)));
    ask_daemon(R"({"command":"clear"})");
  }
}

}  // namespace
}  // namespace rocemu::system_test
