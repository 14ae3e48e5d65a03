// A note that says what this thread waits for, which a hang report shows (abi/wait_notes.h)
#pragma once

#include <cstddef>

namespace rocemu::provider {

class WaitNote {
 public:
  /// Publishes the note, unless memory is exhausted or all notes of the process are in use.
  explicit WaitNote(const char* text);
  ~WaitNote();
  WaitNote(const WaitNote&) = delete;
  WaitNote& operator=(const WaitNote&) = delete;

 private:
  size_t index_;
};

}  // namespace rocemu::provider
