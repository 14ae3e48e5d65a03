// A test program whose test with a Fabric hangs: hanging_test WAY real|virtual|lockstep. It has the
// form of the test suite in README.md, but does not use GoogleTest, since the program must fail.
#include <infiniband/verbs.h>
#include <rocemu/testing.h>

#include <cstdio>
#include <cstring>
#include <string>

namespace {

using namespace std::chrono_literals;
using rocemu::testing::ClockKind;

ClockKind clock_called(const std::string& name) {
  return name == "lockstep" ? ClockKind::kLockstep : ClockKind::kReal;
}

/// Waits for an event of a device that never has one.
void wait_for_ever() {
  ibv_device** devices = ibv_get_device_list(nullptr);
  ibv_context* context = ibv_open_device(devices[0]);
  ibv_pd* pd = ibv_alloc_pd(context);
  std::puts(pd != nullptr ? "waiting" : "no device");
  std::fflush(stdout);
  ibv_async_event event;
  ibv_get_async_event(context, &event);
}

/// Sends a message on a QP that is connected to itself. Then the program acknowledges the event of
/// its completion `times` times. Unless this is once, ibv_destroy_cq() waits for ever
/// (ibv_ack_cq_events(3)).
void send_to_itself(unsigned times) {
  ibv_context* context = ibv_open_device(ibv_get_device_list(nullptr)[0]);
  ibv_pd* pd = ibv_alloc_pd(context);
  static char buffer[64];
  ibv_mr* mr = ibv_reg_mr(pd, buffer, sizeof buffer, IBV_ACCESS_LOCAL_WRITE);
  ibv_comp_channel* channel = ibv_create_comp_channel(context);
  ibv_cq* cq = ibv_create_cq(context, 4, nullptr, channel, 0);
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = cq;
  init.cap = {1, 1, 1, 1, 0};
  init.qp_type = IBV_QPT_RC;
  ibv_qp* qp = ibv_create_qp(pd, &init);
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = 1;
  ibv_modify_qp(qp, &attributes,
                IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  attributes.qp_state = IBV_QPS_RTR;
  attributes.path_mtu = IBV_MTU_1024;
  attributes.dest_qp_num = qp->qp_num;
  attributes.ah_attr.port_num = 1;
  attributes.ah_attr.is_global = 1;
  ibv_query_gid(context, 1, 0, &attributes.ah_attr.grh.dgid);
  ibv_modify_qp(qp, &attributes,
                IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                    IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
  attributes.qp_state = IBV_QPS_RTS;
  ibv_modify_qp(qp, &attributes,
                IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                    IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
  ibv_sge sge{reinterpret_cast<uint64_t>(buffer), sizeof buffer, mr->lkey};
  ibv_recv_wr receive{}, *bad_receive = nullptr;
  receive.sg_list = &sge;
  receive.num_sge = 1;
  ibv_post_recv(qp, &receive, &bad_receive);
  ibv_req_notify_cq(cq, 0);
  ibv_send_wr send{}, *bad_send = nullptr;
  send.sg_list = &sge;
  send.num_sge = 1;
  send.opcode = IBV_WR_SEND;
  ibv_post_send(qp, &send, &bad_send);
  void* ignored = nullptr;
  ibv_cq* event_cq = nullptr;
  ibv_get_cq_event(channel, &event_cq, &ignored);
  ibv_destroy_qp(qp);
  if (times != 0) ibv_ack_cq_events(cq, times);
  if (times == 1) return;
  std::puts(event_cq == cq ? "destroying" : "no event");
  std::fflush(stdout);
  ibv_destroy_cq(cq);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::string way = argv[1];
  rocemu::testing::FabricOptions options{.clock = clock_called(argv[2])};
  if (way == "limit") options.timeout = 1s;
  rocemu::testing::Fabric nic(options);
  if (way == "itself" || way == "limit") wait_for_ever();
  if (way == "destroy_cq") send_to_itself(/*times=*/0);
  if (way == "destroy_cq_acknowledged_thrice") send_to_itself(/*times=*/3);
  if (way == "message") {  // the objects are never destroyed, so they exist as long as the process
    send_to_itself(/*times=*/1);
    return 0;
  }
  if (way == "program") {  // no client ever connects to this server
    const std::string port = std::to_string(rocemu::testing::free_port());
    try {
      nic.run({"rping", "-s", "-a", "127.0.0.1", "-p", port}, 10min);
    } catch (const rocemu::testing::Error& error) {
      std::puts(error.what());
      return 7;
    }
  }
  if (way == "ends") {
    nic.add_rule("{on: verb, verb: alloc_pd, nth: 1, do: {errno: ENOMEM}}");
    ibv_device** devices = ibv_get_device_list(nullptr);
    ibv_context* context = ibv_open_device(devices[0]);
    return ibv_alloc_pd(context) == nullptr && nic.rules().at(0).fired == 1 ? 0 : 1;
  }
  return 1;
}
