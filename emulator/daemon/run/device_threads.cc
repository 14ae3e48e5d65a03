#include "emulator/daemon/run/device_threads.h"

#include <algorithm>
#include <utility>

namespace rocemu::daemon {
namespace {

std::function<void()> take_receives_of(Worker& worker) {
  return [&worker] { worker.sessions().take_receives(); };
}

}  // namespace

DeviceThreads::DeviceThreads(engine::FabricConfig fabric, const Clock& clock,
                             capture::PcapWriter* capture, const std::function<void()>& flush_files,
                             Worker& main)
    : main_crossing_(main.waker(), main.engine_host(), take_receives_of(main)) {
  const auto count = static_cast<uint32_t>(fabric.devices.size());
  Inboxes inboxes{.connections = &main_crossing_.inbox()};
  for (uint32_t i = 0; i < count; ++i) {
    fabric.shard = {.of = engine::Shard::Of::kDevice, .device = {i}, .devices = count};
    auto thread = std::make_unique<Thread>(fabric, clock, capture, ClientIds{i + 1, count},
                                           Worker::Files{.flush = flush_files});
    inboxes.devices.push_back(&thread->crossing.inbox());
    threads_.push_back(std::move(thread));
  }
  for (const auto& thread : threads_) thread->crossing.connect(inboxes);
  main_crossing_.connect(inboxes);
  main.connect(main_crossing_);
  main.engine_host().connect(main_crossing_);
}

DeviceThreads::Thread::Thread(const engine::FabricConfig& fabric, const Clock& clock,
                              capture::PcapWriter* capture, ClientIds ids, Worker::Files files)
    : worker(fabric, clock, capture, ids, {}, std::move(files)),
      crossing(worker.waker(), worker.engine_host(), take_receives_of(worker)) {
  worker.connect(crossing);
  worker.engine_host().connect(crossing);
}

DeviceThreads::~DeviceThreads() {
  stop();
}

void DeviceThreads::stop() {
  stopping_ = true;
  for (const auto& thread : threads_) {
    thread->worker.waker().wake();
    if (thread->thread.joinable()) thread->thread.join();
  }
}

void DeviceThreads::start(bool busy_poll) {
  for (const auto& thread : threads_) {
    thread->thread = std::thread(
        [this, busy_poll, &worker = thread->worker] { worker.run(stopping_, busy_poll); });
  }
}

bool DeviceThreads::is_idle() const {
  return main_crossing_.is_idle() && std::ranges::all_of(threads_, [](const auto& thread) {
           return thread->crossing.is_idle();
         });
}

DeviceThreads::Pause::Pause(DeviceThreads& threads) : threads_(threads) {
  if (threads_.pauses_++ > 0) return;
  for (const auto& thread : threads_.threads_) {
    thread->worker.parking().ask();
    thread->worker.waker().wake();
  }
  for (const auto& thread : threads_.threads_) thread->worker.parking().wait_until_parked();
}

DeviceThreads::Pause::~Pause() {
  if (--threads_.pauses_ > 0) return;
  for (const auto& thread : threads_.threads_) thread->worker.parking().release();
}

}  // namespace rocemu::daemon
