#include "emulator/daemon/run/participants.h"

#include <fmt/format.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>

#include "emulator/abi/linux_names.h"
#include "emulator/abi/turn_handshake.h"
#include "emulator/daemon/base/descriptors.h"
#include "emulator/daemon/base/start_error.h"
#include "emulator/daemon/base/unix_socket.h"
#include "emulator/os/proc.h"

namespace rocemu::daemon {
namespace {

using abi::ThreadSlot;
using abi::TurnTable;

bool has_ended(int pidfd) {
  pollfd entry{pidfd, POLLIN, 0};
  return poll(&entry, 1, 0) > 0;
}

/// Logs how a process ended, which its parent, such as a shell, may not show. The process is still
/// a zombie, because its parent waits for a turn.
void tell_of_end(pid_t pid, bool tells_exits) {
  const std::string stat = proc::contents_of(proc::directory_of(pid) + "/stat");
  const size_t begin = stat.find('('), end = stat.rfind(')');
  if (begin == std::string::npos || end == std::string::npos) return;
  const size_t last = stat.rfind(' ');  // proc(5): exit_code is the last field
  const int status = std::atoi(stat.c_str() + last + 1);
  const std::string name = stat.substr(begin + 1, end - begin - 1);
  if (WIFSIGNALED(status)) {
    const char* const signal = abi::signal_name(WTERMSIG(status));  // null for real-time signals
    if (tells_exits || proc::is_crash(WTERMSIG(status)))
      spdlog::warn("{} (pid {}) received {}", name, pid,
                   signal != nullptr ? fmt::format("SIG{}", signal)
                                     : fmt::format("signal {}", WTERMSIG(status)));
  } else if (tells_exits && status != 0) {
    spdlog::warn("{} (pid {}) ended with status {}", name, pid, WEXITSTATUS(status));
  }
}

}  // namespace

std::span<ThreadSlot> used_slots(TurnTable& table) {
  return std::span(table.slots).first(std::min(table.high_water.load(), TurnTable::kSlots));
}

std::string task_file(const ThreadSlot& slot, const char* name) {
  return fmt::format("/proc/{}/task/{}/{}", slot.pid.load(), slot.tid.load(), name);
}

Participants::Participants(TurnTable& table, Files files, EventLoop& loop, ProgramTimers& timers,
                           std::optional<pid_t> ancestor, bool tells_exits,
                           std::function<void()> on_end)
    : table_(table),
      files_(std::move(files)),
      loop_(loop),
      timers_(timers),
      ancestor_(ancestor),
      tells_exits_(tells_exits),
      on_end_(std::move(on_end)) {
  listener_watch_ = loop_.watch(files_.listener.get(), EPOLLIN, [this](uint32_t) { on_connect(); });
  if (!listener_watch_)
    fail_start("cannot watch the socket at which programs announce themselves", errno);
}

Participants::~Participants() {
  processes_.clear();
  for (ThreadSlot& slot : used_slots(table_))
    for (auto* const word : {&slot.turn, &slot.asks})
      syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

bool Participants::has_joined(pid_t pid) const {
  return std::ranges::any_of(processes_, [pid](const auto& one) { return one->pid == pid; });
}

bool Participants::takes_turns(pid_t pid) const {
  return std::ranges::any_of(
      processes_, [pid](const auto& one) { return one->pid == pid && !one->is_leaving; });
}

bool Participants::says_hello(pid_t pid) const {
  return std::ranges::any_of(
      processes_, [pid](const auto& one) { return one->pid == pid && one->hello.has_value(); });
}

std::set<pid_t> Participants::joined() const {
  std::set<pid_t> pids;
  for (const auto& process : processes_) pids.insert(process->pid);
  return pids;
}

bool Participants::are_changing() const {
  return std::ranges::any_of(processes_,
                             [](const auto& one) { return one->is_leaving || one->hello; });
}

bool Participants::is_one_leaving() const {
  return std::ranges::any_of(processes_, [](const auto& one) { return one->is_leaving; });
}

void Participants::drop_leaving() {
  std::erase_if(processes_, [](const auto& one) { return one->is_leaving; });
}

void Participants::on_connect() {
  UniqueFd socket(accept4(files_.listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!socket) return;
  const std::optional<PeerCredentials> peer = peer_credentials(socket.get());
  if (!peer || peer->uid != geteuid()) return;
  if (is_reserved(socket.get())) return tell_of_shortage();
  auto process = std::make_unique<Process>();
  process->pid = peer->pid;
  process->pidfd = UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, peer->pid, 0)));
  process->socket = std::move(socket);
  Process& there = *process;
  there.socket_watch =
      loop_.watch(there.socket.get(), EPOLLIN, [this, &there](uint32_t) { on_message(there); });
  if (there.pidfd) {
    const pid_t pid = there.pid;
    there.pidfd_watch =
        loop_.watch(there.pidfd.get(), EPOLLIN, [this, pid](uint32_t) { on_death(pid); });
  }
  processes_.push_back(std::move(process));
}

