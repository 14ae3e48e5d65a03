// Tests long messages, which the program that posted them may copy (docs/design/direct-copy.md).
// Whatever happens to the programs in the middle, each message arrives whole or gets no completion.
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstddef>
#include <numeric>
#include <thread>

#include "tests/system/child.h"
#include "tests/system/map_pages.h"
#include "tests/system/memory/buffer_fixture.h"

namespace rocemu::system_test {
namespace {

constexpr size_t kBytes = 8 << 20;
constexpr uint32_t kMessage = 256 << 10;

/// Returns the byte at this position of message `number`.
uint8_t byte_of(uint64_t number, size_t position) {
  return static_cast<uint8_t>(number * 31 + position * 7 + position / 251);
}
void fill(uint8_t* bytes, size_t size, uint64_t number) {
  for (size_t i = 0; i < size; ++i) bytes[i] = byte_of(number, i);
}
testing::AssertionResult is_filled(const uint8_t* bytes, size_t size, uint64_t number) {
  for (size_t i = 0; i < size; ++i) {
    if (bytes[i] != byte_of(number, i))
      return testing::AssertionFailure() << "message " << number << ", byte " << i;
  }
  return testing::AssertionSuccess();
}

class DirectCopy : public BufferTest {
 protected:
  DirectCopy() : BufferTest(kBytes, 256) {}

