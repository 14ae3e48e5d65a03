// The report of a check, and the interface of the host that runs the checks: a program's process,
// or a test
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "emulator/abi/rings.h"
#include "emulator/sanitizer/sanitizer_rule.h"

namespace rocemu::sanitizer {

/// A call of the program, with its call stack and time. `call` must refer to a string literal.
struct CallSite {
  std::string_view call;  // "ibv_post_recv"
  uint32_t stack = 0;     // a number of the host's; 0: unknown
  uint64_t time_ns = 0;   // device time
};

/// A call site of a report, and what happened at it: "posted", "deregistered". Both texts are
/// string literals.
struct NamedCallSite {
  std::string_view what;
  CallSite site;
};

/// A report of a mistake. The message is a sentence without its subject, which is the process, and
/// without a period: "deregistered memory region 3 while ...".
struct Report {
  const Rule& rule;
  std::string message;
  std::span<const NamedCallSite> sites;  // the last one is where the mistake was made
};

/// Memory that the kernel has reported as readable during the current call of the program. So the
/// kernel is asked only once about a page that the buffers of many requests in this call share.
struct ReadableBytes {
  uint64_t begin = 0, end = 0;
};

class Host {
 public:
  virtual void report(const Report& report) = 0;
  /// Reports a mistake that counts only if a wait never ends. Returns a number. If the wait ends,
  /// withdraw() with this number removes the report.
  virtual uint64_t report_unless_withdrawn(const Report& report) = 0;
  virtual void withdraw(uint64_t number) = 0;
  /// Returns whether the process has only one thread.
  virtual bool is_single_threaded() = 0;
  /// Returns a checksum of the bytes that the SGEs describe; nothing if the bytes cannot be read.
  virtual std::optional<uint64_t> checksum(std::span<const abi::Sge> sges,
                                           ReadableBytes& readable) = 0;
  /// Returns the current call stack and time. `call` is the function that the program called.
  virtual CallSite here(std::string_view call) = 0;

 protected:
  ~Host() = default;
};

}  // namespace rocemu::sanitizer
