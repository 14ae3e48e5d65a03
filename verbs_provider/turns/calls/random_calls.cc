// Makes random numbers depend on the run's seed in lockstep.
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstring>

#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include "verbs_provider/shim/interpose.h"
#include "verbs_provider/turns/random_files.h"
#include "verbs_provider/turns/turn.h"

namespace rocemu::turns {
namespace {

shim::Next<ssize_t(void*, size_t, unsigned)> next_getrandom("getrandom");
shim::Next<int(void*, size_t)> next_getentropy("getentropy");

/// The number of random numbers that this process has drawn. A child draws other ones, since they
/// also depend on the serial number of the thread.
uint64_t drawn = 0;

/// Returns the next number of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number
/// generators, 2014).
uint64_t next_number() {
  const uint64_t thread = own_slot()->serial.load();
  uint64_t value = table()->seed + (thread << 32) + (++drawn) * 0x9e3779b97f4a7c15;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

void fill(void* data, size_t size) {
  auto* bytes = static_cast<unsigned char*>(data);
  for (size_t at = 0; at < size; at += sizeof(uint64_t)) {
    const uint64_t number = next_number();
    memcpy(bytes + at, &number, size - at < sizeof number ? size - at : sizeof number);
  }
}

constexpr int kMaxFiles = 1024;
std::atomic<bool> random_files[kMaxFiles];

void note_if_random(const char* path, int fd) {
  if (fd < 0 || fd >= kMaxFiles) return;
  random_files[fd] = strcmp(path, "/dev/urandom") == 0 || strcmp(path, "/dev/random") == 0;
}

mode_t mode_in(int flags, va_list list) {
  const bool makes = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
  return makes ? va_arg(list, mode_t) : 0;
}

shim::Next<int(const char*, int, mode_t)> next_open("open");
shim::Next<int(int, const char*, int, mode_t)> next_openat("openat");

}  // namespace

bool fill_randomly(void* data, size_t size) {
  if (!active()) return false;
  fill(data, size);
  return true;
}

bool is_random_file(int fd) {
  return fd >= 0 && fd < kMaxFiles && random_files[fd].load(std::memory_order_relaxed);
}

void forget_random_file(int fd) {
  if (fd >= 0 && fd < kMaxFiles) random_files[fd].store(false, std::memory_order_relaxed);
}

}  // namespace rocemu::turns

using namespace rocemu::turns;

ROCEMU_REPLACE(ssize_t, getrandom, (void* data, size_t size, unsigned flags)) {
  if (!active()) return next_getrandom(data, size, flags);
  fill(data, size);
  return static_cast<ssize_t>(size);
}

ROCEMU_REPLACE(int, getentropy, (void* data, size_t size)) {
  if (size > 256 || !active()) return next_getentropy(data, size);
  fill(data, size);
  return 0;
}

ROCEMU_REPLACE(int, open, (const char* path, int flags, ...)) {
  va_list list;
  va_start(list, flags);
  const mode_t mode = mode_in(flags, list);
  va_end(list);
  const int fd = next_open(path, flags, mode);
  note_if_random(path, fd);
  return fd;
}
ROCEMU_REPLACE_ALIAS(open64, open);

ROCEMU_REPLACE(int, __open_2, (const char* path, int flags)) {
  return rocemu_shim_open(path, flags);
}
ROCEMU_REPLACE_ALIAS(__open64_2, __open_2);

ROCEMU_REPLACE(int, openat, (int dirfd, const char* path, int flags, ...)) {
  va_list list;
  va_start(list, flags);
  const mode_t mode = mode_in(flags, list);
  va_end(list);
  const int fd = next_openat(dirfd, path, flags, mode);
  note_if_random(path, fd);
  return fd;
}
ROCEMU_REPLACE_ALIAS(openat64, openat);
