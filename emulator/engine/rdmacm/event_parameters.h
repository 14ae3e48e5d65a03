// Derives the parameters of an rdma_cm event from a message of the connection manager
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "emulator/abi/ucma.h"

namespace rocemu::engine::cm {

/// Copies private data into an event. As in Linux, the event always contains the whole field of the
/// message.
template <class Parameters>
void put_data(std::span<const uint8_t> data, Parameters& out) {
  std::copy(data.begin(), data.end(), out.private_data);
  out.private_data_len = static_cast<uint8_t>(data.size());
}

/// Returns the event's parameters for a REQ or REP. rdma_get_cm_event(3): the responder resources
/// of an event are "requested of the recipient". They are thus the initiator depth of the sender,
/// and vice versa.
template <class Message>
abi::ucma::ConnParam connection_parameters(const Message& message) {
  abi::ucma::ConnParam param{};
  param.responder_resources = message.initiator_depth;
  param.initiator_depth = message.responder_resources;
  param.flow_control = message.end_to_end_flow_control ? 1 : 0;
  param.rnr_retry_count = message.rnr_retry_count;
  param.srq = message.srq ? 1 : 0;
  param.qp_num = message.local_qpn;
  return param;
}

}  // namespace rocemu::engine::cm
