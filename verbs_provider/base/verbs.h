// The verbs that this provider implements, with the types that ContextOps gives them. They return
// the values of their man pages: a pointer or null with errno set, or 0 or a positive errno value,
// which verb.h stores in errno too.
#pragma once

#include <infiniband/verbs.h>

#include <type_traits>

#include "verbs_provider/base/private_abi.h"

namespace rocemu::provider {

/// All verbs, with their behavior in a child of fork() (InChild, verb.h). This list declares each
/// verb here and adds it to a context's operations (provider.cc).
#define ROCEMU_VERBS(V)          \
  V(advise_mr, kFails)           \
  V(alloc_dm, kWorks)            \
  V(alloc_mw, kFails)            \
  V(alloc_null_mr, kFails)       \
  V(alloc_parent_domain, kFails) \
  V(alloc_pd, kFails)            \
  V(alloc_td, kFails)            \
  V(attach_mcast, kFails)        \
  V(bind_mw, kFails)             \
  V(close_xrcd, kFails)          \
  V(create_ah, kFails)           \
  V(create_cq, kFails)           \
  V(create_cq_ex, kFails)        \
  V(create_qp, kFails)           \
  V(create_qp_ex, kFails)        \
  V(create_srq, kFails)          \
  V(create_srq_ex, kFails)       \
  V(dealloc_mw, kFails)          \
  V(dealloc_pd, kFails)          \
  V(dealloc_td, kFails)          \
  V(dereg_mr, kFails)            \
  V(destroy_ah, kFails)          \
  V(destroy_cq, kFails)          \
  V(destroy_qp, kFails)          \
  V(destroy_srq, kFails)         \
  V(detach_mcast, kFails)        \
  V(free_context, kWorks)        \
  V(free_dm, kWorks)             \
  V(get_srq_num, kWorks)         \
  V(import_mr, kFails)           \
  V(import_pd, kFails)           \
  V(modify_cq, kFails)           \
  V(modify_qp, kFails)           \
  V(modify_srq, kFails)          \
  V(open_qp, kFails)             \
  V(open_xrcd, kFails)           \
  V(post_recv, kFails)           \
  V(post_send, kFails)           \
  V(post_srq_recv, kFails)       \
  V(query_device_ex, kWorks)     \
  V(query_port, kWorks)          \
  V(query_qp, kWorks)            \
  V(query_rt_values, kFails)     \
  V(query_srq, kWorks)           \
  V(reg_dm_mr, kFails)           \
  V(reg_dmabuf_mr, kFails)       \
  V(reg_mr, kFails)              \
  V(req_notify_cq, kFails)       \
  V(rereg_mr, kFails)            \
  V(resize_cq, kFails)           \
  V(unimport_mr, kWorks)         \
  V(unimport_pd, kWorks)

template <class Pointer>
using FunctionType = std::remove_pointer_t<Pointer>;

#define ROCEMU_DECLARE_VERB(name, in_child) FunctionType<decltype(ContextOps::name)> name;
ROCEMU_VERBS(ROCEMU_DECLARE_VERB)
#undef ROCEMU_DECLARE_VERB

/// poll_cq is also a verb, but it returns a number of completions.
FunctionType<decltype(ContextOps::poll_cq)> poll_cq;

/// Posts one IBV_WR_BIND_MW of a type 1 window, which ibv_post_send() does not accept.
int post_bind(ibv_qp* qp, ibv_send_wr* wr);

}  // namespace rocemu::provider
