// A registered buffer and two connected QPs, for tests of messages from and to that buffer.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/system/map_pages.h"
#include "tests/system/transport_fixture.h"

namespace rocemu::system_test {

/// Has a buffer with a region, and two QPs. The completions of `sender` arrive at `cq`, and those
/// of `receiver` at `receive_cq`.
class BufferTest : public TransportTest {
 protected:
  /// The buffer has `size` bytes, and `receive_cq` has this number of entries.
  BufferTest(size_t size, int receive_entries) : size_(size), receive_entries_(receive_entries) {}

  void SetUp() override {
    TransportTest::SetUp();
    buffer = map_pages(size_);
    region.reset(ibv_reg_mr(pd.get(), buffer, size_, IBV_ACCESS_LOCAL_WRITE | kRemoteAccess));
    ASSERT_NE(region, nullptr);
    receive_cq = create_cq(receive_entries_);
    sender = make_qp({});
    receiver = make_qp({.cq = receive_cq.get()});
    ASSERT_NO_FATAL_FAILURE(bring_up_pair(sender.get(), receiver.get()));
  }
  void TearDown() override {
    sender.reset();
    receiver.reset();
    region.reset();
    munmap(buffer, size_);
  }

  ibv_sge part(size_t offset, uint32_t length) const {
    return {reinterpret_cast<uint64_t>(buffer + offset), length, region->lkey};
  }
  static int post_receive(ibv_qp* qp, uint64_t wr_id, std::vector<ibv_sge> list) {
    ibv_recv_wr wr{};
    wr.wr_id = wr_id;
    wr.sg_list = list.data();
    wr.num_sge = static_cast<int>(list.size());
    ibv_recv_wr* bad = nullptr;
    return ibv_post_recv(qp, &wr, &bad);
  }

  uint8_t* buffer = nullptr;
  MrPtr region;
  CqPtr receive_cq;
  QpPtr sender, receiver;

 private:
  size_t size_;
  int receive_entries_;
};

}  // namespace rocemu::system_test
