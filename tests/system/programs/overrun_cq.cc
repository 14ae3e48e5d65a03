// Overruns a CQ on the device that the argument names, and prints the events.
#include <infiniband/verbs.h>

#include <cstdio>
#include <cstring>

namespace {

ibv_context* open_by_name(const char* name) {
  int count = 0;
  ibv_device** list = ibv_get_device_list(&count);
  ibv_context* context = nullptr;
  for (int i = 0; i < count && context == nullptr; ++i) {
    if (std::strcmp(ibv_get_device_name(list[i]), name) == 0) context = ibv_open_device(list[i]);
  }
  if (list != nullptr) ibv_free_device_list(list);
  return context;
}

int fail(const char* what) {
  std::perror(what);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: overrun_cq DEVICE\n");
    return 2;
  }
  ibv_context* context = open_by_name(argv[1]);
  if (context == nullptr) return fail("ibv_open_device");
  ibv_pd* pd = ibv_alloc_pd(context);
  ibv_cq* cq = ibv_create_cq(context, 1, nullptr, nullptr, 0);
  if (pd == nullptr || cq == nullptr) return fail("ibv_create_cq");
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = cq;
  init.qp_type = IBV_QPT_RC;
  init.cap.max_send_wr = init.cap.max_send_sge = init.cap.max_recv_sge = 1;
  init.cap.max_recv_wr = 2;
  ibv_qp* qp = ibv_create_qp(pd, &init);
  if (qp == nullptr) return fail("ibv_create_qp");

  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  if (ibv_modify_qp(qp, &attr,
                    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) != 0) {
    return fail("ibv_modify_qp to INIT");
  }
  ibv_recv_wr wr{};
  ibv_recv_wr* bad = nullptr;
  for (int i = 0; i < 2; ++i) {
    if (ibv_post_recv(qp, &wr, &bad) != 0) return fail("ibv_post_recv");
  }
  attr.qp_state = IBV_QPS_ERR;  // two receives are flushed into a CQ for one completion
  if (ibv_modify_qp(qp, &attr, IBV_QP_STATE) != 0) return fail("ibv_modify_qp to ERR");

  ibv_async_event event{};
  if (ibv_get_async_event(context, &event) != 0) return fail("ibv_get_async_event");
  const bool cq_error = event.event_type == IBV_EVENT_CQ_ERR && event.element.cq == cq;
  std::printf("%s\n", cq_error ? "IBV_EVENT_CQ_ERR" : ibv_event_type_str(event.event_type));
  ibv_ack_async_event(&event);
  ibv_wc wc{};
  const int polled = ibv_poll_cq(cq, 1, &wc);
  std::printf("ibv_poll_cq returned %d\n", polled);
  return cq_error && polled < 0 ? 0 : 1;
}
