// Which attributes a QP needs, may have and must not have at each state change, and which values
// they can take (IBTA vol 1, 10.3.1 and tables "QP State Transition Properties"; ibv_modify_qp(3)).
#pragma once

#include <cstdint>
#include <optional>

#include "emulator/abi/control.h"

namespace rocemu::engine {

struct AttributeRule {
  uint32_t required;
  uint32_t optional;
};

/// Nothing if the QP type has no such transition. kAttrState is always allowed and in neither mask.
std::optional<AttributeRule> transition_rule(abi::QpType type, abi::QpState from, abi::QpState to);

/// The attributes that mean something to the type. What concerns the half that an XRC QP does not
/// have is ignored, as Linux does (core/uverbs_cmd.c, modify_qp_mask): programs set both halves
/// alike.
uint32_t relevant_attributes(abi::QpType type, uint32_t mask);

/// 0 or EINVAL: are all required attributes there, none that is not allowed, and are the values
/// that concern no other object (port, P_Key index, MTU, PSNs, timers, counts) in range?
int check_attributes(abi::QpType type, abi::QpState from, const abi::QpAttr& attr, uint32_t mask,
                     abi::Mtu active_mtu);

/// Copies the attributes that the mask names.
void apply_attributes(const abi::QpAttr& from, uint32_t mask, abi::QpAttr& to);

}  // namespace rocemu::engine
