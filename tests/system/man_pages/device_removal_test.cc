// Tests the removal of a device while a program waits for its completions: ibv_get_cq_event(3) and
// ibv_create_comp_channel(3). After Linux's uverbs removed a device, read(2) of its completion
// channels fails with EIO, and poll(2) returns POLLERR.
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>

#include "tests/system/verbs_fixture.h"

namespace rocemu::system_test {
namespace {

/// Sends a request to the control socket (docs/control.md) of the test's NIC.
void remove_device(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = std::string(std::getenv("ROCEMU_DIR")) + "/control";
  ASSERT_LT(path.size(), sizeof address.sun_path);
  std::memcpy(address.sun_path, path.data(), path.size());
  const int control = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(connect(control, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  const std::string request =
      R"({"command": "set", "device": ")" + name + R"(", "removed": true})" + "\n";
  ASSERT_EQ(send(control, request.data(), request.size(), 0), static_cast<ssize_t>(request.size()));
  std::string answer;
  char next = 0;
  while (next != '\n' && recv(control, &next, 1, 0) == 1) answer += next;
  EXPECT_NE(answer.find("true"), std::string::npos) << answer;
  close(control);
}

/// Returns the errno of ibv_get_cq_event(), or 0.
int get_event(ibv_comp_channel* channel) {
  ibv_cq* cq = nullptr;
  void* cq_context = nullptr;
  errno = 0;
  return ibv_get_cq_event(channel, &cq, &cq_context) == 0 ? 0 : errno;
}

int poll_events(int fd, short events) {
  pollfd entry{fd, events, 0};
  return poll(&entry, 1, 0) >= 0 ? entry.revents : -1;
}

/// Returns the first IPv4 address of the device.
sockaddr_in ip_address(ibv_context* context) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  for (int index = 0;; ++index) {
    ibv_gid gid;
    if (ibv_query_gid(context, 1, index, &gid) != 0) break;
    if (!IN6_IS_ADDR_V4MAPPED(reinterpret_cast<const in6_addr*>(gid.raw))) continue;
    std::memcpy(&address.sin_addr, gid.raw + 12, sizeof address.sin_addr);
    return address;
  }
  ADD_FAILURE() << "the device has no IPv4 address";
  return address;
}

/// Waits until the thread sleeps in the kernel.
void await_sleep(pid_t thread) {
  const std::string path = "/proc/self/task/" + std::to_string(thread) + "/stat";
  for (;;) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    char text[256] = {};
    const bool sleeps = read(file, text, sizeof text - 1) > 0 && strstr(text, ") S ") != nullptr;
    close(file);
    if (sleeps) return;
    std::this_thread::yield();
  }
}

class DeviceRemoval : public ConnectedTest {
 protected:
  static void SetUpTestSuite() {
    // With this variable, the objects of a removed device can be destroyed (ibv_open_device(3)), so
    // that none are left.
    setenv("RDMAV_ALLOW_DISASSOC_DESTROY", "1", 1);
  }

  void remove() { remove_device(ibv_get_device_name(context->device)); }

