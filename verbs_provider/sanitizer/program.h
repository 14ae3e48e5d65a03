// The state of the sanitizer in this process
#pragma once

#include <infiniband/verbs.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "emulator/sanitizer/sanitizer.h"
#include "verbs_provider/sanitizer/compilers/buffer_marks.h"
#include "verbs_provider/sanitizer/log.h"
#include "verbs_provider/sanitizer/own_lock.h"
#include "verbs_provider/sanitizer/stacks.h"

namespace rocemu::sanitizer {

class Program final : public Host {
 public:
  /// Returns the program, which is created at the first call; null unless the run has --sanitize.
  static Program* get();

  OwnLock lock;  // guards all members below

  Sanitizer& sanitizer() { return sanitizer_; }
  Objects& objects() { return sanitizer_.objects(); }
  Log& log() { return log_; }
  Stacks& stacks() { return stacks_; }
  /// Returns the call stack of the calling thread, which called the function `call`, and the time.
  CallSite here(const char* call, ibv_context* context);
  /// Forgets the context. Called when the context is closed.
  void forget(ibv_context* context);

  /// Returns false in a child that vfork(2) or a raw system call created.
  bool is_of_this_process() const;

  void report(const Report& report) override;
  uint64_t report_unless_withdrawn(const Report& report) override;
  void withdraw(uint64_t number) override;
  bool is_single_threaded() override;
  std::optional<uint64_t> checksum(std::span<const abi::Sge> sges,
                                   ReadableBytes& readable) override;
  CallSite here(std::string_view call) override;

  /// The provider's function for the device time of a context.
  static inline uint64_t (*now_ns)(ibv_context*) = nullptr;

 private:
  Program(const std::string& directory, const Selection& selection);
  static Program* make_one();
  static void make();
  static void begin_in_child();
  static void prepare_fork();

  const long pid_;
  Stacks stacks_;
  Log log_;
  Sanitizer sanitizer_;
  BufferMarks* marks_ = nullptr;  // one of the checks
  const Rule* trap_ = nullptr;
  ibv_context* clock_ = nullptr;  // the latest context; null if it was closed
};

/// Returns the description of the calling thread.
Thread this_thread();

}  // namespace rocemu::sanitizer
