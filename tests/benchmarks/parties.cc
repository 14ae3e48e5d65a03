// Measures the latency of messages when many threads share the processors: each thread of a pair of
// processes exchanges a message with its counterpart in the other process.
//   parties HOW PAIRS THREADS SECONDS
// HOW selects what a thread waits for, under `rocemu run --private`:
//   poll          its completions, in one CQ
//   several       its completions, while it also polls three other CQs in turn
//   memory        the bytes of an RDMA WRITE, as ib_write_lat does
//   event         ibv_get_cq_event
// or without a NIC:
//   udp           a datagram; it yields while there is none
//   udp-blocking  recv
//   relay         bytes in memory, which another process writes
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "tests/benchmarks/parties_by_others.h"
#include "tests/benchmarks/parties_by_verbs.h"
#include "tests/benchmarks/parties_shared.h"

namespace {

using namespace rocemu::benchmarks;

using Clock = std::chrono::steady_clock;

template <class Party>
void answer(Party& party) {
  for (uint32_t number = 0;;) {
    number = party.receive(number);
    party.send(number);
    if (number == kLast) return;
  }
}

/// Returns half of each round-trip time, in microseconds, as perftest does.
template <class Party>
size_t ask(Party& party, std::chrono::duration<double> time,
           std::array<float, kMaxSamples>& one_way_us) {
  const auto begin = Clock::now();
  size_t count = 0;
  uint32_t number = 0;
  for (auto before = begin; before - begin < time && count < kMaxSamples; ++count) {
    party.send(++number);
    party.receive(number - 1);
    const auto after = Clock::now();
    one_way_us[count] = std::chrono::duration<float, std::micro>(after - before).count() / 2;
    before = after;
  }
  party.send(kLast);
  party.receive(number);
  return count;
}

struct Options {
  How how;
  size_t pairs, threads;
  std::chrono::duration<double> time;
};

template <class Party>
void work(const Options& options, Shared& shared, size_t pair, size_t side) {
  const typename Party::Process process;
  const auto thread_of = [&](size_t number) {
    const size_t index = pair * options.threads + number;
    Party party(options.how, process, {shared, index, side});
    shared.ends[index][side] = party.end();
    pthread_barrier_wait(&shared.barrier);
    party.connect(shared.ends[index][1 - side]);
    pthread_barrier_wait(&shared.barrier);
    if (side == 0) {
      answer(party);
    } else {
      shared.count[index] = ask(party, options.time, shared.one_way_us[index]);
    }
    // neither side may end while the other's messages are in flight
    pthread_barrier_wait(&shared.barrier);
  };
  std::vector<std::thread> others;
  for (size_t i = 1; i < options.threads; ++i) others.emplace_back(thread_of, i);
  thread_of(0);
  for (std::thread& other : others) other.join();
}

void work_as_told(const Options& options, Shared& shared, size_t pair, size_t side) {
  switch (options.how) {
    case How::kUdp:
    case How::kUdpBlocking:
      return work<UdpParty>(options, shared, pair, side);
    case How::kRelay:
      return work<RelayedParty>(options, shared, pair, side);
    default:
      return work<VerbsParty>(options, shared, pair, side);
  }
}

/// Starts a child process that calls `work` and then exits. The kernel kills the child if this
/// process ends first.
template <class Work>
pid_t start_process(Work work) {
  const pid_t parent = getpid();
  const pid_t child = fork();
  check(child >= 0, "fork");
  if (child != 0) return child;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() == parent) work();
  std::exit(0);
}

void print(const Options& options, const Shared& shared) {
  std::vector<float> all;
  for (size_t i = 0; i < options.pairs * options.threads; ++i) {
    all.insert(all.end(), shared.one_way_us[i].data(),
               shared.one_way_us[i].data() + shared.count[i]);
  }
  std::sort(all.begin(), all.end());
  if (all.empty()) fail("no message came back");
  const auto at = [&](double part) {
    return all[static_cast<size_t>(static_cast<double>(all.size() - 1) * part)];
  };
  std::printf("one way: %.2f usec typical, %.2f usec 99%%, %.2f usec 99.9%%, %zu messages\n",
              at(0.5), at(0.99), at(0.999), 2 * all.size());
}

bool parse(int argc, char** argv, Options& options) {
  if (argc != 5) return false;
  const std::array<std::string, 7> names{"poll", "several",      "memory", "event",
                                         "udp",  "udp-blocking", "relay"};
  const auto* const name = std::find(names.begin(), names.end(), argv[1]);
  if (name == names.end()) return false;
  options = {static_cast<How>(name - names.begin()), std::strtoul(argv[2], nullptr, 10),
             std::strtoul(argv[3], nullptr, 10),
             std::chrono::duration<double>(std::strtod(argv[4], nullptr))};
  return options.pairs >= 1 && options.pairs <= kMaxThreads && options.threads >= 1 &&
         options.threads <= kMaxThreads / options.pairs && options.time.count() > 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (!parse(argc, argv, options)) {
    std::fprintf(
        stderr,
        "usage: parties poll|several|memory|event|udp|udp-blocking|relay PAIRS THREADS SECONDS\n"
        "PAIRS times THREADS: at most %zu\n",
        kMaxThreads);
    return 2;
  }
  void* memory =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  check(memory != MAP_FAILED, "mmap");
  Shared& shared = *new (memory) Shared;
  pthread_barrierattr_t attributes;
  pthread_barrierattr_init(&attributes);
  pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_barrier_init(&shared.barrier, &attributes,
                       static_cast<unsigned>(2 * options.pairs * options.threads));
  pid_t relaying = 0;
  if (options.how == How::kRelay) {
    shared.relay_rung = eventfd(0, 0);
    check(shared.relay_rung >= 0, "eventfd");
    relaying = start_process([&] { relay(shared, options.pairs * options.threads); });
  }
  for (size_t i = 0; i < 2 * options.pairs; ++i) {
    start_process([&] { work_as_told(options, shared, i / 2, i % 2); });
  }
  for (size_t left = 2 * options.pairs; left != 0; --left) {
    int status;
    check(wait(&status) > 0, "wait");
    // the child has printed the error; the other processes end with this one
    if (status != 0) return 1;
  }
  if (relaying > 0) {
    kill(relaying, SIGKILL);
    waitpid(relaying, nullptr, 0);
  }
  print(options, shared);
}