  /// A thread that waits for an event. When the constructor returns, the thread sleeps.
  struct Waiter {
    std::thread thread;
    int error = -1;
  };
  void start(Waiter& waiter) {
    std::atomic<pid_t> id{0};
    waiter.thread = std::thread([&waiter, &id, this] {
      id = gettid();
      waiter.error = get_event(channel.get());
    });
    while (id == 0) std::this_thread::yield();
    await_sleep(id);
  }
};

// "returns 0 on success, and -1 if the request fails": errno is that of a read(2) of the channel.
TEST_F(DeviceRemoval, AGetThatWaitsForAnEventFailsWithEio) {
  Waiter waiter;
  start(waiter);
  remove();
  waiter.thread.join();
  EXPECT_EQ(waiter.error, EIO);
  EXPECT_EQ(get_event(channel.get()), EIO) << "and so does the next";
}

TEST_F(DeviceRemoval, EveryThreadThatWaitsFailsAndTheChannelStaysInError) {
  std::array<Waiter, 4> waiters;
  for (Waiter& waiter : waiters) start(waiter);
  std::atomic<pid_t> id{0};
  int found = 0;
  std::thread poller([&] {
    id = gettid();
    pollfd entry{channel->fd, POLLIN, 0};
    if (poll(&entry, 1, 30'000) == 1) found = entry.revents;
  });
  while (id == 0) std::this_thread::yield();
  await_sleep(id);
  remove();
  for (Waiter& waiter : waiters) waiter.thread.join();
  poller.join();
  for (const Waiter& waiter : waiters) EXPECT_EQ(waiter.error, EIO);
  EXPECT_NE(found & POLLERR, 0) << found;
  EXPECT_NE(poll_events(channel->fd, POLLIN) & POLLERR, 0);
}

TEST_F(DeviceRemoval, PollAndEpollReportAnErrorOfTheChannel) {
  std::array<int, 2> epolls{};
  const std::array<uint32_t, 2> modes{uint32_t{0}, uint32_t{EPOLLET}};
  for (size_t i = 0; i < epolls.size(); ++i) {
    epolls[i] = epoll_create1(EPOLL_CLOEXEC);
    epoll_event interest{};
    interest.events = EPOLLIN | modes[i];
    ASSERT_EQ(epoll_ctl(epolls[i], EPOLL_CTL_ADD, channel->fd, &interest), 0);
  }
  EXPECT_EQ(poll_events(channel->fd, POLLIN | POLLOUT), 0);
  remove();
  for (const int epoll : epolls) {
    epoll_event ready{};
    EXPECT_EQ(epoll_wait(epoll, &ready, 1, 30'000), 1);
    EXPECT_NE(ready.events & EPOLLERR, 0u) << ready.events;
    close(epoll);
  }
  EXPECT_NE(poll_events(channel->fd, POLLIN) & POLLERR, 0);
  EXPECT_NE(poll_events(channel->fd, 0) & POLLERR, 0);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(get_event(channel.get()), EIO);
    EXPECT_NE(poll_events(channel->fd, POLLIN) & POLLERR, 0) << "after " << i << " reads";
  }
}

TEST_F(DeviceRemoval, ANonblockingChannelFailsWithEioToo) {
  ASSERT_EQ(fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK), 0);
  EXPECT_EQ(get_event(channel.get()), EAGAIN);
  remove();
  EXPECT_EQ(get_event(channel.get()), EIO);
}

// As on Linux, the device's unread completion events disappear with its CQs.
TEST_F(DeviceRemoval, UnreadCompletionEventsDisappear) {
  ASSERT_EQ(ibv_req_notify_cq(cq.get(), 0), 0);
  deliver_message(1);
  ASSERT_TRUE(readable(channel->fd, 30'000));
  remove();
  EXPECT_EQ(get_event(channel.get()), EIO);
  EXPECT_EQ(get_event(channel.get()), EIO);
}

// The asynchronous event of the removal can still be read. The file of asynchronous events reports
// no error, even after that.
TEST_F(DeviceRemoval, TheAsyncEventIsReadWhenTheChannelFails) {
  remove();
  EXPECT_EQ(take_async_event().event_type, IBV_EVENT_DEVICE_FATAL);
  EXPECT_EQ(poll_events(context->async_fd, POLLIN | POLLOUT), 0);
}

TEST_F(DeviceRemoval, NoChannelCanBeCreated) {
  remove();
  errno = 0;
  EXPECT_EQ(ibv_create_comp_channel(context.get()), nullptr);
  EXPECT_EQ(errno, EIO);
}

TEST_F(DeviceRemoval, TheChannelsOfOtherDevicesGoOn) {
  const ContextPtr other = open_device(1);
  ASSERT_NE(other, nullptr);
  const ChannelPtr theirs(ibv_create_comp_channel(other.get()));
  ASSERT_NE(theirs, nullptr);
  remove();
  EXPECT_EQ(get_event(channel.get()), EIO);
  EXPECT_EQ(poll_events(theirs->fd, POLLIN | POLLOUT), 0);
  const ChannelPtr another(ibv_create_comp_channel(other.get()));
  EXPECT_NE(another, nullptr);
}

/// While this object exists, destroying an object of a removed device fails, which is the default.
class FailingDestruction {
 public:
  FailingDestruction() { unsetenv("RDMAV_ALLOW_DISASSOC_DESTROY"); }
  FailingDestruction(const FailingDestruction&) = delete;
  FailingDestruction& operator=(const FailingDestruction&) = delete;
  ~FailingDestruction() { setenv("RDMAV_ALLOW_DISASSOC_DESTROY", "1", 1); }
};

// Linux does not pass the command to the object, so the result does not depend on whether the
// object is in use.
TEST_F(DeviceRemoval, DestroyingFailsWithEioWhetherOrNotTheObjectIsInUse) {
  ibv_pd* const used_pd = ibv_alloc_pd(context.get());
  ibv_pd* const unused_pd = ibv_alloc_pd(context.get());
  ibv_alloc_dm_attr length{4096, 0, 0};
  ibv_dm* const dm = ibv_alloc_dm(context.get(), &length);
  ASSERT_NE(dm, nullptr);
  ibv_mr* const region =
      ibv_reg_dm_mr(used_pd, dm, 0, 4096, IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE);
  ASSERT_NE(region, nullptr);
  ibv_mw* const mw = ibv_alloc_mw(used_pd, IBV_MW_TYPE_1);
  ibv_cq* const used_cq = ibv_create_cq(context.get(), 16, nullptr, nullptr, 0);
  ibv_srq_init_attr srq_init{nullptr, {4, 1, 0}};
  ibv_srq* const srq = ibv_create_srq(used_pd, &srq_init);
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = used_cq;
  init.srq = srq;
  init.cap = {4, 0, 1, 0, 0};
  init.qp_type = IBV_QPT_RC;
  ibv_qp* const qp = ibv_create_qp(used_pd, &init);
  ASSERT_NE(qp, nullptr);
  EXPECT_EQ(ibv_dealloc_pd(used_pd), EBUSY);
  EXPECT_EQ(ibv_free_dm(dm), EBUSY);
  remove();
  {
    const FailingDestruction failing;
    EXPECT_EQ(ibv_dealloc_pd(used_pd), EIO);
    EXPECT_EQ(errno, EIO);
    EXPECT_EQ(ibv_dealloc_pd(unused_pd), EIO);
    EXPECT_EQ(ibv_free_dm(dm), EIO);
    EXPECT_EQ(ibv_destroy_cq(used_cq), EIO);
    EXPECT_EQ(ibv_destroy_srq(srq), EIO);
    EXPECT_EQ(ibv_destroy_qp(qp), EIO);
    EXPECT_EQ(ibv_dealloc_mw(mw), EIO);
    EXPECT_EQ(ibv_dereg_mr(region), EIO);
  }
  EXPECT_EQ(ibv_dealloc_pd(unused_pd), 0);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_destroy_srq(srq), 0);
  EXPECT_EQ(ibv_destroy_cq(used_cq), 0);
  EXPECT_EQ(ibv_dealloc_mw(mw), 0);
  EXPECT_EQ(ibv_dereg_mr(region), 0);
  EXPECT_EQ(ibv_free_dm(dm), 0);
  EXPECT_EQ(ibv_dealloc_pd(used_pd), 0);
}

// ibv_open_device(3): "relate an EIO from destroy commands as a success".
TEST_F(DeviceRemoval, AProtectionDomainInUseIsDestroyedWhereAnEioCountsAsSuccess) {
  ibv_pd* const domain = ibv_alloc_pd(context.get());
  ibv_parent_domain_init_attr attr{};
  attr.pd = domain;
  ibv_pd* const parent = ibv_alloc_parent_domain(context.get(), &attr);
  ASSERT_NE(parent, nullptr);
  ibv_mr* const region = ibv_reg_mr(parent, memory.data(), kSlot, 0);
  ASSERT_NE(region, nullptr);
  remove();
  EXPECT_EQ(ibv_dealloc_pd(domain), 0);
  EXPECT_EQ(ibv_dealloc_pd(parent), EBUSY) << "it is the program's only, and no device's";
  EXPECT_EQ(ibv_dereg_mr(region), 0);
  EXPECT_EQ(ibv_dealloc_pd(parent), 0);
}

TEST_F(DeviceRemoval, AnXrcDomainInUseIsDestroyedWhereAnEioCountsAsSuccess) {
  ibv_xrcd_init_attr attr{};
  attr.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
  attr.fd = -1;
  attr.oflags = O_CREAT;
  ibv_xrcd* const domain = ibv_open_xrcd(context.get(), &attr);
  ASSERT_NE(domain, nullptr);
  ibv_qp_init_attr_ex init{};
  init.qp_type = IBV_QPT_XRC_RECV;
  init.comp_mask = IBV_QP_INIT_ATTR_XRCD;
  init.xrcd = domain;
  ibv_qp* const target = ibv_create_qp_ex(context.get(), &init);
  ASSERT_NE(target, nullptr);
  EXPECT_EQ(ibv_close_xrcd(domain), EBUSY);
  remove();
  {
    const FailingDestruction failing;
    EXPECT_EQ(ibv_close_xrcd(domain), EIO);
  }
  EXPECT_EQ(ibv_close_xrcd(domain), 0);
  EXPECT_EQ(ibv_destroy_qp(target), 0);
}

// Linux's uverbs and rdma_ucm report an error only on completion channels. On other files, the
// events that exist can be read, and then no further ones arrive.
TEST_F(DeviceRemoval, PollReportsNoErrorOfAsynchronousEventsAndConnectionEvents) {
  rdma_event_channel* const events = rdma_create_event_channel();
  ASSERT_NE(events, nullptr);
  rdma_cm_id* id = nullptr;
  ASSERT_EQ(rdma_create_id(events, &id, nullptr, RDMA_PS_TCP), 0);
  sockaddr_in address = ip_address(context.get());
  ASSERT_EQ(rdma_bind_addr(id, reinterpret_cast<sockaddr*>(&address)), 0) << strerror(errno);
  constexpr short kAll = POLLIN | POLLPRI | POLLRDHUP;
  EXPECT_EQ(poll_events(events->fd, kAll), 0);
  remove();
  EXPECT_EQ(poll_events(context->async_fd, kAll), POLLIN);
  EXPECT_EQ(take_async_event().event_type, IBV_EVENT_DEVICE_FATAL);
  EXPECT_EQ(poll_events(context->async_fd, kAll), 0);
  EXPECT_EQ(poll_events(events->fd, kAll), POLLIN);
  rdma_cm_event* event = nullptr;
  ASSERT_EQ(rdma_get_cm_event(events, &event), 0);
  EXPECT_EQ(event->event, RDMA_CM_EVENT_DEVICE_REMOVAL);
  EXPECT_EQ(rdma_ack_cm_event(event), 0);
  EXPECT_EQ(poll_events(events->fd, kAll), 0);
  EXPECT_EQ(rdma_destroy_id(id), 0);
  rdma_destroy_event_channel(events);
}

// The child has the same open file of the channel as its parent.
TEST_F(DeviceRemoval, AChildThatWaitsFailsTogetherWithItsParent) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const char byte = 0;
    if (write(ready[1], &byte, 1) != 1) _exit(255);
    const int error = get_event(channel.get());
    _exit(error);
  }
  char byte;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  Waiter waiter;
  start(waiter);
  remove();
  waiter.thread.join();
  EXPECT_EQ(waiter.error, EIO);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), EIO);
  close(ready[0]);
  close(ready[1]);
}

// In a program, the shim's library replaces the read(2) with which ibv_get_cq_event(3) waits, so
// its replacement must behave like read(2). A signal whose handler was installed with SA_RESTART
// does not end the call. With other handlers, the call fails with EINTR.
TEST_F(DeviceRemoval, SignalsInterruptAGetAsTheyInterruptARead) {
  // The program has its own handler for SIGSEGV, as with a sanitizer.
  struct sigaction fault {
  }, fault_before{};
  fault.sa_handler = [](int) { _exit(1); };
  ASSERT_EQ(sigaction(SIGSEGV, &fault, &fault_before), 0);
  for (const int flags : {0, SA_RESTART}) {
    struct sigaction action {};
    action.sa_handler = [](int) {};
    action.sa_flags = flags;
    struct sigaction before {};
    ASSERT_EQ(sigaction(SIGUSR1, &action, &before), 0);
    Waiter waiter;
    start(waiter);
    pthread_kill(waiter.thread.native_handle(), SIGUSR1);
    if (flags == 0) {
      waiter.thread.join();
      EXPECT_EQ(waiter.error, EINTR);
    } else {
      ASSERT_EQ(ibv_req_notify_cq(cq.get(), 0), 0);
      deliver_message(1);
      waiter.thread.join();
      EXPECT_EQ(waiter.error, 0);
      ibv_ack_cq_events(cq.get(), 1);
    }
    sigaction(SIGUSR1, &before, nullptr);
  }
  sigaction(SIGSEGV, &fault_before, nullptr);
}

// Like read(2), ibv_get_cq_event(3) is a cancellation point.
TEST_F(DeviceRemoval, AThreadThatWaitsForAnEventCanBeCanceled) {
  Waiter waiter;
  start(waiter);
  ASSERT_EQ(pthread_cancel(waiter.thread.native_handle()), 0);
  waiter.thread.join();
  EXPECT_EQ(waiter.error, -1);
}

}  // namespace
}  // namespace rocemu::system_test
