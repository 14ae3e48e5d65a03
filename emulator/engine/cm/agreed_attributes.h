// From what REQ and REP agreed on to the attributes of a QP (IBTA vol 1, 12.9: "the QP is
// transitioned to ...").
#pragma once

#include <cstdint>

#include "emulator/abi/control.h"
#include "emulator/engine/cm/connection.h"
#include "wire/result.h"

namespace rocemu::engine::cm {

/// Attributes for ibv_modify_qp(3) and which of them are given.
struct QpAttributes {
  abi::QpAttr attr{};
  uint32_t mask = 0;  // QpAttrMask
};

/// Returns what the QP of the connection needs to go to `to`. EINVAL: the messages that say it have
/// not come yet, or the connection is over.
wire::Result<QpAttributes, int> agreed_attributes(const Connection& connection, abi::QpState to);

}  // namespace rocemu::engine::cm
