// A file that a thread of its own writes when there is much to write, so that its user does not
// wait for the disk; or a stream (a pipe, a FIFO, a socket), whose reader may be slow or never
// read, so that its user need not wait at all.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
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
  /// Creates the file or empties it; error() is not 0 if that fails, or if the path is a FIFO.
  explicit BackgroundFile(const std::string& path);
  /// Writes to what is open already.
  explicit BackgroundFile(UniqueFd fd);
  /// Writes what is left to a file. What the reader of a stream has not taken is lost; see sync().
  ~BackgroundFile();
  BackgroundFile(const BackgroundFile&) = delete;
  BackgroundFile& operator=(const BackgroundFile&) = delete;

  /// Appends the bytes and leaves `bytes` empty, with room. Little is written at once; what is
  /// much, or behind something that waits, later. Waits if a whole lot is waiting already. False
  /// once anything could not be written; then nothing is written any more.
  bool write(std::vector<std::byte>& bytes);

  /// False while so much waits for the reader of a stream that write() would wait, too.
  bool has_room();

  /// How long the reader of a stream is waited for: while it takes something now and then, or for
  /// ever.
  enum class Patience { kLimited, kEndless };

  /// Waits until all is written; false as for write(). Where patience ends the error is ETIMEDOUT.
  bool sync(Patience patience = Patience::kEndless);

  /// errno of the first failure, or 0.
  int error();

 private:
  void work();
  int write_now(std::span<const std::byte> bytes);
  size_t wait_for_reader(size_t size) const;

  UniqueFd fd_;
  bool is_stream_ = false;
  UniqueFd ended_;  // of a stream: an eventfd that ends the thread's wait for the reader
  std::atomic<uint64_t> taken_bytes_{0};
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
