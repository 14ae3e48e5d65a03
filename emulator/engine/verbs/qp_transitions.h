// The attributes that a QP needs, may have and must not have at each state change, and their valid
// values (IBTA vol 1, 10.3.1 and tables "QP State Transition Properties"; ibv_modify_qp(3))
#pragma once

#include <cstdint>
#include <optional>

#include "emulator/abi/control.h"

namespace rocemu::engine {

struct AttributeRule {
  uint32_t required;
  uint32_t optional;
};

/// Returns the required and the optional attributes of the transition; nothing if the QP type has
/// no such transition. kAttrState is always allowed, and is in neither mask.
std::optional<AttributeRule> transition_rule(abi::QpType type, abi::QpState from, abi::QpState to);

/// Returns the attributes in the mask that have a meaning for the type. Attributes of the half that
/// an XRC QP does not have are ignored, as in Linux (core/uverbs_cmd.c, modify_qp_mask), since
/// programs set the same attributes for both halves.
uint32_t relevant_attributes(abi::QpType type, uint32_t mask);

/// Returns 0 if all required attributes are set, no attribute is set that is not allowed, and the
/// values are in range; otherwise EINVAL. Checks only values that concern no other object (port,
/// P_Key index, MTU, PSNs, timers, counts).
int check_attributes(abi::QpType type, abi::QpState from, const abi::QpAttr& attr, uint32_t mask,
                     abi::Mtu active_mtu);

/// Copies the attributes that the mask names.
void apply_attributes(const abi::QpAttr& from, uint32_t mask, abi::QpAttr& to);

}  // namespace rocemu::engine