void Participants::on_message(Process& process) {
  alignas(8) std::byte buffer[64];
  Message message = receive_message(process.socket.get(), buffer);
  if (message.status == Message::Status::kNothing) return;
  if (message.status == Message::Status::kOk) {
    if (message.size == sizeof(abi::TurnsHello)) {
      abi::TurnsHello hello;
      std::memcpy(&hello, buffer, sizeof hello);
      if (hello.magic == abi::kTurnsMagic && hello.version == abi::kTurnsVersion) {
        return on_hello(process, hello);
      }
    } else if (message.size == sizeof(abi::TurnsRequest) && !process.hello) {
      abi::TurnsRequest request;
      std::memcpy(&request, buffer, sizeof request);
      if (request.magic == abi::kTurnsMagic) {
        return on_request(process, request,
                          message.fds.empty() ? UniqueFd() : std::move(message.fds[0]));
      }
    }
  }
  on_hang_up(process);
}

void Participants::on_hello(Process& process, const abi::TurnsHello& hello) {
  process.hello = hello;
  // A process that no thread has announced joins at the end of the current turn. Until then, the
  // thread that started the process may still announce it.
  if (holder_ == nullptr || hello.slot != abi::TurnsHello::kNoSlot) answer(process);
}

/// Refuses a process that is in another PID namespace. Its threads have other numbers there than
/// here, so they cannot be found.
void Participants::refuse(const Process& process) {
  spdlog::warn(
      "pid {} is in a separate PID namespace: rocemu cannot schedule this process, "
      "which sees real time, so its behavior is not deterministic; start rocemu "
      "inside the namespace",
      process.pid);
  for (ThreadSlot& slot : used_slots(table_))
    if (slot.pid.load() == process.pid) slot.state.store(ThreadSlot::kFree);
  changed_ = true;
  forget(process);
}

/// Returns whether the slot still belongs to the thread that names it. A slot is freed if its
/// process does not join in time.
bool Participants::is_valid(const abi::TurnsHello& hello) const {
  const ThreadSlot& slot = table_.slots[hello.slot];
  return slot.serial.load() == hello.serial && slot.state.load() != ThreadSlot::kFree;
}

void Participants::answer(Process& process) {
  const abi::TurnsHello hello = *std::exchange(process.hello, std::nullopt);
  uint32_t number = hello.slot;
  if (number < TurnTable::kSlots && !is_valid(hello)) number = abi::TurnsHello::kNoSlot;
  if (number == abi::TurnsHello::kNoSlot &&
      access(fmt::format("/proc/{}/task/{}", process.pid, hello.tid).c_str(), F_OK) != 0)
    return refuse(process);
  if (number == abi::TurnsHello::kNoSlot) {
    // The parent of the process has announced it and taken a slot, or the process has executed
    // another program and has slots of the previous one.
    const auto count = static_cast<uint32_t>(used_slots(table_).size());
    for (uint32_t i = 0; i < count && number == abi::TurnsHello::kNoSlot; ++i) {
      const ThreadSlot& slot = table_.slots[i];
      if (slot.state.load() == ThreadSlot::kStarting && slot.pid.load() == process.pid) number = i;
    }
    for (uint32_t i = 0; i < TurnTable::kSlots && number == abi::TurnsHello::kNoSlot; ++i) {
      ThreadSlot& slot = table_.slots[i];
      if (!abi::take_slot(slot)) continue;
      abi::clear_slot(slot);
      slot.serial.store(table_.next_serial.fetch_add(1));
      uint32_t high = table_.high_water.load();
      while (high < i + 1 && !table_.high_water.compare_exchange_weak(high, i + 1)) {
      }
      number = i;
    }
    for (uint32_t i = 0; i < count; ++i) {  // threads of the previous program
      ThreadSlot& slot = table_.slots[i];
      if (i != number && slot.state.load() == ThreadSlot::kStarting &&
          slot.pid.load() == process.pid)
        slot.state.store(ThreadSlot::kFree);
    }
    if (number != abi::TurnsHello::kNoSlot) {
      ThreadSlot& slot = table_.slots[number];
      slot.turn.store(0);
      slot.pid.store(process.pid);
      slot.tid.store(hello.tid);
      slot.flags.store(ThreadSlot::kProgressed);
      slot.deadline_ns.store(abi::kNever);
      slot.ready_ns.store(0);
      slot.call.store(-1);
      slot.key.store(0);
    }
    changed_ = true;
    if (!command_ && ancestor_ && proc::parent_of(process.pid) == *ancestor_) {
      command_ = process.pid;
    }
  }
  // The process may have joined before: it has executed another program, or closed its descriptors.
  const auto earlier = std::ranges::find_if(processes_, [&](const auto& one) {
    return one.get() != &process && one->pid == process.pid;
  });
  if (earlier != processes_.end()) {
    processes_.erase(earlier);
    if (hello.slot < TurnTable::kSlots) go_on_as_before(process.pid);
  }
  const abi::TurnsReply reply{abi::kTurnsMagic, abi::kTurnsVersion,
                              number < TurnTable::kSlots ? number : 0};
  const int fds[] = {files_.table, files_.handback};
  if (number == abi::TurnsHello::kNoSlot) return on_hang_up(process);
  send_message(process.socket.get(), std::as_bytes(std::span(&reply, 1)), fds);
  if (hello.slot == abi::TurnsHello::kObserver) forget(process);
}

