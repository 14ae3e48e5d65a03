#include "verbs_provider/qp_table.h"

#include <cstdlib>
#include <new>

namespace rocemu::provider {

QpTable::~QpTable() {
  for (std::atomic<Leaf*>& leaf : leaves_) free(leaf.load(std::memory_order_relaxed));
}

std::atomic<Qp*>* QpTable::slot(uint32_t number) const {
  if (number >> (2 * kBits) != 0) return nullptr;
  Leaf* leaf = leaves_[number >> kBits].load(std::memory_order_acquire);
  return leaf == nullptr ? nullptr : &leaf->qps[number % kSize];
}

bool QpTable::insert(uint32_t number, Qp* qp) {
  if (number >> (2 * kBits) != 0) return false;
  {
    const Guard guard(growing_);
    std::atomic<Leaf*>& leaf = leaves_[number >> kBits];
    if (leaf.load(std::memory_order_relaxed) == nullptr) {
      void* memory = calloc(1, sizeof(Leaf));
      if (memory == nullptr) return false;
      leaf.store(new (memory) Leaf{}, std::memory_order_release);
    }
  }
  slot(number)->store(qp, std::memory_order_release);
  return true;
}

void QpTable::remove(uint32_t number, Qp* qp) {
  slot(number)->compare_exchange_strong(qp, nullptr, std::memory_order_acq_rel);
}

Qp* QpTable::find(uint32_t number) const {
  const std::atomic<Qp*>* entry = slot(number);
  return entry == nullptr ? nullptr : entry->load(std::memory_order_acquire);
}

}  // namespace rocemu::provider