  int post_list(ibv_wr_opcode opcode, uint64_t wr_id, std::vector<ibv_sge> list,
                size_t remote_offset = 0, unsigned flags = IBV_SEND_SIGNALED) {
    ibv_send_wr wr{};
    wr.wr_id = wr_id;
    wr.sg_list = list.data();
    wr.num_sge = static_cast<int>(list.size());
    wr.opcode = opcode;
    wr.send_flags = flags;
    wr.wr.rdma = {.remote_addr = reinterpret_cast<uint64_t>(buffer + remote_offset),
                  .rkey = region->rkey};
    ibv_send_wr* bad = nullptr;
    return ibv_post_send(sender.get(), &wr, &bad);
  }
};

TEST_F(DirectCopy, EachKindOfMessageArrivesWhole) {
  for (const uint32_t size : {16383u, 16384u, 16385u, 65536u, 65537u, 1000003u}) {
    SCOPED_TRACE(size);
    const size_t there = 4 << 20;
    fill(buffer, size, size);
    ASSERT_EQ(post_list(IBV_WR_RDMA_WRITE, 1, {part(0, size)}, there), 0);
    ASSERT_EQ(next_status(), IBV_WC_SUCCESS);
    EXPECT_TRUE(is_filled(buffer + there, size, size));

    fill(buffer, size, size + 1);
    ASSERT_EQ(
        post_receive(receiver.get(), 2, {part(there + 13, 5000), part(there + 100'000, size)}), 0);
    ASSERT_EQ(post_list(IBV_WR_SEND, 1, {part(0, 1000), part(1000, size - 1000)}), 0);
    ASSERT_EQ(next_status(), IBV_WC_SUCCESS);
    const auto received = poll_for(receive_cq.get(), 1);
    ASSERT_EQ(received.size(), 1u);
    EXPECT_EQ(received[0].byte_len, size);
    EXPECT_EQ(std::memcmp(buffer + there + 13, buffer, 5000), 0);
    EXPECT_EQ(std::memcmp(buffer + there + 100'000, buffer + 5000, size - 5000), 0);

    fill(buffer + there, size, size + 2);
    ASSERT_EQ(post_list(IBV_WR_RDMA_READ, 1, {part(0, size)}, there), 0);
    ASSERT_EQ(next_status(), IBV_WC_SUCCESS);
    EXPECT_TRUE(is_filled(buffer, size, size + 2));
  }
}

// ibv_dereg_mr(3), ibv_destroy_qp(3) and ibv_modify_qp(3) give the program its buffers back.
TEST_F(DirectCopy, NothingIsCopiedAfterTheErrorState) {
  for (int round = 0; round < 50; ++round) {
    for (uint32_t i = 0; i < 16; ++i) {
      ASSERT_EQ(post_list(IBV_WR_RDMA_WRITE, i, {part(i * kMessage, kMessage)}, 4 << 20), 0);
    }
    ibv_wc wc;
    for (int i = 0; i < round; ++i) ibv_poll_cq(cq.get(), 0, &wc);  // takes copies, no completions
    ASSERT_NO_FATAL_FAILURE(to_error((round % 2 == 0 ? sender : receiver).get()));
    ASSERT_NO_FATAL_FAILURE(to_error(sender.get()));
    std::memset(buffer + (4 << 20), 0x5a, kMessage);
    for (int i = 0; i < 100; ++i) ibv_poll_cq(cq.get(), 0, &wc);
    for (const ibv_wc& one : poll_for(cq.get(), 16)) {
      EXPECT_TRUE(one.status == IBV_WC_SUCCESS || one.status == IBV_WC_WR_FLUSH_ERR ||
                  one.status == IBV_WC_RETRY_EXC_ERR)
          << ibv_wc_status_str(one.status);
    }
    for (size_t i = 0; i < kMessage; ++i) ASSERT_EQ(buffer[(4 << 20) + i], 0x5a) << i;
    for (ibv_qp* qp : {sender.get(), receiver.get()}) {
      ibv_qp_attr attr{};
      attr.qp_state = IBV_QPS_RESET;
      ASSERT_EQ(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
    }
    ASSERT_NO_FATAL_FAILURE(bring_up_pair(sender.get(), receiver.get()));
  }
}

// Several threads poll one CQ, and each may copy. The messages are copied in order all the same.
TEST_F(DirectCopy, ManyThreadsMayPoll) {
  constexpr uint64_t kMessages = 200;
  std::atomic<uint64_t> completed{0};
  std::atomic<bool> failed{false};
  std::vector<std::thread> pollers;
  for (int i = 0; i < 3; ++i) {
    pollers.emplace_back([&] {
      while (completed < kMessages && !failed) {
        ibv_wc wc;
        const int n = ibv_poll_cq(cq.get(), 1, &wc);
        if (n < 0 || (n == 1 && wc.status != IBV_WC_SUCCESS)) failed = true;
        if (n == 1) ++completed;
        if (n == 0) std::this_thread::yield();
      }
    });
  }
  for (uint64_t number = 0; number < kMessages && !failed; ++number) {
    const size_t offset = number % 8 * kMessage;
    while (completed + 8 <= number && !failed) std::this_thread::yield();
    fill(buffer + offset, kMessage, number);
    ASSERT_EQ(post_receive(receiver.get(), number, {part((4 << 20) + offset, kMessage)}), 0);
    ASSERT_EQ(post_list(IBV_WR_SEND, number, {part(offset, kMessage)}), 0);
    if (number % 8 != 7) continue;
    for (const ibv_wc& one : poll_for(receive_cq.get(), 8)) {
      EXPECT_EQ(one.status, IBV_WC_SUCCESS);
      EXPECT_TRUE(is_filled(buffer + (4 << 20) + one.wr_id % 8 * kMessage, kMessage, one.wr_id));
    }
  }
  for (std::thread& poller : pollers) poller.join();
  EXPECT_FALSE(failed);
}

std::atomic<int> trapped_calls{0};

/// Counts a call of process_vm_readv or process_vm_writev, and lets it fail with EPERM.
void on_trapped_call(int, siginfo_t*, void* context) {
  ++trapped_calls;
  auto* registers = static_cast<ucontext_t*>(context);
#if defined(__x86_64__)
  registers->uc_mcontext.gregs[REG_RAX] = -EPERM;
#elif defined(__aarch64__)
  registers->uc_mcontext.regs[0] = static_cast<uint64_t>(-EPERM);
#endif
}

bool trap_process_vm_calls() {
  struct sigaction action {};
  action.sa_sigaction = on_trapped_call;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSYS, &action, nullptr);
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{sizeof filter / sizeof *filter, filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

class DirectCopyInAChild : public TransportTest {
 protected:
  void SetUp() override {}  // the child opens the device

  /// Sends messages from the child to itself, and polls for each completion: `least` messages, and
  /// more until a call is trapped, but at most `most`. On a busy machine the program rarely gets
  /// the processor in time to copy.
  void exchange(int least, int most, const Report& report) {
    TransportTest::SetUp();
    uint8_t* bytes = map_pages(2 * kMessage);
    const MrPtr mr_of_bytes(
        ibv_reg_mr(pd.get(), bytes, 2 * kMessage, IBV_ACCESS_LOCAL_WRITE | kRemoteAccess));
    const QpPtr left = make_qp({}), right = make_qp({});
    bring_up_pair(left.get(), right.get());
    if (traps_later && !trap_process_vm_calls()) return report.wrong("no seccomp filter");
    trapped_calls = 0;  // other verbs make such calls, too
    for (int i = 0; i < least || (i < most && trapped_calls == 0); ++i) {
      fill(bytes, kMessage, static_cast<uint64_t>(i));
      ibv_send_wr wr = request(IBV_WR_RDMA_WRITE, 1);
      entry = {reinterpret_cast<uint64_t>(bytes), kMessage, mr_of_bytes->lkey};
      wr.wr.rdma = {reinterpret_cast<uint64_t>(bytes + kMessage), mr_of_bytes->rkey};
      report.expect(post(left.get(), wr) == 0, "no post");
      report.expect(next_status() == IBV_WC_SUCCESS, "no success");
      report.expect(bool(is_filled(bytes + kMessage, kMessage, static_cast<uint64_t>(i))),
                    "another message");
    }
  }

  bool traps_later = false;
};

// This shows that the program copies; and that the messages arrive if the kernel refuses that.
TEST_F(DirectCopyInAChild, ARefusalOfTheKernelIsNoError) {
  const std::string said = in_child([this](const Report& report) {
    traps_later = true;
    exchange(2000, 100'000, report);
    report.expect(trapped_calls > 0, "the program has copied nothing");
    report.expect(trapped_calls < 2000, "it is asked again and again");
  });
  EXPECT_EQ(said, "");
}

// A program that has filters of system calls when it opens the device is not asked: its filter
// might kill it.
TEST_F(DirectCopyInAChild, AProgramWithAFilterIsNotAsked) {
  const std::string said = in_child([this](const Report& report) {
    report.expect(trap_process_vm_calls(), "no seccomp filter");
    exchange(200, 200, report);
    report.expect(trapped_calls == 0, "the program was asked");
  });
  EXPECT_EQ(said, "");
}

/// A child with its own context sends to this process: message `number` goes to slot `number` %
/// kSlots of `inbox`.
class TwoPrograms : public DirectCopy {
 protected:
  static constexpr uint32_t kInbox = 24;

  /// Starts the child, and connects to it. The child posts kInbox messages, and polls for ever.
  void start_child() {
    int to_child[2], from_child[2];
    ASSERT_EQ(pipe(to_child), 0);
    ASSERT_EQ(pipe(from_child), 0);
    peer = make_qp({.cq = receive_cq.get()});
    ASSERT_NO_FATAL_FAILURE(to_init(peer.get()));  // in RESET no receive can be posted
    for (uint32_t i = 0; i < kInbox; ++i) {
      ASSERT_EQ(post_receive(peer.get(), i, {part(i * kMessage, kMessage)}), 0);
    }
    uint32_t qpn = peer->qp_num;
    child = fork();
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      be_child(qpn, from_child[1], to_child[0]);
      _exit(1);
    }
    uint32_t child_qpn = 0;
    ASSERT_EQ(read(from_child[0], &child_qpn, sizeof child_qpn),
              static_cast<ssize_t>(sizeof child_qpn));
    ASSERT_NO_FATAL_FAILURE(bring_up(peer.get(), child_qpn));
    ASSERT_EQ(write(to_child[1], "g", 1), 1);
    char posted;
    ASSERT_EQ(read(from_child[0], &posted, 1), 1);
    for (const int fd : {to_child[0], to_child[1], from_child[0], from_child[1]}) close(fd);
  }
  void end_child() {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }

  QpPtr peer;
  pid_t child = 0;

 private:
  void be_child(uint32_t qpn, int to_parent, int from_parent) {
    const ContextPtr own = open_device();
    const PdPtr own_pd(ibv_alloc_pd(own.get()));
    uint8_t* bytes = map_pages(kInbox * kMessage);
    for (uint32_t i = 0; i < kInbox; ++i) fill(bytes + i * kMessage, kMessage, i);
    const MrPtr own_mr(ibv_reg_mr(own_pd.get(), bytes, kInbox * kMessage, 0));
    const CqPtr own_cq(ibv_create_cq(own.get(), 256, nullptr, nullptr, 0));
    ibv_qp_init_attr init{};
    init.qp_type = IBV_QPT_RC;
    init.send_cq = init.recv_cq = own_cq.get();
    init.cap = {.max_send_wr = kInbox,
                .max_recv_wr = 1,
                .max_send_sge = 1,
                .max_recv_sge = 1,
                .max_inline_data = 0};
    const QpPtr qp(ibv_create_qp(own_pd.get(), &init));
    bring_up(qp.get(), qpn);
    if (write(to_parent, &qp->qp_num, sizeof qp->qp_num) < 0) _exit(2);
    char go;
    if (read(from_parent, &go, 1) != 1) _exit(3);
    for (uint32_t i = 0; i < kInbox; ++i) {
      ibv_sge list{reinterpret_cast<uint64_t>(bytes + i * kMessage), kMessage, own_mr->lkey};
      ibv_send_wr wr{};
      wr.sg_list = &list;
      wr.num_sge = 1;
      wr.opcode = IBV_WR_SEND;
      wr.send_flags = IBV_SEND_SIGNALED;
      ibv_send_wr* bad = nullptr;
      if (ibv_post_send(qp.get(), &wr, &bad) != 0) _exit(4);
    }
    if (write(to_parent, "p", 1) != 1) _exit(5);
    ibv_wc wc;
    while (true) ibv_poll_cq(own_cq.get(), 1, &wc);
  }
};

// A NIC sends what was posted, even if the program is stopped.
TEST_F(TwoPrograms, TheMessagesOfAStoppedProgramArrive) {
  for (int round = 0; round < 20; ++round) {
    SCOPED_TRACE(round);
    std::memset(buffer, 0, kInbox * kMessage);
    ASSERT_NO_FATAL_FAILURE(start_child());
    usleep(static_cast<useconds_t>(round * 37));
    kill(child, SIGSTOP);
    for (const ibv_wc& wc : poll_for(receive_cq.get(), kInbox)) {
      ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
      ASSERT_TRUE(is_filled(buffer + wc.wr_id * kMessage, kMessage, wc.wr_id));
    }
    // The copy that the program was making when it was stopped is not made now.
    std::memset(buffer, 0x5a, kInbox * kMessage);
    kill(child, SIGCONT);
    usleep(3000);
    for (size_t i = 0; i < kInbox * kMessage; ++i) ASSERT_EQ(buffer[i], 0x5a) << i;
    end_child();
    peer.reset();
  }
}

// A message of which only a part was copied gets no completion.
TEST_F(TwoPrograms, OfADyingProgramOnlyWholeMessagesArrive) {
  for (int round = 0; round < 20; ++round) {
    SCOPED_TRACE(round);
    std::memset(buffer, 0, kInbox * kMessage);
    ASSERT_NO_FATAL_FAILURE(start_child());
    usleep(static_cast<useconds_t>(round * 37));
    end_child();
    ASSERT_NO_FATAL_FAILURE(to_error(peer.get()));
    bool has_ended = false;
    for (const ibv_wc& wc : poll_for(receive_cq.get(), kInbox)) {
      if (wc.status == IBV_WC_SUCCESS) {
        EXPECT_FALSE(has_ended) << "a success after a failure";
        ASSERT_TRUE(is_filled(buffer + wc.wr_id * kMessage, kMessage, wc.wr_id));
      } else {
        EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
        has_ended = true;
      }
    }
    peer.reset();
  }
}

}  // namespace
}  // namespace rocemu::system_test
