// What differs between the versions of libibverbs in the structs that it shares with its providers
// (docs/reference/libibverbs-layouts.md), and which of them has loaded us.
#pragma once

#include <cstddef>
#include <cstdint>

#include "verbs_provider/base/private_abi.h"

namespace rocemu::provider {

/// The layout of one libibverbs.
struct Layout {
  int newest_public = 0;    // N of IBVERBS_1.N: which of ContextOps there are
  size_t context_head = 0;  // bytes of its verbs_context before the ibv_context, with which it ends
  size_t qp_mask_at = 0;    // where its verbs_qp has comp_mask

  /// Its ibv_qp_ex ends with what comes before the mask.
  bool has_atomic_write() const { return qp_mask_at > offsetof(QpEx, wr_atomic_write); }
  bool has_flush() const { return qp_mask_at > offsetof(QpEx, wr_flush); }
};

/// The largest `context_head`.
inline constexpr size_t kLargestContextHead = 368;

/// That of the libibverbs in this process, once recognize_libibverbs() has been called.
extern Layout layout;

/// Finds out `layout`. `function` is one of libibverbs' functions. False, with a line on standard
/// error, if it is a libibverbs that this version does not know.
bool recognize_libibverbs(const void* function);

/// `all` as this libibverbs has its operations: one after the other, without those that came later.
ContextOps arranged(const ContextOps& all);

/// ibv_qp_to_qp_ex() succeeds from now on.
void mark_as_extended(VerbsQp* qp);

}  // namespace rocemu::provider
