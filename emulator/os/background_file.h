// Writes a file in a background thread when there is much data, so that the caller does not wait
// for the disk. The destination can also be a stream (a pipe, a FIFO, a socket). Its reader may be
// slow or never read, and the caller need not wait for it.
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
  /// Writes the remaining data if the destination is a file. Data that the reader of a stream has
  /// not read yet is lost; call sync() before.
  ~BackgroundFile();
  BackgroundFile(const BackgroundFile&) = delete;
  BackgroundFile& operator=(const BackgroundFile&) = delete;

  /// Appends the bytes, and leaves `bytes` empty with its capacity. A small amount is written
  /// immediately; a large amount, or data behind data that still waits, is written by the thread.
  /// Waits if 64 MiB are waiting already. Returns false after the first failure; nothing is written
  /// from then on.
  bool write(std::vector<std::byte>& bytes);

  /// Returns whether write() would accept data without waiting for the reader of a stream.
  bool has_room();

  /// The limit for the time that sync() waits for the reader of a stream: until the reader has
  /// paused for 2 s, but at most 20 s in total (kLimited), or none (kEndless).
  enum class Patience { kLimited, kEndless };

  /// Waits until everything is written. Returns false after a failure, like write(). If the reader
  /// of a stream exceeds the limits, error() is ETIMEDOUT.
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
