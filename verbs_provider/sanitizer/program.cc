#include "verbs_provider/sanitizer/program.h"

#include <algorithm>
#include <cstdlib>
#include <new>
#include <utility>

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>

#include "emulator/abi/sanitizer_log.h"
#include "verbs_provider/sanitizer/checksum.h"
#include "verbs_provider/sanitizer/library_calls.h"
#include "verbs_provider/sanitizer/memory/fork_memory.h"
#include "verbs_provider/system/kernel.h"

namespace rocemu::sanitizer {
namespace {

using turns::kernel;

/// Returns the file's text, which is empty if there is no file.
std::string contents_of(const std::string& path) {
  const long fd = kernel(SYS_openat, AT_FDCWD, path.c_str(), O_RDONLY | O_CLOEXEC, 0);
  if (fd < 0) return "";
  std::string text;
  char piece[4096];
  for (long size; (size = kernel(SYS_read, fd, piece, sizeof piece)) > 0;)
    text.append(piece, static_cast<size_t>(size));
  kernel(SYS_close, fd);
  return text;
}

Selection read_rules(const std::string& path) {
  Selection selection;
  const std::string text = contents_of(path);
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    if (const Rule* rule = find_rule(text.substr(begin, end - begin))) selection.insert(rule);
    begin = end + 1;
  }
  return selection;
}

Program* program = nullptr;
pthread_once_t once = PTHREAD_ONCE_INIT;

}  // namespace

Program* Program::get() {
  pthread_once(&once, make);
  return program;
}

Program* Program::make_one() {
  const char* const directory = getenv(abi::kSanitizerVariable);
  if (directory == nullptr) return nullptr;
  const Selection selection = read_rules(std::string(directory) + "/" + abi::kSanitizerRules);
  return selection.empty() ? nullptr : new (std::nothrow) Program(directory, selection);
}

/// Discards all objects in a child, which cannot use those of its parent.
void Program::begin_in_child() {
  Program* const parents = program;
  if (parents->marks_ != nullptr) parents->marks_->release_all();
  parents->lock.unlock();
  if (Program* const own = make_one()) program = own;
}

void Program::prepare_fork() {
  program->lock.lock();
  const bool is_protected = is_fork_protected();
  bool has_regions = false;
  program->objects().regions.for_each([&](const Mr&) { has_regions = true; });
  const std::vector<MemoryRange> kept =
      has_regions && !is_protected ? memory_kept_at_fork(contents_of("/proc/thread-self/smaps"))
                                   : std::vector<MemoryRange>();
  program->sanitizer().tell(
      Fork{program->objects(), is_protected, program->here(std::string_view("fork")), kept});
}

void Program::make() {
  program = make_one();
  if (program == nullptr) return;
  pthread_atfork(
      prepare_fork, [] { program->lock.unlock(); }, begin_in_child);
}

Program::Program(const std::string& directory, const Selection& selection)
    : pid_(kernel(SYS_getpid)), log_(directory, stacks_), sanitizer_(selection, *this) {
  if (std::unique_ptr<BufferMarks> marks = BufferMarks::make(stacks_)) {
    marks_ = marks.get();
    sanitizer_.add({std::move(marks), wanted_events<BufferMarks>()});
  }
  std::string trap = contents_of(directory + "/" + abi::kSanitizerTrap);
  while (!trap.empty() && trap.back() == '\n') trap.pop_back();
  trap_ = find_rule(trap);
}

CallSite Program::here(const char* call, ibv_context* context) {
  clock_ = context;
  return {call, stacks_.current(), now_ns != nullptr ? now_ns(context) : 0};
}

CallSite Program::here(std::string_view call) {
  return {call, stacks_.current(), now_ns != nullptr && clock_ != nullptr ? now_ns(clock_) : 0};
}

void Program::forget(ibv_context* context) {
  if (clock_ == context) clock_ = nullptr;
  sanitizer_.tell(ContextEnd{objects(), context});
  objects().forget(context);
}

std::optional<uint64_t> Program::checksum(std::span<const abi::Sge> sges, ReadableBytes& readable) {
  Checksum sum;
  for (const abi::Sge& sge : sges) {
    if (sge.length == 0) continue;
    const uint64_t memory = objects().memory_of(sge);
    if (memory == 0 || !sum.add(memory, sge.length, readable)) return std::nullopt;
  }
  return sum.value();
}

bool Program::is_of_this_process() const {
  return kernel(SYS_getpid) == pid_;
}

void Program::report(const Report& report) {
  log_.write(report);
  if (&report.rule == trap_) raise(SIGTRAP);
}

uint64_t Program::report_unless_withdrawn(const Report& report) {
  const uint64_t number = log_.write_wait(report);
  if (&report.rule == trap_) raise(SIGTRAP);
  return number;
}

void Program::withdraw(uint64_t number) {
  log_.withdraw(number);
}

bool Program::is_single_threaded() {
  // A directory has a link for each of its subdirectories, and two others.
  constexpr unsigned kOthers = 2;
  struct stat status {};
  if (kernel(SYS_newfstatat, AT_FDCWD, "/proc/self/task", &status, 0) != 0) return false;
  return status.st_nlink == kOthers + 1;
}

Thread this_thread() {
  return static_cast<Thread>(pthread_self());
}

}  // namespace rocemu::sanitizer
