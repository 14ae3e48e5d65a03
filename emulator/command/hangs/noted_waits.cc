#include "emulator/command/hangs/noted_waits.h"

#include <sys/uio.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <map>
#include <sstream>
#include <string>

#include "emulator/abi/wait_notes.h"
#include "emulator/os/proc.h"

namespace rocemu::command {
namespace {

using Notes = std::map<pid_t, std::string>;  // by thread

/// Returns the notes of a process. They are untrusted input, and are only used as text in a report.
Notes notes_of(pid_t process) {
  Notes found;
  std::istringstream lines(proc::contents_of(proc::directory_of(process) + "/maps"));
  for (std::string line; std::getline(lines, line);) {
    uint64_t address = 0;
    if (line.find(std::string("/memfd:") + abi::kWaitNotesName) == std::string::npos ||
        std::sscanf(line.c_str(), "%" SCNx64, &address) != 1)
      continue;
    struct Copy {
      int32_t thread;
      char text[sizeof(abi::WaitNotes::Note::text)];
    } notes[abi::WaitNotes::kNotes];
    static_assert(sizeof notes == sizeof(abi::WaitNotes));
    const iovec local{notes, sizeof notes};
    const iovec remote{reinterpret_cast<void*>(address), sizeof notes};
    if (process_vm_readv(process, &local, 1, &remote, 1, 0) != ssize_t{sizeof notes}) continue;
    for (const Copy& note : notes) {
      if (note.thread <= 0) continue;
      std::string text(note.text, strnlen(note.text, sizeof note.text));
      std::ranges::replace_if(
          text, [](unsigned char c) { return c < ' ' || c > '~'; }, '?');
      found[note.thread] = std::move(text);
    }
  }
  return found;
}

}  // namespace

void describe_by_notes(std::vector<BlockedThread>& threads) {
  std::map<pid_t, Notes> known;
  for (BlockedThread& thread : threads) {
    if (!thread.what.starts_with("waits for a lock, a condition or a thread")) continue;
    auto [notes, is_new] = known.try_emplace(thread.process);
    if (is_new) notes->second = notes_of(thread.process);
    if (const auto note = notes->second.find(thread.thread); note != notes->second.end())
      thread.what = "waits in " + note->second;
  }
}

}  // namespace rocemu::command
