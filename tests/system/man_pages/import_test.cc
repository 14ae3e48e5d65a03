// Tests ibv_import_device(3), ibv_import_pd(3) and ibv_import_mr(3), sentence by sentence.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/system/verbs_fixture.h"

namespace rocemu::system_test {
namespace {

class Import : public VerbsTest {
 protected:
  /// Returns a context that shares the objects of `from`, made from a duplicate of its cmd_fd.
  static ContextPtr import_from(const ibv_context* from) {
    return ContextPtr(ibv_import_device(dup(from->cmd_fd)));
  }
};

struct Unimport {
  void operator()(ibv_pd* pd) const { ibv_unimport_pd(pd); }
  void operator()(ibv_mr* mr) const { ibv_unimport_mr(mr); }
};
using ImportedPd = std::unique_ptr<ibv_pd, Unimport>;
using ImportedMr = std::unique_ptr<ibv_mr, Unimport>;

// "returns an ibv_context pointer that is associated with the given cmd_fd"
TEST_F(Import, OfADeviceGivesAContextOfTheSameDevice) {
  const int fd = dup(context->cmd_fd);
  const ContextPtr imported(ibv_import_device(fd));
  ASSERT_NE(imported, nullptr) << std::strerror(errno);
  EXPECT_EQ(imported->cmd_fd, fd);
  EXPECT_STREQ(ibv_get_device_name(imported->device), ibv_get_device_name(context->device));
  ibv_device_attr attr{};
  EXPECT_EQ(ibv_query_device(imported.get(), &attr), 0);
  ibv_port_attr port{};
  EXPECT_EQ(ibv_query_port(imported.get(), 1, &port), 0);
}

// The imported context has a separate file of async events, which gets the events of the objects
// that were created through it.
TEST_F(Import, OfADeviceHasItsOwnAsyncEvents) {
  const ContextPtr imported = import_from(context.get());
  ASSERT_NE(imported, nullptr);
  EXPECT_NE(imported->async_fd, context->async_fd);
  ASSERT_EQ(fcntl(imported->async_fd, F_GETFD) & ~FD_CLOEXEC, 0) << "an open descriptor";
  const ImportedPd shared(ibv_import_pd(imported.get(), pd->handle));
  ASSERT_NE(shared, nullptr);
  CqPtr cq(ibv_create_cq(imported.get(), 2, nullptr, nullptr, 0));
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = cq.get();
  init.qp_type = IBV_QPT_RC;
  init.cap.max_recv_wr = 16;
  init.cap.max_recv_sge = 1;
  QpPtr qp(ibv_create_qp(shared.get(), &init));
  ASSERT_NE(qp, nullptr);
  ASSERT_NO_FATAL_FAILURE(to_init(qp.get()));
  for (int i = 0; i <= cq->cqe; ++i) ASSERT_EQ(post_recv(qp.get(), 1), 0);
  ASSERT_NO_FATAL_FAILURE(to_error(qp.get()));  // causes more completions than the CQ has room for
  ASSERT_TRUE(readable(imported->async_fd, 30'000));
  EXPECT_FALSE(readable(context->async_fd));
  ibv_async_event event{};
  ASSERT_EQ(ibv_get_async_event(imported.get(), &event), 0);
  EXPECT_EQ(event.event_type, IBV_EVENT_CQ_ERR);
  EXPECT_EQ(event.element.cq, cq.get());
  ibv_ack_async_event(&event);
}

// "ibv_close_device() should be called. This call may cleanup whatever is needed/opposite of the
// import including closing the command FD."
TEST_F(Import, ClosingTheImportLeavesTheOriginalOpen) {
  const int fd = dup(context->cmd_fd);
  ContextPtr imported(ibv_import_device(fd));
  ASSERT_NE(imported, nullptr);
  imported.reset();
  EXPECT_EQ(fcntl(fd, F_GETFD), -1) << "closed";
  ibv_port_attr port{};
  EXPECT_EQ(ibv_query_port(context.get(), 1, &port), 0);
  EXPECT_EQ(ibv_dealloc_pd(ibv_alloc_pd(context.get())), 0);
}

// ibv_import_device(3): "or NULL if the request fails"
TEST_F(Import, OfSomethingElseThanADeviceFails) {
  EXPECT_EQ(ibv_import_device(-1), nullptr);
  const int file = open("/dev/null", O_RDWR | O_CLOEXEC);
  EXPECT_EQ(ibv_import_device(file), nullptr);
  close(file);
  int pair[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
  EXPECT_EQ(ibv_import_device(pair[0]), nullptr);
  close(pair[0]);
  close(pair[1]);
}

// ibv_import_pd(3): "The input pd_handle value must be a valid kernel handle for a PD object in the
// given context." "The returned ibv_pd can be used in all verbs that get a protection domain."
TEST_F(Import, OfAPdIsTheSamePd) {
  const ContextPtr imported = import_from(context.get());
  const ImportedPd shared(ibv_import_pd(imported.get(), pd->handle));
  ASSERT_NE(shared, nullptr) << std::strerror(errno);
  EXPECT_EQ(shared->handle, pd->handle);
  EXPECT_EQ(shared->context, imported.get());
  const MrPtr region(ibv_reg_mr(shared.get(), slot(0), kSlot, IBV_ACCESS_LOCAL_WRITE));
  EXPECT_NE(region, nullptr);
}

TEST_F(Import, OfAPdThatIsNotThereFails) {
  const ContextPtr imported = import_from(context.get());
  EXPECT_EQ(ibv_import_pd(imported.get(), 12345), nullptr);
  EXPECT_EQ(errno, ENOENT);
  // The handle names nothing in a context that shares nothing with this one.
  const ContextPtr stranger = open_device();
  EXPECT_EQ(ibv_import_pd(stranger.get(), pd->handle), nullptr);
}

// "ibv_dealloc_pd() or ibv_unimport_pd() should be called. The first one will go to the kernel to
// destroy the object once the second one way cleanup ... without calling the kernel."
TEST_F(Import, UnimportingAPdLeavesItAndDeallocatingEndsIt) {
  const ContextPtr imported = import_from(context.get());
  ibv_pd* other = ibv_alloc_pd(context.get());
  ASSERT_NE(other, nullptr);
  const uint32_t handle = other->handle;
  ibv_pd* shared = ibv_import_pd(imported.get(), handle);
  ibv_unimport_pd(shared);
  shared = ibv_import_pd(imported.get(), handle);
  ASSERT_NE(shared, nullptr) << "it is still there";
  EXPECT_EQ(ibv_dealloc_pd(shared), 0);
  EXPECT_EQ(ibv_import_pd(imported.get(), handle), nullptr);
  // "Once destroy is done no other process can touch the object except for unimport."
  ibv_unimport_pd(other);
}

// Unimporting a PD cannot fail. rdma-core's own tests do it before they destroy the objects that
// they created with the PD.
TEST_F(Import, ObjectsOfAPdOutliveItsImport) {
  const ContextPtr imported = import_from(context.get());
  ibv_pd* shared = ibv_import_pd(imported.get(), pd->handle);
  ASSERT_NE(shared, nullptr);
  CqPtr cq(ibv_create_cq(imported.get(), 2, nullptr, nullptr, 0));
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = cq.get();
  init.qp_type = IBV_QPT_RC;
  QpPtr qp(ibv_create_qp(shared, &init));
  ASSERT_NE(qp, nullptr);
  ibv_unimport_pd(shared);
  ASSERT_NO_FATAL_FAILURE(to_init(qp.get()));
}

// ibv_import_mr(3): "The addr field in the imported MR is not applicable, NULL value is expected."
TEST_F(Import, OfAnMrHasItsKeys) {
  const ContextPtr imported = import_from(context.get());
  const ImportedPd shared(ibv_import_pd(imported.get(), pd->handle));
  const ImportedMr region(ibv_import_mr(shared.get(), mr->handle));
  ASSERT_NE(region, nullptr) << std::strerror(errno);
  EXPECT_EQ(region->addr, nullptr);
  EXPECT_EQ(region->length, mr->length);
  EXPECT_EQ(region->lkey, mr->lkey);
  EXPECT_EQ(region->rkey, mr->rkey);
  EXPECT_EQ(region->handle, mr->handle);
  EXPECT_EQ(region->pd, shared.get());
  EXPECT_EQ(region->context, imported.get());
  EXPECT_EQ(ibv_import_mr(shared.get(), 999'999), nullptr);
  EXPECT_EQ(errno, ENOENT);
}

// ibv_import_mr(3): "ibv_dereg_mr() or ibv_unimport_mr() should be called. The first one will go to
// the kernel to destroy the object". A region that was deregistered cannot be imported again.
TEST_F(Import, DeregisteringAnImportedMrEndsIt) {
  const ContextPtr imported = import_from(context.get());
  const ImportedPd shared(ibv_import_pd(imported.get(), pd->handle));
  ibv_mr* region = ibv_import_mr(shared.get(), mr->handle);
  ASSERT_NE(region, nullptr);
  EXPECT_EQ(ibv_dereg_mr(region), 0);
  EXPECT_EQ(ibv_import_mr(shared.get(), mr->handle), nullptr);
  ibv_unimport_mr(mr.release());
}

/// The object handles and the descriptor that one process sends to another.
struct Shared {
  uint32_t pd_handle;
  uint32_t mr_handle;
  uint64_t address;
  uint64_t gid[2];
  // 64 bits, so that there is no padding: valgrind would report that uninitialized bytes are sent
  uint64_t qpn;
};

bool send_with_fd(int socket, const Shared& shared, int fd) {
  iovec part{const_cast<Shared*>(&shared), sizeof shared};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  return sendmsg(socket, &message, 0) == sizeof shared;
}

int receive_with_fd(int socket, Shared* shared) {
  iovec part{shared, sizeof *shared};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  if (recvmsg(socket, &message, 0) != sizeof *shared) return -1;
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header == nullptr) return -1;
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
  return fd;
}

/// Runs the other process: imports the PD and the MR, and creates a QP with that PD, which receives
/// into memory of the first process. Returns the number of the step that failed, or 0.
int run_importer(int socket) {
  Shared shared{};
  const int fd = receive_with_fd(socket, &shared);
  if (fd < 0) return 1;
  ibv_context* context = ibv_import_device(fd);
  if (context == nullptr) return 2;
  ibv_pd* pd = ibv_import_pd(context, shared.pd_handle);
  if (pd == nullptr) return 3;
  ibv_mr* mr = ibv_import_mr(pd, shared.mr_handle);
  if (mr == nullptr) return 4;
  ibv_cq* cq = ibv_create_cq(context, 16, nullptr, nullptr, 0);
  if (cq == nullptr) return 5;
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = cq;
  init.qp_type = IBV_QPT_RC;
  init.cap = {.max_send_wr = 1,
              .max_recv_wr = 1,
              .max_send_sge = 1,
              .max_recv_sge = 1,
              .max_inline_data = 0};
  ibv_qp* qp = ibv_create_qp(pd, &init);
  if (qp == nullptr) return 6;
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  if (ibv_modify_qp(qp, &attr,
                    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) != 0) {
    return 7;
  }
  ibv_sge entry{shared.address, 8, mr->lkey};
  ibv_recv_wr wr{};
  wr.sg_list = &entry;
  wr.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  if (ibv_post_recv(qp, &wr, &bad) != 0) return 8;
  attr = {};
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = IBV_MTU_1024;
  attr.dest_qp_num = static_cast<uint32_t>(shared.qpn);
  attr.rq_psn = 100;
  attr.max_dest_rd_atomic = 1;
  attr.min_rnr_timer = 1;
  attr.ah_attr.is_global = 1;
  attr.ah_attr.port_num = 1;
  attr.ah_attr.grh.hop_limit = 64;
  std::memcpy(&attr.ah_attr.grh.dgid, shared.gid, sizeof shared.gid);
  if (ibv_modify_qp(qp, &attr,
                    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                        IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) != 0) {
    return 9;
  }
  const uint32_t qpn = qp->qp_num;
  if (write(socket, &qpn, sizeof qpn) != sizeof qpn) return 10;
  ibv_wc wc{};
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  int n = 0;
  while (n == 0 && std::chrono::steady_clock::now() < deadline) n = ibv_poll_cq(cq, 1, &wc);
  if (n != 1 || wc.status != IBV_WC_SUCCESS) return 11;
  if (ibv_destroy_qp(qp) != 0 || ibv_destroy_cq(cq) != 0) return 12;
  ibv_unimport_mr(mr);
  ibv_unimport_pd(pd);
  return ibv_close_device(context) == 0 ? 0 : 13;
}

// "dup'd (eg by dup(), SCM_RIGHTS, etc) before being passed to ibv_import_device()": importing is
// for this case, in which another process receives a message into memory of this one.
TEST(ImportInAnotherProcess, ReceivesIntoTheMemoryOfTheFirst) {
  int sockets[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0);
  const pid_t child = fork();  // before this process opens a device
  ASSERT_GE(child, 0);
  if (child == 0) {
    close(sockets[0]);
    _exit(run_importer(sockets[1]));
  }
  close(sockets[1]);

  /// Gives access to the fixture's helpers outside of a test of the fixture.
  struct Fixture : VerbsTest {
    void TestBody() override {}
    void run(int socket) {
      SetUp();
      Shared shared{pd->handle, mr->handle, reinterpret_cast<uint64_t>(slot(3)), {}, 0};
      const CqPtr cq = create_cq();
      const QpPtr sender = create_qp(cq.get(), cq.get());
      ASSERT_NE(sender, nullptr);
      ASSERT_EQ(ibv_query_gid(context.get(), 1, 0, reinterpret_cast<ibv_gid*>(shared.gid)), 0);
      shared.qpn = sender->qp_num;
      ASSERT_TRUE(send_with_fd(socket, shared, context->cmd_fd));
      uint32_t peer = 0;
      ASSERT_EQ(read(socket, &peer, sizeof peer), static_cast<ssize_t>(sizeof peer));
      ASSERT_NO_FATAL_FAILURE(to_init(sender.get()));
      ASSERT_NO_FATAL_FAILURE(to_rtr(sender.get(), peer));
      ASSERT_NO_FATAL_FAILURE(to_rts(sender.get()));
      std::memcpy(slot(0), "shared!", 8);
      ASSERT_EQ(post_send(sender.get(), 1, IBV_SEND_SIGNALED, 8), 0);
      EXPECT_EQ(poll_for(cq.get(), 1).at(0).status, IBV_WC_SUCCESS);
      EXPECT_STREQ(reinterpret_cast<const char*>(slot(3)), "shared!");
      // "All users of the context must collaborate": the PD is in use until the other process has
      // ended.
      ASSERT_EQ(read(socket, &peer, sizeof peer), 0);
    }
  };
  Fixture().run(sockets[0]);
  close(sockets[0]);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0) << "the step that failed there";
}

}  // namespace
}  // namespace rocemu::system_test
