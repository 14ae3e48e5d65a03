// Creates as many objects of each kind as ibv_query_device(3) allows, in one process and by the
// public API, and prints the resources that they need:
//   object_limits [PART]
// creates all objects or, so that a test is short, only one PART-th of each number. It fails if the
// device allows fewer or more objects than it says, if each object needs a mapping, if another
// process cannot work in the meantime, or if the daemon keeps the memory after the objects are
// destroyed.
//   object_limits exhaust
// takes memory and file descriptors away from the daemon and then creates objects until the daemon
// has none left. It fails if any call fails except the one for which no resources are left, or if
// another process is affected.
//   object_limits hold PART
// creates the objects, writes a byte, and keeps them until no process reads its output any more.
//
// Run it under `rocemu run --private`. docs/limits.md has the output.
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void fail(const std::string& what) {
  std::fflush(stdout);
  std::fprintf(stderr, "object_limits: %s\n", what.c_str());
  std::_Exit(1);
}

template <class T>
T* need(T* made, const char* what) {
  if (made == nullptr) fail(std::string(what) + ": " + std::strerror(errno));
  return made;
}

void expect_success(int error, const char* what) {
  if (error != 0) fail(std::string(what) + ": " + std::strerror(error));
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

ibv_context* open_device() {
  ibv_device** list = need(ibv_get_device_list(nullptr), "ibv_get_device_list");
  ibv_context* context = need(ibv_open_device(need(list[0], "a device")), "ibv_open_device");
  ibv_free_device_list(list);
  return context;
}

/// Returns the process at the other end of the context's connection, which is the daemon.
pid_t daemon_of(const ibv_context* context) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (getsockopt(context->cmd_fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    fail("the daemon's pid is not known");
  }
  return peer.pid;
}

struct Memory {
  uint64_t rss = 0, pss = 0;  // bytes
};

Memory memory_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/smaps_rollup");
  Memory memory;
  std::string word;
  uint64_t kilobytes = 0;
  while (file >> word) {
    if (word == "Rss:" && file >> kilobytes) memory.rss = kilobytes * 1024;
    if (word == "Pss:" && file >> kilobytes) memory.pss = kilobytes * 1024;
  }
  if (memory.rss == 0) fail("the memory of process " + std::to_string(pid) + " is not known");
  return memory;
}

/// Returns the bytes of address space and of memory. The kernel's counts may be wrong by some
/// pages.
std::pair<uint64_t, uint64_t> sizes_of(pid_t pid) {
  uint64_t size = 0, resident = 0;
  std::ifstream("/proc/" + std::to_string(pid) + "/statm") >> size >> resident;
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return {size * page, resident * page};
}

size_t mappings_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/maps");
  return static_cast<size_t>(
      std::count(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>(), '\n'));
}

double mib(uint64_t bytes) {
  return static_cast<double>(bytes) / (1 << 20);
}
double mib_more(uint64_t bytes, uint64_t than) {
  return bytes > than ? mib(bytes - than) : 0;
}

// ---- The objects ----------------------------------------------------------------------------

/// Objects that other objects need, with small sizes, as in a program that has many.
struct Parts {
  explicit Parts(ibv_context* opened) : context(opened) {
    pd = need(ibv_alloc_pd(context), "ibv_alloc_pd");
    cq = need(ibv_create_cq(context, 16, nullptr, nullptr, 0), "ibv_create_cq");
    if (ibv_query_gid(context, 1, 0, &gid) != 0) fail("ibv_query_gid");
  }
  ~Parts() {
    ibv_destroy_cq(cq);
    ibv_dealloc_pd(pd);
  }
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  ibv_context* context;
  ibv_pd* pd;
  ibv_cq* cq;
  ibv_gid gid{};
  alignas(4096) char buffer[4096] = {};
};

struct Kind {
  const char* name;
  int ibv_device_attr::*limit;
  uint32_t already;  // the number of such objects that Parts has already
  std::function<void*(Parts&)> make;
  std::function<int(void*)> destroy;
};

void* make_qp(Parts& parts) {
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = parts.cq;
  init.qp_type = IBV_QPT_RC;
  init.cap = {.max_send_wr = 16,
              .max_recv_wr = 16,
              .max_send_sge = 1,
              .max_recv_sge = 1,
              .max_inline_data = 0};
  return ibv_create_qp(parts.pd, &init);
}

