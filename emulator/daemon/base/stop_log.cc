#include "emulator/daemon/base/stop_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "emulator/os/proc.h"

namespace rocemu::daemon {
namespace {

/// Returns the name of a call that a program wrote into its slot, with '?' for unprintable
/// characters; "-" if there is none.
std::string call_name(const char (&name)[abi::ThreadSlot::kCallName]) {
  std::string text(name, strnlen(name, sizeof name));
  for (char& c : text)
    if (c < '!' || c > '~') c = '?';
  return text.empty() ? "-" : text;
}

std::string program_of(pid_t pid) {
  std::string name = proc::name_of(pid);
  std::ranges::replace(name, ' ', '_');
  return name;
}

}  // namespace

StopLog::StopLog(const std::string& directory, mode_t mask)
    : path_(directory + "/" + kFile), mask_(mask) {}

StopLog::~StopLog() {
  for (const auto& [serial, one] : stopped_) write_line(one.pid, serial, one.call, one.before, "-");
  if (file_ >= 0) close(file_);
}

size_t StopLog::number_of(pid_t pid, uint64_t serial) {
  Process& process = processes_[pid];
  std::vector<uint64_t>& serials = process.serials;
  const auto found = std::ranges::lower_bound(serials, serial);
  if (found != serials.end() && *found == serial)
    return static_cast<size_t>(found - serials.begin()) + 1;
  process.program = program_of(pid);
  return static_cast<size_t>(serials.insert(found, serial) - serials.begin()) + 1;
}

void StopLog::write(const abi::ThreadSlot& slot, uint64_t call, const CallName& before) {
  write_line(slot.pid.load(), slot.serial.load(), call, call_name(before),
             call_name(slot.call_after));
}

void StopLog::turn_ended(const abi::ThreadSlot& slot, uint32_t calls, bool is_preempted) {
  const uint64_t serial = slot.serial.load();
  stopped_.erase(serial);
  const uint64_t call = calls_[serial] += calls;
  if (is_preempted) stopped_[serial] = {slot.pid.load(), call, call_name(slot.call_before)};
}

void StopLog::write_line(pid_t pid, uint64_t serial, uint64_t call, const std::string& before,
                         const std::string& after) {
  if (lines_ == kMost) return;
  if (file_ < 0) {
    file_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file_ < 0) {
      lines_ = kMost;
      return;
    }
    fchmod(file_, 0666 & ~mask_);
  }
  ++lines_;
  const size_t number = number_of(pid, serial);
  const std::string line = fmt::format("{}/{} {} {} {} {}\n", serial, call, processes_[pid].program,
                                       number, before, after);
  [[maybe_unused]] const ssize_t size = ::write(file_, line.data(), line.size());
}

}  // namespace rocemu::daemon
