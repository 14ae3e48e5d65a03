// Tests librdmacm in a child of fork(). An event channel is a descriptor, and works in every
// process that has it, as on Linux. The verbs that librdmacm calls fail for a device that the
// parent has opened (fork_verbs_test.cc).
#include <fcntl.h>
#include <rdma/rdma_verbs.h>

#include <thread>

#include "tests/system/child.h"
#include "tests/system/rdmacm_fixture.h"

namespace rocemu::system_test {
namespace {

ibv_qp_init_attr small_qp() {
  ibv_qp_init_attr init{};
  init.qp_type = IBV_QPT_RC;
  init.sq_sig_all = 1;
  init.cap = {.max_send_wr = 4,
              .max_recv_wr = 4,
              .max_send_sge = 1,
              .max_recv_sge = 1,
              .max_inline_data = 64};
  return init;
}

class ForkRdmaCm : public RdmaCmTest {
 protected:
  static void fails(const Report& report, const char* name, int error,
                    const std::function<int()>& call) {
    report.begins(name);
    errno = 0;
    const int result = call();
    const int found = errno;
    report.expect(result == -1 && found == error, std::string(name) + " returned " +
                                                      std::to_string(result) + " with errno " +
                                                      std::to_string(found));
  }
  static void works(const Report& report, const char* name, const std::function<int()>& call) {
    report.begins(name);
    const int result = call();
    report.expect(result == 0, std::string(name) + ": " + std::strerror(errno));
  }
};

TEST_F(ForkRdmaCm, CallsOfAParentsIdsWorkOrFailButForTheVerbsOfItsDevice) {
  ibv_qp_init_attr init = small_qp();
  ASSERT_EQ(rdma_create_qp(client, nullptr, &init), 0) << std::strerror(errno);
  alignas(4096) static char bytes[4096];
  ibv_mr* mr = rdma_reg_msgs(client, bytes, sizeof bytes);
  ASSERT_NE(mr, nullptr);
  EXPECT_EQ(in_child([&](const Report& report) {
              // These calls only query the id.
              report.expect(rdma_get_local_addr(client) != nullptr, "rdma_get_local_addr");
              report.expect(rdma_get_src_port(listener) != 0, "rdma_get_src_port");
              // These calls need verbs on the parent's objects.
              fails(report, "rdma_post_send", EPERM,
                    [&] { return rdma_post_send(client, nullptr, bytes, 8, mr, 0); });
              fails(report, "rdma_post_recv", EPERM,
                    [&] { return rdma_post_recv(client, nullptr, bytes, 8, mr); });
              fails(report, "rdma_reg_msgs", EPERM,
                    [&] { return rdma_reg_msgs(client, bytes, 8) == nullptr ? -1 : 0; });
              ibv_srq_init_attr srq{};
              srq.attr = {.max_wr = 4, .max_sge = 1, .srq_limit = 0};
              fails(report, "rdma_create_srq", EPERM,
                    [&] { return rdma_create_srq(client, nullptr, &srq); });
              fails(report, "rdma_disconnect", EPERM, [&] { return rdma_disconnect(client); });
              report.begins("rdma_destroy_qp");
              rdma_destroy_qp(client);
              ibv_qp_init_attr again = small_qp();
              fails(report, "rdma_create_qp", EPERM,
                    [&] { return rdma_create_qp(client, nullptr, &again); });
              // The parent's channel.
              fcntl(active.get()->fd, F_SETFL, O_NONBLOCK);
              rdma_cm_event* event = nullptr;
              fails(report, "rdma_get_cm_event", EAGAIN,
                    [&] { return rdma_get_cm_event(active.get(), &event); });
              fcntl(active.get()->fd, F_SETFL, 0);
              // The child opens a new event channel, with its own ids, on the device that the
              // parent has opened.
              rdma_event_channel* channel = rdma_create_event_channel();
              if (channel == nullptr) return report.wrong("rdma_create_event_channel");
              for (rdma_event_channel* on : {channel, active.get()}) {
                rdma_cm_id* id = nullptr;
                works(report, "rdma_create_id",
                      [&] { return rdma_create_id(on, &id, nullptr, RDMA_PS_TCP); });
                sockaddr_in to = loopback(rdma_get_src_port(listener));
                works(report, "rdma_resolve_addr", [&] {
                  return rdma_resolve_addr(id, nullptr, reinterpret_cast<sockaddr*>(&to), 2000);
                });
                works(report, "rdma_get_cm_event", [&] { return rdma_get_cm_event(on, &event); });
                report.expect(event->event == RDMA_CM_EVENT_ADDR_RESOLVED, "the event");
                works(report, "rdma_ack_cm_event", [&] { return rdma_ack_cm_event(event); });
                again = small_qp();
                fails(report, "rdma_create_qp", EPERM,
                      [&] { return rdma_create_qp(id, nullptr, &again); });
                works(report, "rdma_destroy_id", [&] { return rdma_destroy_id(id); });
                rdma_cm_id* own_listener = nullptr;
                works(report, "rdma_create_id",
                      [&] { return rdma_create_id(on, &own_listener, nullptr, RDMA_PS_TCP); });
                sockaddr_in any = loopback(0);
                works(report, "rdma_bind_addr", [&] {
                  return rdma_bind_addr(own_listener, reinterpret_cast<sockaddr*>(&any));
                });
                works(report, "rdma_listen", [&] { return rdma_listen(own_listener, 1); });
                works(report, "rdma_destroy_id", [&] { return rdma_destroy_id(own_listener); });
              }
              report.begins("rdma_destroy_event_channel");
              rdma_destroy_event_channel(channel);
              rdma_destroy_event_channel(active.get());
              rdma_destroy_event_channel(passive.get());
              report.begins("exit");
              exit(0);  // at exit, librdmacm closes its devices
            }),
            "");
  EXPECT_EQ(rdma_dereg_mr(mr), 0);
  rdma_destroy_qp(client);
  ASSERT_NO_FATAL_FAILURE(establish());
}

/// Serves one connection in a child of a server. Only the child opens the device. The connection's
/// events go to a new channel, since on the parent's channel its siblings could read them.
void accept_and_receive(const Report& report, rdma_event_channel* channel) {
  rdma_cm_event* event = nullptr;
  report.begins("rdma_get_cm_event");
  if (rdma_get_cm_event(channel, &event) != 0) return report.wrong("no connect request");
  rdma_cm_id* id = event->id;
  rdma_ack_cm_event(event);
  rdma_event_channel* own = rdma_create_event_channel();
  if (own == nullptr || rdma_migrate_id(id, own) != 0) return report.wrong("rdma_migrate_id");
  ibv_qp_init_attr init = small_qp();
  if (rdma_create_qp(id, nullptr, &init) != 0) return report.wrong("rdma_create_qp");
  alignas(4096) static char bytes[4096];
  ibv_mr* mr = rdma_reg_msgs(id, bytes, sizeof bytes);
  if (mr == nullptr) return report.wrong("rdma_reg_msgs");
  if (rdma_post_recv(id, nullptr, bytes, sizeof bytes, mr) != 0) return report.wrong("post_recv");
  if (rdma_accept(id, nullptr) != 0) return report.wrong("rdma_accept");
  ibv_wc wc;
  report.begins("rdma_get_recv_comp");
  if (rdma_get_recv_comp(id, &wc) != 1 || wc.status != IBV_WC_SUCCESS) {
    return report.wrong("the completion");
  }
  report.expect(std::strcmp(bytes, "for the child") == 0, "the message");
}

void connect_and_send(const Report& report, uint16_t port) {
  rdma_cm_id* id = nullptr;  // without an event channel, so its calls wait
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = port;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  report.begins("rdma_connect");
  ibv_qp_init_attr init = small_qp();
  char bytes[] = "for the child";
  ibv_wc wc;
  const bool right =
      rdma_create_id(nullptr, &id, nullptr, RDMA_PS_TCP) == 0 &&
      rdma_resolve_addr(id, nullptr, reinterpret_cast<sockaddr*>(&to), 2000) == 0 &&
      rdma_resolve_route(id, 2000) == 0 && rdma_create_qp(id, nullptr, &init) == 0 &&
      rdma_connect(id, nullptr) == 0 &&
      rdma_post_send(id, nullptr, bytes, sizeof bytes, nullptr, IBV_SEND_INLINE) == 0 &&
      rdma_get_send_comp(id, &wc) == 1 && wc.status == IBV_WC_SUCCESS;
  report.expect(right, "the client");
}

TEST(ForkAListener, MayBeAcceptedFromByAChild) {
  // The parent has not opened the device yet. It keeps its listener until it ends, because
  // rdma_destroy_id() would wait until the child's events are acknowledged, as on Linux.
  EXPECT_EQ(
      in_child([](const Report& report) {
        rdma_event_channel* channel = rdma_create_event_channel();
        rdma_cm_id* listener = nullptr;
        sockaddr_in any{};
        any.sin_family = AF_INET;
        if (channel == nullptr || rdma_create_id(channel, &listener, nullptr, RDMA_PS_TCP) != 0 ||
            rdma_bind_addr(listener, reinterpret_cast<sockaddr*>(&any)) != 0 ||
            rdma_listen(listener, 4) != 0) {
          return report.wrong("a listener");
        }
        for (int i = 0; i < 2; ++i) {
          std::string wrong;
          std::thread server([&] {
            wrong = in_child([&](const Report& childs) { accept_and_receive(childs, channel); });
          });
          wrong += in_child(
              [&](const Report& others) { connect_and_send(others, rdma_get_src_port(listener)); });
          server.join();
          if (!wrong.empty()) report.wrong(wrong);
        }
      }),
      "");
}

}  // namespace
}  // namespace rocemu::system_test
