// vipl_pingpong: options.cc and --help describe what it does.
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>

#include "vipl/pingpong/side.h"

namespace rocemu::vipl::pingpong {
namespace {

/// Calls VipRecvDone or VipRecvWait until all messages have arrived. The client begins, and each
/// side replies.
void exchange(Side& side, const Options& options) {
  if (!side.is_server()) side.send();
  for (unsigned i = 0; i < options.iterations; ++i) {
    VIP_DESCRIPTOR* done = nullptr;
    VIP_RETURN result = VIP_NOT_DONE;
    if (options.mode == Mode::kPoll) {
      while (result == VIP_NOT_DONE) result = VipRecvDone(side.vi(), &done);
    } else {
      result = VipRecvWait(side.vi(), VIP_INFINITE, &done);
    }
    side.check_received(result, done);
    side.reap_send();
    if (side.is_server() || i + 1 < options.iterations) side.send();
    side.post_receive(i);  // another one is posted already
  }
  side.reap_send();
}

/// Exchanges messages with a handler that registers itself again for each message.
class Notified {
 public:
  Notified(Side& side, const Options& options) : side_(side), options_(options) {}

  void run() {
    check(VipCQNotify(side_.cq(), this, &Notified::handle), "VipCQNotify");
    if (!side_.is_server()) side_.send();
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return over_; });
  }

 private:
  static void handle(VIP_PVOID context, VIP_NIC_HANDLE, VIP_VI_HANDLE vi, VIP_BOOLEAN) {
    static_cast<Notified*>(context)->on_message(vi);
  }

  void on_message(VIP_VI_HANDLE vi) {
    VIP_DESCRIPTOR* done = nullptr;
    const VIP_RETURN result = VipRecvDone(vi, &done);
    side_.check_received(result, done);
    side_.reap_send();
    const bool last = received_ + 1 == options_.iterations;
    if (side_.is_server() || !last) side_.send();
    side_.post_receive(received_++);  // another one is posted already
    if (!last) {
      check(VipCQNotify(side_.cq(), this, &Notified::handle), "VipCQNotify");
      return;
    }
    side_.reap_send();
    const std::scoped_lock lock(mutex_);
    over_ = true;
    changed_.notify_all();
  }

  Side& side_;
  const Options& options_;
  unsigned received_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
};

void report(const Options& options, double seconds) {
  const double bytes = 2.0 * options.size * options.iterations;
  std::printf("%.0f bytes in %.2f seconds = %.2f Mbit/sec\n", bytes, seconds,
              bytes * 8 / 1e6 / seconds);
  std::printf("%u iters in %.2f seconds = %.2f usec/iter\n", options.iterations, seconds,
              seconds * 1e6 / options.iterations);
}

int run(const Options& options) {
  Side side(options);
  side.connect();
  const auto begin = std::chrono::steady_clock::now();
  if (options.mode == Mode::kNotify) {
    Notified(side, options).run();
  } else {
    exchange(side, options);
  }
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
  side.disconnect();
  report(options, elapsed.count());
  return 0;
}

}  // namespace
}  // namespace rocemu::vipl::pingpong

int main(int argc, char** argv) {
  return rocemu::vipl::pingpong::run(rocemu::vipl::pingpong::read_options(argc, argv));
}
