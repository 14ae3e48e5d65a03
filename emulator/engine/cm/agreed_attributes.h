// Converts the values that REQ and REP agreed on to attributes of a QP (IBTA vol 1, 12.9: "the QP
// is transitioned to ...").
#pragma once

#include <cstdint>

#include "emulator/abi/control.h"
#include "emulator/engine/cm/connection.h"
#include "wire/result.h"

namespace rocemu::engine::cm {

/// The attributes for ibv_modify_qp(3), and the mask of those that are set
struct QpAttributes {
  abi::QpAttr attr{};
  uint32_t mask = 0;  // QpAttrMask
};

/// Returns the attributes that the QP of the connection needs to enter the state `to`. Returns
/// EINVAL if the messages that contain these attributes have not arrived yet, or the connection has
/// ended.
wire::Result<QpAttributes, int> agreed_attributes(const Connection& connection, abi::QpState to);

}  // namespace rocemu::engine::cm
