// Tests rdma_get_cm_event(3): the events that librdmacm itself makes out of other events.
#include <infiniband/verbs.h>

#include <vector>

#include "tests/system/rdmacm_fixture.h"

namespace rocemu::system_test {
namespace {

class RdmaCmEvents : public RdmaCmTest {
 protected:
  static ibv_qp_init_attr small_qp(ibv_qp_type type) {
    ibv_qp_init_attr attr{};
    attr.qp_type = type;
    attr.cap.max_send_wr = attr.cap.max_recv_wr = 1;
    attr.cap.max_send_sge = attr.cap.max_recv_sge = 1;
    return attr;
  }
};

// "RDMA_CM_EVENT_CONNECT_ERROR Indicates that an error has occurred trying to establish or a
// connection. May be generated on the active or passive side of a connection."
TEST_F(RdmaCmEvents, AQpThatCannotBeConnectedIsAConnectError) {
  ibv_qp_init_attr init = small_qp(IBV_QPT_RC);
  ASSERT_EQ(rdma_create_qp(client, nullptr, &init), 0) << std::strerror(errno);
  request_connection();
  ibv_qp_attr failed{};
  failed.qp_state = IBV_QPS_ERR;
  ASSERT_EQ(ibv_modify_qp(client->qp, &failed, IBV_QP_STATE), 0);
  rdma_conn_param param = parameters();
  ASSERT_EQ(rdma_accept(server, &param), 0);
  active.expect(RDMA_CM_EVENT_CONNECT_ERROR, -1);
  rdma_destroy_qp(client);
}

// "RDMA_CM_EVENT_MULTICAST_ERROR An error occurred either joining a multicast group, or, if the
// group had already been joined, on an existing group."
TEST_F(RdmaCmEvents, AQpThatCannotBeAttachedIsAMulticastError) {
  EventChannel channel;
  rdma_cm_id* id = nullptr;
  ASSERT_EQ(rdma_create_id(channel.get(), &id, nullptr, RDMA_PS_UDP), 0);
  sockaddr_in from = loopback(0);
  ASSERT_EQ(rdma_bind_addr(id, reinterpret_cast<sockaddr*>(&from)), 0);
  ibv_qp_init_attr init = small_qp(IBV_QPT_UD);
  ASSERT_EQ(rdma_create_qp(id, nullptr, &init), 0) << std::strerror(errno);

  ibv_device_attr device{};
  ASSERT_EQ(ibv_query_device(id->verbs, &device), 0);
  ibv_gid group{};
  group.raw[10] = group.raw[11] = 0xff;
  const uint8_t address[] = {239, 1, 2, 3};
  std::memcpy(group.raw + 12, address, sizeof address);
  std::vector<ibv_qp*> members;
  for (int i = 0; i < device.max_mcast_qp_attach; ++i) {
    ibv_qp_init_attr member = small_qp(IBV_QPT_UD);
    member.send_cq = id->send_cq;
    member.recv_cq = id->recv_cq;
    members.push_back(ibv_create_qp(id->pd, &member));
    ASSERT_NE(members.back(), nullptr);
    ASSERT_EQ(ibv_attach_mcast(members.back(), &group, 0), 0);
  }
  sockaddr_in to = loopback(0);
  std::memcpy(&to.sin_addr, address, sizeof address);
  ASSERT_EQ(rdma_join_multicast(id, reinterpret_cast<sockaddr*>(&to), nullptr), 0);
  channel.expect(RDMA_CM_EVENT_MULTICAST_ERROR, -1);
  // librdmacm has not forgotten the group, so the program can leave it.
  EXPECT_EQ(rdma_leave_multicast(id, reinterpret_cast<sockaddr*>(&to)), 0);

  for (ibv_qp* member : members) {
    EXPECT_EQ(ibv_detach_mcast(member, &group, 0), 0);
    EXPECT_EQ(ibv_destroy_qp(member), 0);
  }
  rdma_destroy_qp(id);
  EXPECT_EQ(rdma_destroy_id(id), 0);
}

}  // namespace
}  // namespace rocemu::system_test