void* make_srq(Parts& parts) {
  ibv_srq_init_attr init{};
  init.attr = {.max_wr = 16, .max_sge = 1, .srq_limit = 0};
  return ibv_create_srq(parts.pd, &init);
}

void* make_ah(Parts& parts) {
  ibv_ah_attr attr{};
  attr.is_global = 1;
  attr.grh.dgid = parts.gid;
  attr.grh.hop_limit = 64;
  attr.port_num = 1;
  return ibv_create_ah(parts.pd, &attr);
}

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all = {
      {"pd", &ibv_device_attr::max_pd, 1, [](Parts& parts) { return ibv_alloc_pd(parts.context); },
       [](void* pd) { return ibv_dealloc_pd(static_cast<ibv_pd*>(pd)); }},
      {"ah", &ibv_device_attr::max_ah, 0, make_ah,
       [](void* ah) { return ibv_destroy_ah(static_cast<ibv_ah*>(ah)); }},
      {"mr", &ibv_device_attr::max_mr, 0,
       [](Parts& parts) {
         return ibv_reg_mr(parts.pd, parts.buffer, sizeof parts.buffer, IBV_ACCESS_LOCAL_WRITE);
       },
       [](void* mr) { return ibv_dereg_mr(static_cast<ibv_mr*>(mr)); }},
      {"mw", &ibv_device_attr::max_mw, 0,
       [](Parts& parts) { return ibv_alloc_mw(parts.pd, IBV_MW_TYPE_1); },
       [](void* mw) { return ibv_dealloc_mw(static_cast<ibv_mw*>(mw)); }},
      {"cq", &ibv_device_attr::max_cq, 1,
       [](Parts& parts) { return ibv_create_cq(parts.context, 16, nullptr, nullptr, 0); },
       [](void* cq) { return ibv_destroy_cq(static_cast<ibv_cq*>(cq)); }},
      {"srq", &ibv_device_attr::max_srq, 0, make_srq,
       [](void* srq) { return ibv_destroy_srq(static_cast<ibv_srq*>(srq)); }},
      {"qp", &ibv_device_attr::max_qp, 0, make_qp,
       [](void* qp) { return ibv_destroy_qp(static_cast<ibv_qp*>(qp)); }},
  };
  return all;
}

uint32_t count_of(const Kind& kind, const ibv_device_attr& attr, uint32_t part) {
  return static_cast<uint32_t>(attr.*kind.limit) / part - kind.already;
}

void make_all(const Kind& kind, Parts& parts, uint32_t count, std::vector<void*>& made) {
  made.reserve(count);
  for (uint32_t i = 0; i < count; ++i) {
    void* object = kind.make(parts);
    if (object == nullptr) {
      fail(std::string(kind.name) + " " + std::to_string(i + 1) + " of " + std::to_string(count) +
           ": " + std::strerror(errno));
    }
    made.push_back(object);
  }
}

// ---- The neighbor --------------------------------------------------------------------------

/// Another process with the device. It sends messages to itself and, unless it must do only that,
/// creates objects all the time.
class Neighbor {
 public:
  explicit Neighbor(bool only_sends = false) {
    int in[2], out[2];
    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) fail("pipe2");
    pid_ = fork();
    if (pid_ < 0) fail("fork");
    if (pid_ == 0) {
      dup2(in[0], STDIN_FILENO);
      dup2(out[1], STDOUT_FILENO);
      execl("/proc/self/exe", "object_limits", only_sends ? "sender" : "neighbor", nullptr);
      _exit(127);
    }
    close(in[0]);
    close(out[1]);
    in_ = in[1];
    out_ = out[0];
    longest_pause();  // once it works
  }
  ~Neighbor() {
    close(in_);
    close(out_);
    int status = 0;
    waitpid(pid_, &status, 0);
    if (status != 0) fail("the neighbor failed");
  }
  Neighbor(const Neighbor&) = delete;
  Neighbor& operator=(const Neighbor&) = delete;

  /// Returns the longest time, in seconds, that a message and a CQ together took since the last
  /// call.
  double longest_pause() {
    double seconds = 0;
    if (write(in_, "?", 1) != 1 || read(out_, &seconds, sizeof seconds) != sizeof seconds) {
      fail("the neighbor is gone");
    }
    return seconds;
  }

 private:
  pid_t pid_;
  int in_, out_;
};

