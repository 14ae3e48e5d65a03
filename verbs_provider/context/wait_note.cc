#include "verbs_provider/context/wait_note.h"

#include <atomic>
#include <cstdint>
#include <cstring>

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "emulator/abi/wait_notes.h"
#include "verbs_provider/system/system_call.h"

namespace rocemu::provider {
namespace {

/// Returns the notes of this process, which are created for the first note; a child of fork() has a
/// copy. Returns null if memory is exhausted.
abi::WaitNotes* notes() {
  static std::atomic<abi::WaitNotes*> made{nullptr};
  if (abi::WaitNotes* known = made.load(); known != nullptr) return known;
  const auto fd = static_cast<int>(system_call(SYS_memfd_create, abi::kWaitNotesName, MFD_CLOEXEC));
  if (fd < 0) return nullptr;
  void* memory = MAP_FAILED;
  if (system_call(SYS_ftruncate, fd, sizeof(abi::WaitNotes)) == 0)
    memory = mmap(nullptr, sizeof(abi::WaitNotes), PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
  system_call(SYS_close, fd);
  if (memory == MAP_FAILED) return nullptr;
  abi::WaitNotes* before = nullptr;
  if (made.compare_exchange_strong(before, static_cast<abi::WaitNotes*>(memory)))
    return static_cast<abi::WaitNotes*>(memory);
  munmap(memory, sizeof(abi::WaitNotes));
  return before;
}

}  // namespace

WaitNote::WaitNote(const char* text) : index_(abi::WaitNotes::kNotes) {
  abi::WaitNotes* const all = notes();
  if (all == nullptr) return;
  const auto thread = static_cast<int32_t>(system_call(SYS_gettid));
  for (index_ = 0; index_ < abi::WaitNotes::kNotes; ++index_) {
    abi::WaitNotes::Note& note = all->notes[index_];
    int32_t free = 0;
    // While the text is written, the note belongs to no thread (-1), so that no reader shows it.
    if (!note.thread.compare_exchange_strong(free, -1)) continue;
    strncpy(note.text, text, sizeof note.text - 1);
    note.text[sizeof note.text - 1] = '\0';
    note.thread.store(thread);
    return;
  }
}

WaitNote::~WaitNote() {
  if (index_ < abi::WaitNotes::kNotes) notes()->notes[index_].thread.store(0);
}

}  // namespace rocemu::provider
