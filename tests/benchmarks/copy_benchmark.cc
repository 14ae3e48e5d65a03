// Measures the minimum cost of copying bytes on this machine: within a process, and by a third
// process between two other processes. The daemon accesses the memory of programs in the second
// way.
#include <benchmark/benchmark.h>
#include <sys/uio.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "tests/benchmarks/other_process.h"

namespace {

constexpr size_t kLargest = 8 << 20;

void count_bytes(benchmark::State& state) {
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations()) * state.range(0));
}

void copy_memcpy(benchmark::State& state) {
  const auto size = static_cast<size_t>(state.range(0));
  const std::vector<char> from(size, 'x');
  std::vector<char> to(size);
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), size);
    benchmark::DoNotOptimize(to.data());
    benchmark::ClobberMemory();
  }
  count_bytes(state);
}

template <class Call>
void copy_between_processes(benchmark::State& state, Call call) {
  static rocemu::benchmarks::OtherProcess other(kLargest);
  const auto size = static_cast<size_t>(state.range(0));
  std::vector<char> mine(size);
  const iovec local{mine.data(), size};
  const iovec remote{other.buffer(), size};
  for (auto _ : state) {
    if (call(other.pid(), &local, 1, &remote, 1, 0) != static_cast<ssize_t>(size)) {
      state.SkipWithError("the other process's memory cannot be reached");
      break;
    }
  }
  count_bytes(state);
}

void copy_process_vm_readv(benchmark::State& state) {
  copy_between_processes(state, process_vm_readv);
}

void copy_process_vm_writev(benchmark::State& state) {
  copy_between_processes(state, process_vm_writev);
}

/// Copies from one process to another, in pieces of the size that the daemon moves at a time.
void copy_between_two(benchmark::State& state) {
  constexpr size_t kPiece = 65536;
  static rocemu::benchmarks::OtherProcess from(kLargest), to(kLargest);
  const auto size = static_cast<size_t>(state.range(0));
  std::vector<char> mine(kPiece);
  for (auto _ : state) {
    for (size_t at = 0; at < size; at += kPiece) {
      const iovec local{mine.data(), kPiece};
      const iovec source{from.buffer() + at, kPiece}, target{to.buffer() + at, kPiece};
      if (process_vm_readv(from.pid(), &local, 1, &source, 1, 0) != ssize_t{kPiece} ||
          process_vm_writev(to.pid(), &local, 1, &target, 1, 0) != ssize_t{kPiece}) {
        state.SkipWithError("the other process's memory cannot be reached");
        return;
      }
    }
  }
  count_bytes(state);
}

BENCHMARK(copy_between_two)->Arg(65536)->Arg(1 << 20)->Arg(8 << 20);
BENCHMARK(copy_memcpy)->Arg(64)->Arg(4096)->Arg(65536)->Arg(1 << 20);
BENCHMARK(copy_process_vm_readv)->Arg(64)->Arg(4096)->Arg(65536)->Arg(1 << 20);
BENCHMARK(copy_process_vm_writev)->Arg(64)->Arg(4096)->Arg(65536)->Arg(1 << 20);

}  // namespace
