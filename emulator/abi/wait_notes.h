// Notes by which a program says what its threads wait for, where the system call alone does not
// show it. The notes are in a memory file that the program maps. Observers find the file by its
// name in /proc/PID/maps.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace rocemu::abi {

inline constexpr char kWaitNotesName[] = "rocemu-waits";

struct WaitNotes {
  static constexpr size_t kNotes = 16;
  struct Note {
    std::atomic<int32_t> thread;  // gettid(2) of the waiting thread; 0: none
    char text[252];               // ends with a null character
  };
  Note notes[kNotes];
};
static_assert(sizeof(WaitNotes) == 4096);

}  // namespace rocemu::abi
