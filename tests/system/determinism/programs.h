// The programs, by name. Each program's output depends only on the decisions of the scheduler, the
// clock and the NIC, and each succeeds whatever they decide.
#pragma once

#include <cstdint>

namespace rocemu::determinism {

// `count` processes or threads that open devices at the same time (opening.cc).
void open_after_fork(uint32_t count);
void open_after_exec(uint32_t count);
void open_one(uint32_t number);  // the program that execute_in_a_thread() and others execute
void open_in_threads(uint32_t count);
void open_in_a_tree(uint32_t depth);
void pairs_after_fork(uint32_t count);
void execute_in_a_thread(uint32_t count);
void fork_and_exec(uint32_t count);

// Programs that leave objects or processes behind when they end (ends.cc).
void exit_with_messages_under_way(uint32_t count);
void exit_with_a_receiver_not_ready(uint32_t);
void exit_connected(uint32_t count);
void exit_after_disconnecting(uint32_t);
void exit_in_a_thread(uint32_t count);
void kill_a_connected_child(uint32_t);
void leave_an_orphan(uint32_t count);

// Threads that poll (polling.cc).
void poll_two_cqs(uint32_t messages);
void poll_two_cqs_of_processes(uint32_t messages);
void count_empty_polls(uint32_t messages);

// One thread that waits for several descriptors (event_loop.cc).
void epoll_loop(uint32_t messages);
void edge_triggered_loop(uint32_t messages);
void poll_loop(uint32_t messages);
void select_loop(uint32_t messages);

// Processes with a stream of data between them (stream.cc).
void stream_over_tcp(uint32_t kilobytes);

// Threads that work at the same time (threads.cc).
void create_in_threads(uint32_t count);
void connect_in_threads(uint32_t count);
void conditions(uint32_t count);
void contended_mutex(uint32_t count);
void poll_under_a_lock(uint32_t count);
void several_poll_under_a_lock(uint32_t count);
void signals(uint32_t messages);

// Threads that start or end while their process gets signals (signals.cc).
void signal_new_threads(uint32_t count);
void alarm_after_threads(uint32_t count);

// Threads that spin on memory (spinning.cc).
void spin_with_yield(uint32_t count);
void spin_with_pause(uint32_t count);
void spinning_barrier(uint32_t count);
void spin_beside_progress(uint32_t count);
void spin_on_writes(uint32_t messages);
void spin_on_sends(uint32_t messages);
void spin_for_ever(uint32_t count);
void execute_beside_a_spinner(uint32_t count);

}  // namespace rocemu::determinism
