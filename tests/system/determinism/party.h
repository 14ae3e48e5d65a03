// One thread of a running random program.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/system/determinism/world.h"

namespace rocemu::determinism {

class Party {
 public:
  Party(World& world, ProcessState& process, uint32_t number);

  /// Runs all acts of this thread. Before the first act and after the last one, all threads wait
  /// for each other.
  void run();

 private:
  /// This thread's end of a link.
  struct End {
    size_t link = 0;
    std::unique_ptr<Side> side;
    uint32_t sent = 0, received = 0;  // completions so far
    uint32_t to_send = 0, to_receive = 0;
  };

  void set_up();
  void tear_down();
  void do_part(const Act& act);
  void do_part_of_two(const Act& act);

  // Exchanges a message between two threads. The act determines which of them is this thread.
  void message(const Act& act);
  void pass_byte(const Act& act);
  void pass_event(const Act& act);
  void pass_semaphore(const Act& act);
  void pass_condition(const Act& act);
  void pass_flag(const Act& act);
  void pass_signal(const Act& act);
  void serve_connection(const Act& act);
  void make_connection(const Act& act);
  void gather(const Act& act);
  // Executes an act of this thread only.
  void one_sided(const Act& act);
  void lock(const Act& act);
  void sleep(const Act& act);
  void wait_for_timer(const Act& act);
  void make_objects(const Act& act);
  void poll_in_vain(const Act& act);
  void read_clock(const Act& act);
  void read_random(const Act& act);
  void fork_child(const Act& act);

  End& end_of(uint32_t from, uint32_t to);
  void send(const Act& act);
  void drain();
  void arm();
  void take_event();
  void wait_for_completions(const std::function<bool()>& is_done, CqWait how);
  void wait_at_channel(CqWait how);
  void note(const std::string& what) { line_ += " " + what; }

  World& world_;
  ProcessState& process_;
  const uint32_t number_;
  std::unique_ptr<Device> own_device_;
  Device* device_ = nullptr;
  ibv_comp_channel* channel_ = nullptr;
  ibv_cq* cq_ = nullptr;
  std::vector<End> ends_;
  std::string line_;
};

}  // namespace rocemu::determinism
