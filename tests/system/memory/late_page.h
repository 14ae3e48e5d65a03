// A page of this process that does not exist until another thread or process provides it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace rocemu::system_test {

class LatePage {
 public:
  static constexpr size_t kSize = 4096;
  /// The value of every byte of the page after it was provided.
  static constexpr uint8_t kProvided = 0x5a;

  virtual ~LatePage() = default;

  virtual uint8_t* data() = 0;
  /// Provides the page. Threads that wait for it then continue.
  virtual void provide() = 0;
  /// Removes the page.
  virtual void take_away() = 0;
};

/// A function that makes a page. If the kernel does not permit it, returns null and sets `why` to
/// the reason.
using MakeLatePage = std::unique_ptr<LatePage> (*)(std::string* why);

/// Makes a page that userfaultfd(2) provides.
std::unique_ptr<LatePage> make_userfaultfd_page(std::string* why);

/// Makes a page of a mapped file in a file system that another process serves.
std::unique_ptr<LatePage> make_fuse_page(std::string* why);

}  // namespace rocemu::system_test