/// Makes the threads of a process continue where they were, because it has not executed another
/// program.
void Participants::go_on_as_before(pid_t pid) {
  for (ThreadSlot& slot : used_slots(table_)) {
    if (slot.state.load() != ThreadSlot::kStarting || slot.pid.load() != pid) continue;
    slot.state.store(slot.turn.load() == ThreadSlot::kNone ? ThreadSlot::kWaits
                                                           : ThreadSlot::kRuns);
  }
}

void Participants::answer_waiting() {
  // Processes join in the order of their pids, because that does not depend on a race. After the
  // largest pid, the kernel continues with small ones.
  std::vector<Process*> waiting;
  for (const auto& process : processes_) {
    if (process->hello) waiting.push_back(process.get());
  }
  const auto first = static_cast<uint32_t>(ancestor_.value_or(0));
  std::ranges::sort(
      waiting, {}, [first](const Process* one) { return static_cast<uint32_t>(one->pid) - first; });
  for (Process* process : waiting) answer(*process);
}

void Participants::on_request(Process& process, const abi::TurnsRequest& request, UniqueFd fd) {
  abi::TurnsReply reply{abi::kTurnsMagic, abi::kTurnsVersion, 0};
  switch (request.kind) {
    case abi::TurnsRequest::kMakeTimer:
      reply.slot = timers_.make(process.pid, {.fd = std::move(fd),
                                              .signal = request.signal,
                                              .tid = request.tid,
                                              .value = request.value});
      break;
    case abi::TurnsRequest::kSetTimer:
      timers_.set(process.pid, request.timer, request.deadline_ns, request.interval_ns);
      break;
    case abi::TurnsRequest::kDeleteTimer:
      timers_.remove(process.pid, request.timer);
      break;
  }
  send_message(process.socket.get(), std::as_bytes(std::span(&reply, 1)), {});
}

void Participants::forget(const Process& process) {
  std::erase_if(processes_, [&](const auto& one) { return one.get() == &process; });
}

void Participants::on_death(pid_t pid) {
  tell_of_end(pid, tells_exits_);
  on_end_();
  for (ThreadSlot& slot : used_slots(table_)) {
    if (slot.pid.load() == pid) slot.state.store(ThreadSlot::kFree);
  }
  timers_.remove_all(pid);
  std::erase_if(processes_, [&](const auto& one) { return one->pid == pid; });
  if (command_ == pid) command_ended_ = true;
  changed_ = true;
  needs_quiescence_ = true;  // its parent gets a signal
}

/// Handles the end of a connection. The process has ended, or executes another program, which may
/// take turns again, or has closed all descriptors that it did not open itself.
void Participants::on_hang_up(Process& process) {
  process.socket_watch.reset();
  process.is_leaving = true;
  needs_quiescence_ = true;
  if (process.pidfd && has_ended(process.pidfd.get())) return on_death(process.pid);
  // If this process has the turn, no other thread continues until the process has ended completely
  // or has joined again: so far, it may have closed only some of its descriptors. When a process
  // executes a program, only the thread that called execve(2) is left, and it gets the thread id of
  // the first thread.
  const bool executes = holder_ != nullptr && holder_->pid.load() == process.pid;
  for (ThreadSlot& slot : used_slots(table_)) {
    const uint32_t state = slot.state.load();
    if (state == ThreadSlot::kFree || slot.pid.load() != process.pid) continue;
    if (proc::contents_of(task_file(slot, "status")).empty()) {
      if (&slot == holder_) {
        slot.tid.store(process.pid);
        slot.state.store(ThreadSlot::kStarting);
      } else {
        slot.state.store(ThreadSlot::kFree);
      }
    } else if (slot.tid.load() == process.pid && (executes || state == ThreadSlot::kRuns)) {
      slot.state.store(ThreadSlot::kStarting);
    }
  }
}

}  // namespace rocemu::daemon
