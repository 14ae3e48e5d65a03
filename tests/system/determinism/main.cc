// determinism_programs NAME [COUNT]: runs one of the programs whose runs in lockstep are compared.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "programs.h"

namespace {

using namespace rocemu::determinism;

constexpr struct {
  std::string_view name;
  void (*run)(uint32_t);
  uint32_t count;  // if COUNT is not given
} kPrograms[] = {
    {"open_after_fork", open_after_fork, 8},
    {"open_after_exec", open_after_exec, 8},
    {"open_one", open_one, 0},
    {"open_in_threads", open_in_threads, 8},
    {"open_in_a_tree", open_in_a_tree, 2},
    {"pairs_after_fork", pairs_after_fork, 4},
    {"execute_in_a_thread", execute_in_a_thread, 4},
    {"fork_and_exec", fork_and_exec, 6},
    {"exit_with_messages_under_way", exit_with_messages_under_way, 30},
    {"exit_with_a_receiver_not_ready", exit_with_a_receiver_not_ready, 0},
    {"exit_connected", exit_connected, 4},
    {"exit_after_disconnecting", exit_after_disconnecting, 0},
    {"exit_in_a_thread", exit_in_a_thread, 4},
    {"kill_a_connected_child", kill_a_connected_child, 0},
    {"leave_an_orphan", leave_an_orphan, 200},
    {"poll_two_cqs", poll_two_cqs, 20},
    {"poll_two_cqs_of_processes", poll_two_cqs_of_processes, 10},
    {"count_empty_polls", count_empty_polls, 10},
    {"epoll_loop", epoll_loop, 12},
    {"edge_triggered_loop", edge_triggered_loop, 12},
    {"poll_loop", poll_loop, 12},
    {"select_loop", select_loop, 12},
    {"stream_over_tcp", stream_over_tcp, 1000},
    {"create_in_threads", create_in_threads, 8},
    {"connect_in_threads", connect_in_threads, 6},
    {"conditions", conditions, 4},
    {"contended_mutex", contended_mutex, 6},
    {"poll_under_a_lock", poll_under_a_lock, 4},
    {"several_poll_under_a_lock", several_poll_under_a_lock, 3},
    {"signals", signals, 8},
    {"signal_new_threads", signal_new_threads, 60},
    {"alarm_after_threads", alarm_after_threads, 30},
    {"spin_with_yield", spin_with_yield, 4},
    {"spin_with_pause", spin_with_pause, 4},
    {"spinning_barrier", spinning_barrier, 4},
    {"spin_beside_progress", spin_beside_progress, 3},
    {"spin_on_writes", spin_on_writes, 20},
    {"spin_on_sends", spin_on_sends, 20},
    {"spin_for_ever", spin_for_ever, 2},
    {"execute_beside_a_spinner", execute_beside_a_spinner, 4},
};

}  // namespace

int main(int argc, char** argv) {
  const std::string_view wanted = argc > 1 ? argv[1] : "";
  for (const auto& program : kPrograms) {
    if (program.name != wanted) continue;
    program.run(argc > 2 ? static_cast<uint32_t>(std::strtoul(argv[2], nullptr, 10))
                         : program.count);
    return 0;
  }
  std::fprintf(stderr, "usage: determinism_programs NAME [COUNT]; NAME is one of\n");
  for (const auto& program : kPrograms)
    std::fprintf(stderr, "  %.*s\n", static_cast<int>(program.name.size()), program.name.data());
  return 2;
}
