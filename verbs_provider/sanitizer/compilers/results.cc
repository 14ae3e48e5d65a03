#include "verbs_provider/sanitizer/compilers/results.h"

#include "verbs_provider/sanitizer/compilers/initialized_memory.h"
#include "verbs_provider/sanitizer/wrapped_verbs.h"

namespace rocemu::sanitizer {
namespace {

int poll_cq(ibv_cq* cq, int count, ibv_wc* wc) {
  const int taken = original.poll_cq(cq, count, wc);
  if (taken > 0) mark_initialized(wc, static_cast<uint64_t>(taken) * sizeof *wc);
  return taken;
}

int query_device_ex(ibv_context* context, const ibv_query_device_ex_input* input,
                    ibv_device_attr_ex* attr, size_t size) {
  const int error = original.query_device_ex(context, input, attr, size);
  if (error == 0) mark_initialized(attr, size);
  return error;
}

int query_port(ibv_context* context, uint8_t port, ibv_port_attr* attr) {
  const int error = original.query_port(context, port, attr);
  if (error == 0) mark_initialized(attr, sizeof *attr);
  return error;
}

int query_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask, ibv_qp_init_attr* init) {
  const int error = original.query_qp(qp, attr, mask, init);
  if (error != 0) return error;
  mark_initialized(attr, sizeof *attr);
  mark_initialized(init, sizeof *init);
  return error;
}

int query_srq(ibv_srq* srq, ibv_srq_attr* attr) {
  const int error = original.query_srq(srq, attr);
  if (error == 0) mark_initialized(attr, sizeof *attr);
  return error;
}

}  // namespace

void wrap_results(provider::ContextOps& ops) {
  if (!has_memory_sanitizer()) return;
  ops.poll_cq = poll_cq;
  ops.query_device_ex = query_device_ex;
  ops.query_port = query_port;
  ops.query_qp = query_qp;
  ops.query_srq = query_srq;
}

}  // namespace rocemu::sanitizer
