// The differences between the versions of libibverbs in the structs that it shares with its
// providers (docs/reference/libibverbs-layouts.md), and the detection of the libibverbs that loaded
// this provider.
#pragma once

#include <cstddef>
#include <cstdint>

#include "verbs_provider/base/private_abi.h"

namespace rocemu::provider {

/// The layout of the structs of one version of libibverbs.
struct Layout {
  int newest_public = 0;    // N of IBVERBS_1.N: determines the ContextOps
  size_t context_head = 0;  // bytes of its verbs_context before the ibv_context at its end
  size_t qp_mask_at = 0;    // offset of comp_mask in its verbs_qp

  /// Returns whether ibv_qp_ex has wr_atomic_write: in older versions it ends before that member.
  bool has_atomic_write() const { return qp_mask_at > offsetof(QpEx, wr_atomic_write); }
  bool has_flush() const { return qp_mask_at > offsetof(QpEx, wr_flush); }
};

/// The largest `context_head`.
inline constexpr size_t kLargestContextHead = 368;

/// The layout of the libibverbs in this process, once recognize_libibverbs() has been called.
extern Layout layout;

/// Detects `layout`. `function` is any function of libibverbs. Returns false, with a line on
/// standard error, if this version of rocemu does not support the libibverbs.
bool recognize_libibverbs(const void* function);

/// Returns the operations of `all` in the layout that this libibverbs expects: without the
/// operations that are newer than it, and without gaps in their places.
ContextOps arranged(const ContextOps& all);

/// Makes ibv_qp_to_qp_ex() succeed for the QP.
void mark_as_extended(VerbsQp* qp);

}  // namespace rocemu::provider
