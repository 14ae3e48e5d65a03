#include "verbs_provider/objects/qp_attributes.h"

#include <cstring>

#include "verbs_provider/base/undefined_values.h"

namespace rocemu::provider {

abi::QpCap to_abi(const ibv_qp_cap& cap) {
  return {cap.max_send_wr, cap.max_recv_wr, cap.max_send_sge, cap.max_recv_sge,
          cap.max_inline_data};
}

ibv_qp_cap from_abi(const abi::QpCap& cap) {
  return {cap.max_send_wr, cap.max_recv_wr, cap.max_send_sge, cap.max_recv_sge,
          cap.max_inline_data};
}

abi::AhAttr to_abi(const ibv_ah_attr& attr) {
  abi::AhAttr to{};
  to.dlid = attr.dlid;
  to.sl = attr.sl;
  to.src_path_bits = attr.src_path_bits;
  to.static_rate = attr.static_rate;
  to.is_global = attr.is_global;
  to.port_num = attr.port_num;
  if (attr.is_global == 0) return to;
  memcpy(to.dgid, attr.grh.dgid.raw, sizeof(to.dgid));
  to.flow_label = attr.grh.flow_label;
  to.sgid_index = attr.grh.sgid_index;
  to.hop_limit = attr.grh.hop_limit;
  to.traffic_class = attr.grh.traffic_class;
  return to;
}

ibv_ah_attr from_abi(const abi::AhAttr& attr) {
  ibv_ah_attr to{};
  memcpy(to.grh.dgid.raw, attr.dgid, sizeof(attr.dgid));
  to.grh.flow_label = attr.flow_label;
  to.grh.sgid_index = attr.sgid_index;
  to.grh.hop_limit = attr.hop_limit;
  to.grh.traffic_class = attr.traffic_class;
  to.dlid = attr.dlid;
  to.sl = attr.sl;
  to.src_path_bits = attr.src_path_bits;
  to.static_rate = attr.static_rate;
  to.is_global = attr.is_global;
  to.port_num = attr.port_num;
  return to;
}

abi::QpAttr to_abi(const ibv_qp_attr& attr, int mask) {
  abi::QpAttr to{};
  if (mask & IBV_QP_STATE) to.qp_state = attr.qp_state;
  if (mask & IBV_QP_CUR_STATE) to.cur_qp_state = attr.cur_qp_state;
  if (mask & IBV_QP_EN_SQD_ASYNC_NOTIFY) to.en_sqd_async_notify = attr.en_sqd_async_notify;
  if (mask & IBV_QP_ACCESS_FLAGS) to.qp_access_flags = attr.qp_access_flags;
  if (mask & IBV_QP_PKEY_INDEX) to.pkey_index = attr.pkey_index;
  if (mask & IBV_QP_PORT) to.port_num = attr.port_num;
  if (mask & IBV_QP_QKEY) to.qkey = attr.qkey;
  if (mask & IBV_QP_AV) to.ah_attr = to_abi(attr.ah_attr);
  if (mask & IBV_QP_PATH_MTU) to.path_mtu = attr.path_mtu;
  if (mask & IBV_QP_TIMEOUT) to.timeout = attr.timeout;
  if (mask & IBV_QP_RETRY_CNT) to.retry_cnt = attr.retry_cnt;
  if (mask & IBV_QP_RNR_RETRY) to.rnr_retry = attr.rnr_retry;
  if (mask & IBV_QP_RQ_PSN) to.rq_psn = attr.rq_psn;
  if (mask & IBV_QP_MAX_QP_RD_ATOMIC) to.max_rd_atomic = attr.max_rd_atomic;
  if (mask & IBV_QP_ALT_PATH) {
    to.alt_ah_attr = to_abi(attr.alt_ah_attr);
    to.alt_pkey_index = attr.alt_pkey_index;
    to.alt_port_num = attr.alt_port_num;
    to.alt_timeout = attr.alt_timeout;
  }
  if (mask & IBV_QP_MIN_RNR_TIMER) to.min_rnr_timer = attr.min_rnr_timer;
  if (mask & IBV_QP_SQ_PSN) to.sq_psn = attr.sq_psn;
  if (mask & IBV_QP_MAX_DEST_RD_ATOMIC) to.max_dest_rd_atomic = attr.max_dest_rd_atomic;
  if (mask & IBV_QP_PATH_MIG_STATE) to.path_mig_state = attr.path_mig_state;
  if (mask & IBV_QP_CAP) to.cap = to_abi(attr.cap);
  if (mask & IBV_QP_DEST_QPN) to.dest_qp_num = attr.dest_qp_num;
  if (mask & IBV_QP_RATE_LIMIT) to.rate_limit = attr.rate_limit;
  return to;
}

void from_abi(const abi::QpAttr& from, ibv_qp_attr* to) {
  *to = {};
  to->qp_state = static_cast<ibv_qp_state>(from.qp_state);
  to->cur_qp_state = static_cast<ibv_qp_state>(from.cur_qp_state);
  to->path_mtu = static_cast<ibv_mtu>(from.path_mtu);
  to->path_mig_state = static_cast<ibv_mig_state>(from.path_mig_state);
  to->qkey = from.qkey;
  to->rq_psn = from.rq_psn;
  to->sq_psn = from.sq_psn;
  to->dest_qp_num = from.dest_qp_num;
  to->qp_access_flags = from.qp_access_flags;
  to->cap = from_abi(from.cap);
  to->ah_attr = from_abi(from.ah_attr);
  to->alt_ah_attr = from_abi(from.alt_ah_attr);
  to->pkey_index = from.pkey_index;
  to->alt_pkey_index = from.alt_pkey_index;
  to->en_sqd_async_notify = from.en_sqd_async_notify;
  to->sq_draining = from.sq_draining;
  to->max_rd_atomic = from.max_rd_atomic;
  to->max_dest_rd_atomic = from.max_dest_rd_atomic;
  to->min_rnr_timer = from.min_rnr_timer;
  to->port_num = from.port_num;
  to->timeout = from.timeout;
  to->retry_cnt = from.retry_cnt;
  to->rnr_retry = from.rnr_retry;
  to->alt_port_num = from.alt_port_num;
  to->alt_timeout = from.alt_timeout;
  to->rate_limit = from.rate_limit;
}

void fill_unrequested(int mask, ibv_qp_attr* attr) {
  const auto fill = [mask](int bits, auto&... fields) {
    if ((mask & bits) == 0) (memset(&fields, kUnusableByte, sizeof(fields)), ...);
  };
  fill(IBV_QP_STATE, attr->qp_state);
  fill(IBV_QP_CUR_STATE, attr->cur_qp_state);
  fill(IBV_QP_EN_SQD_ASYNC_NOTIFY, attr->en_sqd_async_notify);
  fill(IBV_QP_ACCESS_FLAGS, attr->qp_access_flags);
  fill(IBV_QP_PKEY_INDEX, attr->pkey_index);
  fill(IBV_QP_PORT, attr->port_num);
  fill(IBV_QP_QKEY, attr->qkey);
  fill(IBV_QP_AV, attr->ah_attr);
  fill(IBV_QP_PATH_MTU, attr->path_mtu);
  fill(IBV_QP_TIMEOUT, attr->timeout);
  fill(IBV_QP_RETRY_CNT, attr->retry_cnt);
  fill(IBV_QP_RNR_RETRY, attr->rnr_retry);
  fill(IBV_QP_RQ_PSN, attr->rq_psn);
  fill(IBV_QP_MAX_QP_RD_ATOMIC, attr->max_rd_atomic);
  fill(IBV_QP_ALT_PATH, attr->alt_ah_attr, attr->alt_pkey_index, attr->alt_port_num,
       attr->alt_timeout);
  fill(IBV_QP_MIN_RNR_TIMER, attr->min_rnr_timer);
  fill(IBV_QP_SQ_PSN, attr->sq_psn);
  fill(IBV_QP_MAX_DEST_RD_ATOMIC, attr->max_dest_rd_atomic);
  fill(IBV_QP_PATH_MIG_STATE, attr->path_mig_state);
  fill(IBV_QP_CAP, attr->cap);
  fill(IBV_QP_DEST_QPN, attr->dest_qp_num);
  fill(IBV_QP_RATE_LIMIT, attr->rate_limit);
}

}  // namespace rocemu::provider
