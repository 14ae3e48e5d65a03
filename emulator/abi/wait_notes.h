// Notes of a program on what its threads wait for, where a system call does not say it: in memory
// of the program, a mapping of a memory file whose name makes it known in /proc/PID/maps.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace rocemu::abi {

inline constexpr char kWaitNotesName[] = "rocemu-waits";

struct WaitNotes {
  static constexpr size_t kNotes = 16;
  struct Note {
    std::atomic<int32_t> thread;  // gettid(2) of the thread that waits; 0: none
    char text[252];               // ends with a null character
  };
  Note notes[kNotes];
};
static_assert(sizeof(WaitNotes) == 4096);

}  // namespace rocemu::abi
