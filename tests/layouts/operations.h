// The operations of each version of libibverbs, in its order. They are copied from rdma-core's
// driver.h, to compare the provider's own list with them.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

namespace rocemu::layouts {

inline std::vector<std::string> operations_of(int newest_public) {
  std::vector<std::string> names{"advise_mr",
                                 "alloc_dm",
                                 "alloc_mw",
                                 "alloc_null_mr",
                                 "alloc_parent_domain",
                                 "alloc_pd",
                                 "alloc_td",
                                 "async_event",
                                 "attach_counters_point_flow",
                                 "attach_mcast",
                                 "bind_mw",
                                 "close_xrcd",
                                 "cq_event",
                                 "create_ah",
                                 "create_counters",
                                 "create_cq",
                                 "create_cq_ex",
                                 "create_flow",
                                 "create_flow_action_esp",
                                 "create_qp",
                                 "create_qp_ex",
                                 "create_rwq_ind_table",
                                 "create_srq",
                                 "create_srq_ex",
                                 "create_wq",
                                 "dealloc_mw",
                                 "dealloc_pd",
                                 "dealloc_td",
                                 "dereg_mr",
                                 "destroy_ah",
                                 "destroy_counters",
                                 "destroy_cq",
                                 "destroy_flow",
                                 "destroy_flow_action",
                                 "destroy_qp",
                                 "destroy_rwq_ind_table",
                                 "destroy_srq",
                                 "destroy_wq",
                                 "detach_mcast",
                                 "free_context",
                                 "free_dm",
                                 "get_srq_num",
                                 "import_dm",
                                 "import_mr",
                                 "import_pd",
                                 "modify_cq",
                                 "modify_flow_action_esp",
                                 "modify_qp",
                                 "modify_qp_rate_limit",
                                 "modify_srq",
                                 "modify_wq",
                                 "open_qp",
                                 "open_xrcd",
                                 "poll_cq",
                                 "post_recv",
                                 "post_send",
                                 "post_srq_ops",
                                 "post_srq_recv",
                                 "query_device_ex",
                                 "query_ece",
                                 "query_port",
                                 "query_qp",
                                 "query_qp_data_in_order",
                                 "query_rt_values",
                                 "query_srq",
                                 "read_counters",
                                 "reg_dm_mr",
                                 "reg_dmabuf_mr",
                                 "reg_mr",
                                 "req_notify_cq",
                                 "rereg_mr",
                                 "resize_cq",
                                 "set_ece",
                                 "unimport_dm",
                                 "unimport_mr",
                                 "unimport_pd"};
  const auto add = [&](std::initializer_list<const char*> more) {
    names.insert(names.end(), more.begin(), more.end());
  };
  if (newest_public >= 15) add({"alloc_dmah", "dealloc_dmah", "reg_mr_ex"});
  if (newest_public >= 16) add({"dm_export_dmabuf_fd", "query_port_speed"});
  if (newest_public >= 17) add({"alloc_buf", "free_buf"});
  if (newest_public >= 18) {
    add({"create_comp_cntr", "destroy_comp_cntr", "inc_comp_cntr", "inc_err_comp_cntr",
         "qp_attach_comp_cntr", "query_comp_cntr_caps", "read_comp_cntr", "read_err_comp_cntr",
         "set_comp_cntr", "set_err_comp_cntr"});
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace rocemu::layouts
