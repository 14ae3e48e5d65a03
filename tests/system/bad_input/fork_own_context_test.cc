// Tests a child of fork() that opens or imports the device to make its own requests.
#include <atomic>
#include <cstring>
#include <thread>

#include "tests/system/bad_input/fork_fixture.h"

namespace rocemu::system_test {
namespace {

/// In a child of fork(), creates a QP and exchanges a message of this QP with itself.
void exchange_of_its_own(const Report& report, ibv_context* own, ibv_pd* own_pd) {
  struct Fixture : TransportTest {
    void TestBody() override {}
  };
  alignas(4096) static uint8_t bytes[8192];
  const MrPtr region(ibv_reg_mr(own_pd, bytes, sizeof bytes, IBV_ACCESS_LOCAL_WRITE));
  const CqPtr queue(ibv_create_cq(own, 16, nullptr, nullptr, 0));
  if (region == nullptr || queue == nullptr) return report.wrong("objects of its own");
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = queue.get();
  init.qp_type = IBV_QPT_UD;
  init.cap = {.max_send_wr = 4,
              .max_recv_wr = 4,
              .max_send_sge = 1,
              .max_recv_sge = 1,
              .max_inline_data = 0};
  const QpPtr own_qp(ibv_create_qp(own_pd, &init));
  if (own_qp == nullptr) return report.wrong("a QP of its own");
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  attr.qkey = kQkey;
  int error = ibv_modify_qp(own_qp.get(), &attr,
                            IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
  attr.qp_state = IBV_QPS_RTR;
  if (error == 0) error = ibv_modify_qp(own_qp.get(), &attr, IBV_QP_STATE);
  attr.qp_state = IBV_QPS_RTS;
  if (error == 0) error = ibv_modify_qp(own_qp.get(), &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
  ibv_ah_attr address{};
  address.is_global = 1;
  address.port_num = 1;
  if (error == 0) error = ibv_query_gid(own, 1, 0, &address.grh.dgid);
  const AhPtr own_ah(ibv_create_ah(own_pd, &address));
  if (error != 0 || own_ah == nullptr) return report.wrong("a QP of its own that is ready");
  std::strcpy(reinterpret_cast<char*>(bytes), "the child's");
  ibv_sge to{reinterpret_cast<uint64_t>(bytes) + 4096, 1024, region->lkey};
  ibv_recv_wr recv{};
  recv.sg_list = &to;
  recv.num_sge = 1;
  ibv_recv_wr* bad_recv;
  ibv_sge from{reinterpret_cast<uint64_t>(bytes), 64, region->lkey};
  ibv_send_wr send{};
  send.sg_list = &from;
  send.num_sge = 1;
  send.opcode = IBV_WR_SEND;
  send.send_flags = IBV_SEND_SIGNALED;
  send.wr.ud.ah = own_ah.get();
  send.wr.ud.remote_qpn = own_qp->qp_num;
  send.wr.ud.remote_qkey = kQkey;
  ibv_send_wr* bad_send;
  error = ibv_post_recv(own_qp.get(), &recv, &bad_recv);
  if (error == 0) error = ibv_post_send(own_qp.get(), &send, &bad_send);
  report.expect(error == 0, "posting");
  for (int found = 0; found < 2;) {
    ibv_wc wc;
    const int n = ibv_poll_cq(queue.get(), 1, &wc);
    if (n < 0 || (n == 1 && wc.status != IBV_WC_SUCCESS)) return report.wrong("polling");
    found += n;
  }
  report.expect(std::strcmp(reinterpret_cast<char*>(bytes) + 4096 + kGrhSize, "the child's") == 0,
                "the message");
}

TEST_F(ForkVerbs, OfAContextThatTheChildOpenedWork) {
  EXPECT_EQ(in_child([](const Report& report) {
              const ContextPtr own = open_device();
              const PdPtr own_pd(own != nullptr ? ibv_alloc_pd(own.get()) : nullptr);
              if (own_pd == nullptr) return report.wrong("a context of its own");
              exchange_of_its_own(report, own.get(), own_pd.get());
            }),
            "");
  ASSERT_NO_FATAL_FAILURE(expect_unharmed(8));
}

// ibv_import_device(3): "The imported ibv_context ... shares the same underlying kernel resources".
TEST_F(ForkVerbs, OfAContextThatTheChildImportedWork) {
  EXPECT_EQ(in_child([this](const Report& report) {
              ibv_context* own = ibv_import_device(dup(context->cmd_fd));
              if (own == nullptr) return report.wrong("ibv_import_device");
              ibv_pd* same = ibv_import_pd(own, pd->handle);
              if (same == nullptr) return report.wrong("ibv_import_pd");
              exchange_of_its_own(report, own, same);
              ibv_unimport_pd(same);
              report.expect(ibv_close_device(own) == 0, "ibv_close_device");
            }),
            "");
  ASSERT_NO_FATAL_FAILURE(expect_unharmed(8));
}

// Other threads register memory during fork(). The child must not hang on a lock that they held.
TEST_F(ForkVerbs, OfAChildsOwnContextDoNotHangWhateverOtherThreadsDid) {
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&, i] {
      while (!done) {
        const MrPtr region(
            ibv_reg_mr(pd.get(), slot(static_cast<size_t>(5 + i)), kSlot, IBV_ACCESS_LOCAL_WRITE));
      }
    });
  }
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(in_child([](const Report& report) {
                report.begins("ibv_open_device");
                const ContextPtr own = open_device();
                const PdPtr own_pd(own != nullptr ? ibv_alloc_pd(own.get()) : nullptr);
                if (own_pd == nullptr) return report.wrong("a context of its own");
                exchange_of_its_own(report, own.get(), own_pd.get());
              }),
              "");
  }
  done = true;
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace rocemu::system_test
