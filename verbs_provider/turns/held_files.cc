#include "verbs_provider/turns/held_files.h"

#include <atomic>
#include <cerrno>
#include <cstdint>

#include <fcntl.h>
#include <sys/syscall.h>

#include "verbs_provider/shim/interpose.h"
#include "verbs_provider/system/kernel.h"
#include "verbs_provider/turns/daemon_link.h"
#include "verbs_provider/turns/turn.h"

namespace rocemu::turns {
namespace {

/// The file for which a thread waits. `held` has an entry for each slot of the table of all
/// threads. No lock is needed, since only one thread has the turn.
struct Held {
  int number;  // of the descriptor that the thread waits for, plus 1; 0: none
  int own;     // of its own copy, plus 1
};
Held held[abi::TurnTable::kSlots];
std::atomic<uint32_t> end_of_held;  // after the last used entry

Held* own_entry() {
  if (own_slot() == nullptr) return nullptr;
  const auto index = static_cast<uint32_t>(own_slot() - table()->slots);
  if (index >= end_of_held.load(std::memory_order_relaxed)) end_of_held.store(index + 1);
  return &held[index];
}

}  // namespace

void hold_file(int fd) {
  release_file();
  if (Held* const entry = own_entry()) entry->number = fd + 1;
}

int held_file(int fd) {
  const Held* const entry = own_entry();
  return entry != nullptr && entry->own != 0 ? entry->own - 1 : fd;
}

void release_file() {
  Held* const entry = own_entry();
  if (entry == nullptr) return;
  const int own = entry->own;
  *entry = {};
  if (own != 0) kernel(SYS_close, own - 1);
}

void before_close(int fd) {
  if (fd < 0) return;
  for (uint32_t i = 0; i < end_of_held.load(std::memory_order_relaxed); ++i) {
    if (held[i].number != fd + 1 || held[i].own != 0) continue;
    // The lowest number of a copy, far above the numbers that the program expects for its next
    // files.
    constexpr long kLeast = 512;
    long own = kernel(SYS_fcntl, fd, F_DUPFD_CLOEXEC, kLeast);
    if (own < 0) own = kernel(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 0L);
    if (own >= 0) held[i].own = static_cast<int>(own) + 1;
  }
}

void forget_held_files() {
  for (uint32_t i = 0; i < end_of_held.load(std::memory_order_relaxed); ++i) {
    // The child has inherited the copies of descriptors with which the parent's threads wait.
    if (held[i].own != 0) kernel(SYS_close, held[i].own - 1);
    held[i] = {};
  }
}

}  // namespace rocemu::turns

using namespace rocemu::turns;

namespace {
rocemu::shim::Next<int(int, int)> next_dup2("dup2");
rocemu::shim::Next<int(int, int, int)> next_dup3("dup3");
}  // namespace

ROCEMU_REPLACE(int, dup2, (int from, int to)) {
  if (from != to) before_close(to);
  return next_dup2(from, to);
}
ROCEMU_REPLACE(int, dup3, (int from, int to, int flags)) {
  if (from != to) before_close(to);
  return next_dup3(from, to, flags);
}
