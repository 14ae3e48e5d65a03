// Receives reports of hangs from the `rocemu run` that has a test's NIC (abi/test_watch.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace rocemu::abi {
struct TestWatch;
}

namespace rocemu::testing {

class HangWatch {
 public:
  /// Creates the memory through which `rocemu run` reports hangs. Throws Error if that fails.
  HangWatch();
  ~HangWatch();
  HangWatch(const HangWatch&) = delete;
  HangWatch& operator=(const HangWatch&) = delete;

  /// Returns the descriptor of the shared memory, which `rocemu run` must inherit.
  int fd() const { return fd_; }

  /// Marks the calling thread as waiting for programs while the object exists.
  class Waiting {
   public:
    /// Does nothing if `watch` is null.
    explicit Waiting(HangWatch* watch);
    ~Waiting();
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

    /// Returns the report of a hang that was found during this wait; nothing if there was none.
    std::optional<std::string> hang() const;

   private:
    HangWatch* watch_;
    uint32_t hangs_before_ = 0;
    size_t index_ = 0;
  };

 private:
  int fd_;
  abi::TestWatch* watch_;
};

}  // namespace rocemu::testing
