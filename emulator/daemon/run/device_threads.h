// With --threads: each device in a thread of its own, with its engine, its clients and its loop;
// the main thread keeps rdma_cm and all that commands.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "emulator/daemon/net/shard_link.h"
#include "emulator/daemon/run/worker.h"

namespace rocemu::daemon {

class DeviceThreads {
 public:
  /// `main` has the connections (engine::Shard::Of::kConnections) and outlives this. `capture` may
  /// be null. Throws StartError.
  DeviceThreads(engine::FabricConfig fabric, const Clock& clock, capture::PcapWriter* capture,
                const std::function<void()>& flush_files, Worker& main);
  ~DeviceThreads();

  void start(bool busy_poll);
  /// They have ended when it returns.
  void stop();

  Worker& of(engine::DeviceIndex device) { return threads_[device.value]->worker; }

  /// No frame is on its way from one to another. While they stand still.
  bool is_idle() const;

  /// While one exists the threads stand still, and the main thread can look at what they have and
  /// change it.
  class Pause {
   public:
    explicit Pause(DeviceThreads& threads);
    ~Pause();
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    DeviceThreads& threads_;
  };

 private:
  struct Thread {
    Thread(const engine::FabricConfig& fabric, const Clock& clock, capture::PcapWriter* capture,
           ClientIds ids, Worker::Files files);
    Worker worker;
    ShardLink crossing;
    std::thread thread{};
  };

  std::atomic<bool> stopping_{false};
  int pauses_ = 0;                                // at a time; the main thread's
  std::vector<std::unique_ptr<Thread>> threads_;  // in the devices' order
  ShardLink main_crossing_;
};

}  // namespace rocemu::daemon
