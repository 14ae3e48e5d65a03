// A file that a thread of its own writes when there is much to write, so that whoever has something
// to record does not wait for the disk.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "emulator/os/unique_fd.h"

namespace rocemu {

class BackgroundFile {
 public:
  /// Makes the file or empties it; error() is not 0 if that fails.
  explicit BackgroundFile(const std::string& path);
  /// Writes what is left.
  ~BackgroundFile();
  BackgroundFile(const BackgroundFile&) = delete;
  BackgroundFile& operator=(const BackgroundFile&) = delete;

  /// Appends the bytes and leaves `bytes` empty, with room. Little is written at once; what is
  /// much, or behind something that waits, later. Waits if a whole lot is waiting already. False
  /// once anything could not be written; then nothing is written any more.
  bool write(std::vector<std::byte>& bytes);

  /// Waits until all is written; false as for write().
  bool sync();

  /// errno of the first failure, or 0.
  int error();

 private:
  void work();
  int write_now(std::span<const std::byte> bytes) const;

  UniqueFd fd_;
  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::deque<std::vector<std::byte>> waiting_;
  std::vector<std::vector<std::byte>> spare_;
  size_t waiting_bytes_ = 0;  // those that are just being written included
  int error_ = 0;
  bool ending_ = false;
  std::thread thread_;  // started by the first that is written later
};

}  // namespace rocemu
