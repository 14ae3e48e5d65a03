// The QPs of a context by number: what a completion is matched with.
//
// Looking up takes no lock: poll_cq of several CQs runs at once. A QP is entered before it can have
// completions and removed under the locks of its CQs, so whoever polls one of them finds a QP that
// stays for as long as the CQ's lock is held.
#pragma once

#include <atomic>
#include <cstdint>

#include "verbs_provider/lock.h"

namespace rocemu::provider {

struct Qp;

class QpTable {
 public:
  QpTable() = default;
  ~QpTable();
  QpTable(const QpTable&) = delete;
  QpTable& operator=(const QpTable&) = delete;

  /// False if there is no memory, or the number is not one of 24 bits.
  bool insert(uint32_t number, Qp* qp);
  /// Unless another QP has taken over the number.
  void remove(uint32_t number, Qp* qp);
  Qp* find(uint32_t number) const;

 private:
  static constexpr uint32_t kBits = 12;
  static constexpr uint32_t kSize = 1u << kBits;
  struct Leaf {
    std::atomic<Qp*> qps[kSize];
  };

  std::atomic<Qp*>* slot(uint32_t number) const;

  std::atomic<Leaf*> leaves_[kSize] = {};
  Mutex growing_;
};

}  // namespace rocemu::provider