void connect_to_itself(ibv_qp* qp, const ibv_gid& gid) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  expect_success(
      ibv_modify_qp(qp, &attr,
                    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
      "to INIT");
  attr = {};
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = IBV_MTU_1024;
  attr.dest_qp_num = qp->qp_num;
  attr.max_dest_rd_atomic = 1;
  attr.min_rnr_timer = 12;
  attr.ah_attr.is_global = 1;
  attr.ah_attr.grh.dgid = gid;
  attr.ah_attr.grh.hop_limit = 64;
  attr.ah_attr.port_num = 1;
  expect_success(
      ibv_modify_qp(qp, &attr,
                    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                        IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
      "to RTR");
  attr = {};
  attr.qp_state = IBV_QPS_RTS;
  attr.timeout = 18;
  attr.retry_cnt = 7;
  attr.rnr_retry = 7;
  attr.max_rd_atomic = 1;
  expect_success(ibv_modify_qp(qp, &attr,
                               IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                   IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
                 "to RTS");
}

void send_to_itself(ibv_qp* qp, ibv_cq* cq, ibv_sge sge) {
  ibv_recv_wr recv{};
  recv.sg_list = &sge;
  recv.num_sge = 1;
  ibv_recv_wr* bad_recv;
  expect_success(ibv_post_recv(qp, &recv, &bad_recv), "ibv_post_recv");
  ibv_send_wr send{};
  send.sg_list = &sge;
  send.num_sge = 1;
  send.opcode = IBV_WR_SEND;
  send.send_flags = IBV_SEND_SIGNALED;
  ibv_send_wr* bad_send;
  expect_success(ibv_post_send(qp, &send, &bad_send), "ibv_post_send");
  for (int done = 0; done < 2;) {
    ibv_wc wc;
    const int polled = ibv_poll_cq(cq, 1, &wc);
    if (polled < 0) fail("a neighbor cannot poll");
    if (polled == 1 && wc.status != IBV_WC_SUCCESS) {
      fail(std::string("a neighbor's message: ") + ibv_wc_status_str(wc.status));
    }
    done += polled;
  }
}

int be_neighbor(bool only_sends) {
  Parts parts(open_device());
  ibv_mr* mr = need(ibv_reg_mr(parts.pd, parts.buffer, sizeof parts.buffer, IBV_ACCESS_LOCAL_WRITE),
                    "a region");
  auto* qp = static_cast<ibv_qp*>(need(make_qp(parts), "a QP"));
  connect_to_itself(qp, parts.gid);
  const ibv_sge sge{reinterpret_cast<uint64_t>(parts.buffer), 64, mr->lkey};
  double longest = 0;
  for (;;) {
    const auto start = Clock::now();
    send_to_itself(qp, parts.cq, sge);
    for (const Kind& kind : kinds()) {
      if (only_sends) break;
      expect_success(kind.destroy(need(kind.make(parts), kind.name)), kind.name);
    }
    longest = std::max(longest, seconds_since(start));
    pollfd asked{STDIN_FILENO, POLLIN, 0};
    if (poll(&asked, 1, 1) == 0) continue;
    char byte;
    if (read(STDIN_FILENO, &byte, 1) != 1) return 0;
    if (write(STDOUT_FILENO, &longest, sizeof longest) != sizeof longest) return 0;
    longest = 0;
  }
}

// ---- All kinds at once ----------------------------------------------------------------------

/// Creates all objects of every kind, writes a byte, and waits until the process that reads the
/// byte has ended.
int hold_all(uint32_t part) {
  ibv_context* context = open_device();
  Parts parts(context);
  ibv_device_attr attr{};
  expect_success(ibv_query_device(context, &attr), "ibv_query_device");
  for (const Kind& kind : kinds()) {
    std::vector<void*> made;
    make_all(kind, parts, count_of(kind, attr, part), made);
  }
  const char done = '.';
  if (write(STDOUT_FILENO, &done, 1) != 1) return 1;
  pollfd reader{STDOUT_FILENO, 0, 0};  // poll(2) reports POLLERR even if no event is requested
  poll(&reader, 1, -1);
  return 0;
}

/// Starts a process that keeps objects until `told` is closed.
pid_t start_holder(uint32_t part, int& told) {
  int out[2];
  if (pipe2(out, O_CLOEXEC) != 0) fail("pipe2");
  const pid_t pid = fork();
  if (pid < 0) fail("fork");
  if (pid == 0) {
    dup2(out[1], STDOUT_FILENO);
    execl("/proc/self/exe", "object_limits", "hold", std::to_string(part).c_str(), nullptr);
    _exit(127);
  }
  close(out[1]);
  char done;
  if (read(out[0], &done, 1) != 1) fail("all kinds at once cannot be had");
  told = out[0];
  return pid;
}

// ---- Output ------------------------------------------------------------------------------------

/// Waits until the daemon's memory is at most a few pages more than `start`, and returns its size.
/// There is no event to wait for: the daemon frees memory when it has no other work.
Memory memory_given_back(pid_t daemon, uint64_t start, uint64_t most) {
  constexpr uint64_t kFewPages = 2 << 20;
  const auto began = Clock::now();
  for (;;) {
    // The cheap check comes first, because reading smaps_rollup delays the daemon.
    if (sizes_of(daemon).second <= start + kFewPages) {
      if (const Memory now = memory_of(daemon); now.rss <= start + kFewPages) return now;
    }
    if (seconds_since(began) > 60) {
      fail("the daemon keeps " + std::to_string(mib_more(sizes_of(daemon).second, start)) +
           " MiB of " + std::to_string(mib_more(most, start)));
    }
    poll(nullptr, 0, 20);
  }
}

int run(uint32_t part) {
  Neighbor neighbor;
  ibv_context* context = open_device();
  const pid_t daemon = daemon_of(context);
  ibv_device_attr attr{};
  expect_success(ibv_query_device(context, &attr), "ibv_query_device");
  Parts parts(context);
  const Memory beginning = memory_of(daemon);
  std::printf(
      "| kind | limit | made | s | us each | destroyed, s | program, MiB | daemon, MiB | "
      "longest pause of a neighbor, ms |\n|---|---|---|---|---|---|---|---|---|\n");
  for (const Kind& kind : kinds()) {
    const uint32_t count = count_of(kind, attr, part);
    std::vector<void*> made;
    const Memory daemon_before = memory_of(daemon), own_before = memory_of(getpid());
    const size_t daemon_mappings = mappings_of(daemon), own_mappings = mappings_of(getpid());
    neighbor.longest_pause();
    auto start = Clock::now();
    make_all(kind, parts, count, made);
    const double making = seconds_since(start);
    double pause = neighbor.longest_pause();
    const Memory daemon_after = memory_of(daemon), own_after = memory_of(getpid());
    constexpr size_t kFew = 64;
    if (mappings_of(daemon) > daemon_mappings + kFew ||
        mappings_of(getpid()) > own_mappings + kFew) {
      fail(std::string(kind.name) + ": too many mappings");
    }
    if (part == 1) {
      errno = 0;
      if (kind.make(parts) != nullptr) fail(std::string(kind.name) + ": one more than the limit");
      if (errno != ENOMEM) fail(std::string(kind.name) + ": not ENOMEM beyond the limit");
    }
    neighbor.longest_pause();
    start = Clock::now();
    for (void* object : made) expect_success(kind.destroy(object), kind.name);
    const double destroying = seconds_since(start);
    pause = std::max(pause, neighbor.longest_pause());
    std::printf("| %s | %d | %u | %.2f | %.1f | %.2f | %.0f | %.0f | %.0f |\n", kind.name,
                attr.*kind.limit, count + kind.already, making, making / count * 1e6, destroying,
                mib_more(own_after.rss, own_before.rss),
                mib_more(daemon_after.rss, daemon_before.rss), pause * 1e3);
    std::fflush(stdout);
    memory_given_back(daemon, daemon_before.rss, daemon_after.rss);
  }

  neighbor.longest_pause();
  auto start = Clock::now();
  int told = -1;
  const pid_t holder = start_holder(part, told);
  const double making = seconds_since(start);
  double pause = neighbor.longest_pause();
  const Memory own = memory_of(holder), most = memory_of(daemon);
  neighbor.longest_pause();
  start = Clock::now();
  kill(holder, SIGKILL);
  waitpid(holder, nullptr, 0);
  close(told);
  const Memory end = memory_given_back(daemon, beginning.rss, most.rss);
  const double leaving = seconds_since(start);
  pause = std::max(pause, neighbor.longest_pause());
  std::printf("| all, killed | | | %.2f | | %.2f | %.0f | %.0f | %.0f |\n\n", making, leaving,
              mib(own.rss), mib_more(most.rss, beginning.rss), pause * 1e3);
  std::printf(
      "daemon's memory, RSS (PSS) in MiB: %.1f (%.1f) at the start, %.1f (%.1f) with all, "
      "%.1f (%.1f) at the end\n",
      mib(beginning.rss), mib(beginning.pss), mib(most.rss), mib(most.pss), mib(end.rss),
      mib(end.pss));
  return 0;
}

// ---- A daemon with few resources ---------------------------------------------------------------

uint64_t descriptors_of(pid_t pid) {
  const std::filesystem::directory_iterator files("/proc/" + std::to_string(pid) + "/fd");
  return static_cast<uint64_t>(std::distance(begin(files), end(files)));
}

/// Limits a resource of the daemon while this object exists.
class Shortage {
 public:
  Shortage(pid_t daemon, __rlimit_resource resource, uint64_t most)
      : daemon_(daemon), resource_(resource) {
    if (prlimit(daemon_, resource_, nullptr, &before_) != 0) fail("prlimit");
    const rlimit less{.rlim_cur = most, .rlim_max = before_.rlim_max};
    if (prlimit(daemon_, resource_, &less, nullptr) != 0) fail("prlimit");
  }
  ~Shortage() { prlimit(daemon_, resource_, &before_, nullptr); }
  Shortage(const Shortage&) = delete;
  Shortage& operator=(const Shortage&) = delete;

 private:
  pid_t daemon_;
  __rlimit_resource resource_;
  rlimit before_{};
};

void make_until_error(const char* name, int expected, const std::function<void*()>& make,
                      const std::function<int(void*)>& destroy,
                      const std::function<void()>& meanwhile) {
  std::vector<void*> made;
  errno = 0;
  while (void* object = make()) made.push_back(object);
  std::printf("%s: %zu, then %s\n", name, made.size(), std::strerror(errno));
  std::fflush(stdout);
  if (errno != expected) fail(std::string(name) + ": another error was expected");
  meanwhile();
  for (void* object : made) expect_success(destroy(object), name);
}

int exhaust() {
  ibv_context* context = open_device();
  const pid_t daemon = daemon_of(context);
  Parts parts(context);
  Neighbor sender(true);
  for (const Kind& kind : kinds()) {
    // protection domains need almost no memory
    if (kind.limit == &ibv_device_attr::max_pd) continue;
    const uint64_t some = 1 << 20;
    std::optional<Shortage> shortage(std::in_place, daemon, RLIMIT_AS,
                                     sizes_of(daemon).first + some);
    make_until_error(
        kind.name, ENOMEM, [&] { return kind.make(parts); }, kind.destroy,
        [&] { sender.longest_pause(); });
    shortage.reset();
    expect_success(kind.destroy(need(kind.make(parts), kind.name)), kind.name);
  }
  Neighbor neighbor;
  {
    const Shortage shortage(daemon, RLIMIT_NOFILE, descriptors_of(daemon) + 200);
    make_until_error(
        "comp_channel", EMFILE, [&] { return ibv_create_comp_channel(context); },
        [](void* channel) {
          return ibv_destroy_comp_channel(static_cast<ibv_comp_channel*>(channel));
        },
        [&] {
          neighbor.longest_pause();
          Neighbor newcomer;
        });
  }
  need(ibv_create_comp_channel(context), "a completion channel");
  return 0;
}

uint32_t part_of(const char* text) {
  const unsigned long part = std::strtoul(text, nullptr, 10);
  if (part < 1 || part > 10000) fail(std::string("not a part: ") + text);
  return static_cast<uint32_t>(part);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "neighbor") == 0) return be_neighbor(false);
  if (argc == 2 && std::strcmp(argv[1], "sender") == 0) return be_neighbor(true);
  if (argc == 2 && std::strcmp(argv[1], "exhaust") == 0) return exhaust();
  if (argc == 3 && std::strcmp(argv[1], "hold") == 0) return hold_all(part_of(argv[2]));
  if (argc > 2) fail("usage: object_limits [PART] | exhaust");
  return run(argc == 2 ? part_of(argv[1]) : 1);
}
