// A file that a separate thread writes when there is much to write, so that its user does not wait
// for the disk. Also a stream (a pipe, a FIFO, a socket), whose reader may be slow or never read,
// so that its user need not wait at all.
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
  /// Creates or truncates the file; error() is not 0 if this fails, or if the path is a FIFO.
  explicit BackgroundFile(const std::string& path);
  /// Writes to a descriptor that is already open.
  explicit BackgroundFile(UniqueFd fd);
  /// Writes the rest to a file. Data that the reader of a stream has not taken is lost; see sync().
  ~BackgroundFile();
  BackgroundFile(const BackgroundFile&) = delete;
  BackgroundFile& operator=(const BackgroundFile&) = delete;

  /// Appends the bytes and leaves `bytes` empty, with capacity. A small amount is written at once;
  /// a large amount, or data behind waiting data, is written later. Waits if too much is waiting
  /// already. Returns false once anything could not be written; after that nothing is written.
  bool write(std::vector<std::byte>& bytes);

  /// Returns false while write() would have to wait, because the reader of a stream is too far
  /// behind.
  bool has_room();

  /// The time for which sync() waits for the reader of a stream: as long as it reads something from
  /// time to time, or forever.
  enum class Patience { kLimited, kEndless };

  /// Waits until everything is written. Returns false as write() does. If the patience ends, the
  /// error is ETIMEDOUT.
  bool sync(Patience patience = Patience::kEndless);

  /// Returns the errno of the first failure, or 0.
  int error();

 private:
  void work();
  int write_now(std::span<const std::byte> bytes);
  size_t wait_for_reader(size_t size) const;

  UniqueFd fd_;
  bool is_stream_ = false;
  UniqueFd ended_;  // for a stream: an eventfd that ends the thread's wait for the reader
  std::atomic<uint64_t> taken_bytes_{0};
  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  std::deque<std::vector<std::byte>> waiting_;
  std::vector<std::vector<std::byte>> spare_;
  size_t waiting_bytes_ = 0;  // including those that are being written
  int error_ = 0;
  bool ending_ = false;
  std::thread thread_;  // started by the first delayed write
};

}  // namespace rocemu
