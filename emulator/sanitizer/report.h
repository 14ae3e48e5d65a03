// The reports of a check, and the host of checks, which is the process of the program, or a test
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "emulator/abi/rings.h"
#include "emulator/sanitizer/sanitizer_rule.h"

namespace rocemu::sanitizer {

/// The call stack and time of a call of the program. The call is a string literal.
struct CallSite {
  std::string_view call;  // "ibv_post_recv"
  uint32_t stack = 0;     // a number of the host's; 0: unknown
  uint64_t time_ns = 0;   // device time
};

/// A call site of a report, and what happened there: "posted", "deregistered". Both are string
/// literals.
struct NamedCallSite {
  std::string_view what;
  CallSite site;
};

/// A report. The message is a sentence without its subject, the process, and without a full stop:
/// "deregistered memory region 3 while ...".
struct Report {
  const Rule& rule;
  std::string message;
  std::span<const NamedCallSite> sites;  // the last one is where the mistake was made
};

/// Memory that the kernel has reported as readable since the check of the program's current call
/// began. If a call posts or completes many requests whose buffers share a page, the kernel is
/// asked about that page only once.
struct ReadableBytes {
  uint64_t begin = 0, end = 0;
};

class Host {
 public:
  virtual void report(const Report& report) = 0;
  /// Reports a mistake that counts only if a wait never ends. Returns the report's number, by which
  /// withdraw() removes the report when the wait ends.
  virtual uint64_t report_unless_withdrawn(const Report& report) = 0;
  virtual void withdraw(uint64_t number) = 0;
  /// Returns whether the calling thread is the only one of the process.
  virtual bool is_single_threaded() = 0;
  /// Returns a checksum of the bytes in the SGEs; nothing if they cannot be read.
  virtual std::optional<uint64_t> checksum(std::span<const abi::Sge> sges,
                                           ReadableBytes& readable) = 0;
  /// Returns the call stack of the calling thread, which called the function `call`, and the time.
  virtual CallSite here(std::string_view call) = 0;

 protected:
  ~Host() = default;
};

}  // namespace rocemu::sanitizer
