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

/// Returns nothing if the QP type has no such transition. kAttrState is always allowed and in
/// neither mask.
std::optional<AttributeRule> transition_rule(abi::QpType type, abi::QpState from, abi::QpState to);

/// Returns the attributes that have a meaning for the type. Attributes of the half that an XRC QP
/// does not have are ignored, as in Linux (core/uverbs_cmd.c, modify_qp_mask), since programs set
/// both halves alike.
uint32_t relevant_attributes(abi::QpType type, uint32_t mask);

/// Returns 0 or EINVAL. Checks that all required attributes are set, and none that is not allowed,
/// and that the values that concern no other object (port, P_Key index, MTU, PSNs, timers, counts)
/// are in range.
int check_attributes(abi::QpType type, abi::QpState from, const abi::QpAttr& attr, uint32_t mask,
                     abi::Mtu active_mtu);

/// Copies the attributes that the mask names.
void apply_attributes(const abi::QpAttr& from, uint32_t mask, abi::QpAttr& to);

}  // namespace rocemu::engine
