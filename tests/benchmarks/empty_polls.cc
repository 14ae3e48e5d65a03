// Measures the cost of polls that find nothing.
//   empty_polls one|several|extended THREADS
// polls one CQ, four CQs in turn, or one extended CQ, in windows of a thousand polls, while THREADS
// threads compute. Prints the nanoseconds of a poll.
#include <infiniband/verbs.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kWindow = 1'000;
constexpr size_t kMostWindows = 3'000;
constexpr std::chrono::seconds kTime{5};  // the longest time

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

class Queues {
 public:
  explicit Queues(const std::string& how) {
    ibv_device** devices = ibv_get_device_list(nullptr);
    if (devices == nullptr || devices[0] == nullptr) fail("no device");
    ibv_context* context = ibv_open_device(devices[0]);
    if (context == nullptr) fail("ibv_open_device");
    if (how == "extended") {
      ibv_cq_init_attr_ex attributes{};
      attributes.cqe = 1;
      extended_ = ibv_create_cq_ex(context, &attributes);
      if (extended_ == nullptr) fail("ibv_create_cq_ex");
      return;
    }
    cqs_.resize(how == "several" ? 4 : 1);
    for (ibv_cq*& cq : cqs_) cq = ibv_create_cq(context, 1, nullptr, nullptr, 0);
    if (std::count(cqs_.begin(), cqs_.end(), nullptr) != 0) fail("ibv_create_cq");
  }

  void poll(size_t number) {
    ibv_wc wc;
    ibv_poll_cq_attr attributes{};
    if (extended_ != nullptr) {
      if (ibv_start_poll(extended_, &attributes) != ENOENT) fail("ibv_start_poll");
    } else if (ibv_poll_cq(cqs_[number % cqs_.size()], 1, &wc) != 0) {
      fail("ibv_poll_cq");
    }
  }

 private:
  std::vector<ibv_cq*> cqs_;
  ibv_cq_ex* extended_ = nullptr;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: empty_polls one|several|extended THREADS\n");
    return 2;
  }
  Queues queues(argv[1]);
  for (int left = std::atoi(argv[2]); left > 0; --left) {
    std::thread([] {
      for (volatile unsigned number = 0;;) number = number + 1;
    }).detach();
  }
  std::vector<double> windows;
  for (const auto begin = Clock::now();
       windows.size() < kMostWindows && Clock::now() - begin < kTime;) {
    const auto before = Clock::now();
    for (size_t i = 0; i < kWindow; ++i) queues.poll(i);
    const std::chrono::duration<double, std::nano> took = Clock::now() - before;
    windows.push_back(took.count() / kWindow);
  }
  std::sort(windows.begin(), windows.end());
  const auto count = static_cast<double>(windows.size());
  const auto at = [&](double part) { return windows[static_cast<size_t>((count - 1) * part)]; };
  std::printf("an empty poll: %.0f ns on average, %.0f typical, %.0f 99%%, %.0f at most\n",
              std::accumulate(windows.begin(), windows.end(), 0.0) / count, at(0.5), at(0.99),
              at(1));
  std::fflush(stdout);
  std::_Exit(0);  // runs no destructors, since other threads still compute
}
