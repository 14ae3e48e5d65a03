// Tests verbs in a child of fork(). A context belongs to the process that opened it: in a child,
// the queues and doorbells are not mapped, and registered memory is the parent's
// (ibv_fork_init(3)). So a child may query the device. Every other verb on an inherited object
// fails with EPERM before it changes anything, and the parent continues as if there were no child.
// To make requests of its own, a child opens or imports the device.
#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>

#include <atomic>
#include <cstdio>
#include <fstream>
#include <thread>

#include "tests/system/bad_input/fork_fixture.h"

namespace rocemu::system_test {
namespace {

TEST_F(ForkVerbs, OfAParentsObjectsFailAndDoTheParentNoHarm) {
  ASSERT_NO_FATAL_FAILURE(leave_completions(qp.get(), 7));
  EXPECT_EQ(in_child([this](const Report& report) { every_verb(report); }), "");
  take_completions(7);
  ASSERT_NO_FATAL_FAILURE(expect_unharmed(8));
}

// rdma-core's tests use one context in many processes, and each allocates device memory.
TEST_F(ForkVerbs, DeviceMemoryThatAChildAllocatesIsItsOwn) {
  EXPECT_EQ(in_child([this](const Report& report) {
              ibv_alloc_dm_attr attr{};
              attr.length = 64;
              ibv_dm* own = ibv_alloc_dm(context.get(), &attr);
              report.expect(own != nullptr, "ibv_alloc_dm");
              if (own == nullptr) return;
              uint64_t word = 7;
              works(report, "its own", [&] { return ibv_memcpy_to_dm(own, 8, &word, 8); });
              word = 0;
              works(report, "its own", [&] { return ibv_memcpy_from_dm(&word, own, 8, 8); });
              report.expect(word == 7, "what was copied there");
              fails(report, "the parent's", [&] { return ibv_free_dm(dm); });
              works(report, "its own", [&] { return ibv_free_dm(own); });
            }),
            "");
  ASSERT_NO_FATAL_FAILURE(expect_unharmed(8));
}

// Requesting notification is a doorbell, and the child does not have the doorbell's memory.
TEST_F(ForkVerbs, IbvReqNotifyCqOfAParentsCqFails) {
  EXPECT_EQ(in_child([this](const Report& report) {
              fails(report, "ibv_req_notify_cq",
                    [&] { return ibv_req_notify_cq(event_cq.get(), 0); });
            }),
            "");
  ASSERT_NO_FATAL_FAILURE(expect_unharmed(8));
}

TEST_F(ForkVerbs, FailInAGrandchildToo) {
  EXPECT_EQ(in_child([this](const Report& report) {
              const ContextPtr own = open_device();
              report.expect(own != nullptr, "the child's own context");
              const std::string wrong = in_child([&](const Report& grandchilds) {
                ibv_port_attr port;
                fails_null(grandchilds, "the child's", [&] { return ibv_alloc_pd(own.get()); });
                works(grandchilds, "the child's",
                      [&] { return ibv_query_port(own.get(), 1, &port); });
                every_verb(grandchilds);
                works(grandchilds, "the child's", [&] { return ibv_close_device(own.get()); });
              });
              if (!wrong.empty()) report.wrong(wrong);
              const PdPtr domain_of_own(ibv_alloc_pd(own.get()));
              report.expect(domain_of_own != nullptr, "the child goes on with its own");
            }),
            "");
  ASSERT_NO_FATAL_FAILURE(expect_unharmed(8));
}

// A child that clone(2) makes without the C library's fork(), as container runtimes and
// checkpointers do.
TEST_F(ForkVerbs, FailInAChildMadeBySystemCall) {
  ASSERT_NO_FATAL_FAILURE(leave_completions(qp.get(), 7));
  EXPECT_EQ(in_child([this](const Report& report) { every_verb(report); }, Forking::kBySystemCall),
            "");
  take_completions(7);
  ASSERT_NO_FATAL_FAILURE(expect_unharmed(8));
}

// The parent forks between ibv_wr_start and ibv_wr_complete, and between ibv_start_poll and
// ibv_end_poll.
TEST_F(ForkVerbs, FailInTheMiddleOfPostingAndPolling) {
  ASSERT_NO_FATAL_FAILURE(leave_completions(ex_qp.get(), 7));
  ibv_poll_cq_attr attr{};
  int error;
  while ((error = ibv_start_poll(cq_ex, &attr)) == ENOENT) continue;
  ASSERT_EQ(error, 0);
  ibv_qp_ex* ex = ibv_qp_to_qp_ex(qp.get());
  ex->wr_id = 9;
  ex->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_start(ex);
  ibv_wr_send(ex);
  EXPECT_EQ(in_child([&](const Report& report) {
              report.begins("the parent's session");
              build();
              every_verb(report);
            }),
            "");
  ibv_wr_set_sge(ex, mr->lkey, reinterpret_cast<uint64_t>(slot(0)), 8);
  ASSERT_EQ(post_recv(qp.get(), 9), 0);
  EXPECT_EQ(ibv_wr_complete(ex), 0);
  take_completions(9);
  EXPECT_EQ(cq_ex->wr_id, 7u);
  while ((error = ibv_next_poll(cq_ex)) == ENOENT) settle();
  EXPECT_EQ(error, 0);
  ibv_end_poll(cq_ex);
  ASSERT_NO_FATAL_FAILURE(expect_unharmed(8));
}

// If another thread holds a lock during fork(), the lock stays locked in the child.
TEST_F(ForkVerbs, FailAndDoNotHangWhateverOtherThreadsDid) {
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  threads.emplace_back([&] {
    for (ibv_wc wc; !done;) ibv_poll_cq(cq.get(), 1, &wc);
  });
  threads.emplace_back([&] {
    while (!done) {
      ibv_poll_cq_attr attr{};
      if (ibv_start_poll(cq_ex, &attr) == 0) ibv_end_poll(cq_ex);
      ibv_req_notify_cq(event_cq.get(), 0);
    }
  });
  threads.emplace_back([&] {
    while (!done) {
      post_recv(qp.get(), 1);
      build_and_abort();
    }
  });
  threads.emplace_back([&] {
    while (!done) {
      const MrPtr region(ibv_reg_mr(pd.get(), slot(5), kSlot, IBV_ACCESS_LOCAL_WRITE));
      const CqPtr other = create_cq(4);
    }
  });
  for (int i = 0; i < 20; ++i) {
    std::thread forker(
        [&] { EXPECT_EQ(in_child([this](const Report& report) { every_verb(report); }), ""); });
    forker.join();
  }
  done = true;
  for (std::thread& thread : threads) thread.join();
}

/// Returns the ranges of memory that this process shares with the daemon.
std::vector<std::pair<uint64_t, uint64_t>> shared_with_daemon() {
  std::vector<std::pair<uint64_t, uint64_t>> found;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("memfd:rocemu") == line.npos) continue;
    uint64_t begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx", &begin, &end) == 2) found.emplace_back(begin, end);
  }
  return found;
}

