// random_program SEED [--print] [--without ACT,ACT...]: runs or prints the program that SEED
// determines.
#include <signal.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/system/determinism/party.h"
#include "tests/system/determinism/random_program.h"
#include "tests/system/determinism/world.h"

namespace {

using namespace rocemu::determinism;

std::set<uint32_t> numbers_in(const char* list) {
  std::set<uint32_t> numbers;
  while (*list != '\0') {
    char* end = nullptr;
    numbers.insert(static_cast<uint32_t>(std::strtoul(list, &end, 10)));
    list = *end == ',' ? end + 1 : end;
  }
  return numbers;
}

void run_process(World& world, const std::vector<uint32_t>& threads) {
  ProcessState process;
  std::unique_ptr<Device> device;
  const Thread& first = world.program.threads[threads[0]];
  if (!first.has_own_context) device = std::make_unique<Device>(first.device.c_str());
  process.device = device.get();
  std::vector<std::thread> running;
  for (const uint32_t number : threads)
    running.emplace_back([&, number] { Party(world, process, number).run(); });
  for (std::thread& thread : running) thread.join();
}

void run(const RandomProgram& program) {
  sigset_t all;
  sigemptyset(&all);
  for (int number = SIGRTMIN + 1; number <= SIGRTMAX; ++number) sigaddset(&all, number);
  sigprocmask(SIG_BLOCK, &all, nullptr);
  World world(program);
  std::vector<std::vector<uint32_t>> threads_of(program.threads.back().process + 1);
  for (const uint32_t thread : used_threads(program))
    threads_of[program.threads[thread].process].push_back(thread);
  size_t children = 0;
  for (size_t process = 1; process < threads_of.size(); ++process) {
    if (threads_of[process].empty()) continue;
    start_child([&] { run_process(world, threads_of[process]); });
    ++children;
  }
  if (!threads_of[0].empty()) run_process(world, threads_of[0]);
  wait_for_children(children);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: random_program SEED [--print] [--without ACT,ACT...]\n");
    return 2;
  }
  std::set<uint32_t> without;
  bool prints = false;
  for (int i = 2; i < argc; ++i) {
    if (std::strcmp(argv[i], "--print") == 0) prints = true;
    if (std::strcmp(argv[i], "--without") == 0 && i + 1 < argc) without = numbers_in(argv[++i]);
  }
  const RandomProgram program = make_program(std::strtoull(argv[1], nullptr, 10), without);
  if (prints) {
    std::fputs(program.describe().c_str(), stdout);
  } else {
    run(program);
  }
}