// If the child maps memory at the addresses of its parent's queues, this memory belongs to the
// child.
TEST_F(ForkVerbs, DoNotAccessAChildsMappingsInPlaceOfItsParentsQueues) {
  const auto places = shared_with_daemon();
  ASSERT_FALSE(places.empty());
  EXPECT_EQ(in_child([&](const Report& report) {
              for (const auto& [begin, end] : places) {
                void* place = reinterpret_cast<void*>(begin);
                report.begins("mmap");
                report.expect(
                    mmap(place, end - begin, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == place,
                    "its place is free");
                std::memset(place, 0x5a, end - begin);
              }
              every_verb(report);
              for (const auto& [begin, end] : places) {
                report.begins("what was mapped there");
                report.expect(msync(reinterpret_cast<void*>(begin), end - begin, MS_ASYNC) == 0,
                              "is mapped");
                const auto* bytes = reinterpret_cast<const uint8_t*>(begin);
                for (uint64_t i = 0; i < end - begin; ++i) {
                  if (bytes[i] != 0x5a) return report.wrong("was written to");
                }
              }
            }),
            "");
  ASSERT_NO_FATAL_FAILURE(expect_unharmed(8));
}

// vfork(2) and posix_spawn(3) lend the parent's memory to the child until it has executed another
// program, which inherits no descriptor of a context.
TEST_F(ForkVerbs, GoOnInTheParentOfAProgramThatIsExecuted) {
  for (const int fd : {context->cmd_fd, context->async_fd, channel->fd}) {
    EXPECT_EQ(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
  }
  char path[] = "/bin/true";
  char* arguments[] = {path, nullptr};
  for (uint64_t i = 0; i < 5; ++i) {
    ASSERT_NO_FATAL_FAILURE(leave_completions(qp.get(), i));
    pid_t child = 0;
    ASSERT_EQ(posix_spawn(&child, path, nullptr, nullptr, arguments, nullptr), 0);
    take_completions(i);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  ASSERT_NO_FATAL_FAILURE(expect_unharmed(8));
}

// ibv_fork_init(3) must be called before everything else, so this test runs in a separate process.
TEST(ForkVerbsAfterForkInit, OfAParentsObjectsFailAndDoTheParentNoHarm) {
  EXPECT_EQ(in_child([](const Report& report) {
              setenv("RDMAV_FORK_SAFE", "1", 1);
              ibv_fork_init();
              ForkVerbs parent;
              parent.SetUp();
              if (testing::Test::HasFailure()) return report.wrong("setting up");
              parent.leave_completions(parent.qp.get(), 7);
              const std::string wrong =
                  in_child([&](const Report& childs) { parent.every_verb(childs); });
              if (!wrong.empty()) report.wrong(wrong);
              parent.take_completions(7);
              parent.expect_unharmed(8);
              parent.TearDown();
              if (testing::Test::HasFailure()) report.wrong("the parent was harmed");
            }),
            "");
}

}  // namespace
}  // namespace rocemu::system_test
