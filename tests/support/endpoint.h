// A client with the objects that a test of one connection needs: a PD, two CQs, a QP, and
// registered memory.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/support/bench.h"

namespace rocemu::test {

struct EndpointOptions {
  Connection connection;
  abi::QpCap cap = {.max_send_wr = 64,
                    .max_recv_wr = 64,
                    .max_send_sge = 4,
                    .max_recv_sge = 4,
                    .max_inline_data = 128};
  uint32_t cq_capacity = 256;
  uint64_t channel = 0;  // the channel of both CQs, or 0 for none
  bool sig_all = false;
  size_t buffer_size = 1 << 16;
  uint32_t recv_access = abi::kAccessLocalWrite;  // access flags of the receive buffer's region
  uint32_t srq_wr = 0;                            // number of WQEs of an SRQ, or 0 for no SRQ
};

class Endpoint {
 public:
  // The addresses of each client's buffers, and the handles in the events of its objects.
  static constexpr uint64_t kSendBuffer = 0x10000000;
  static constexpr uint64_t kRecvBuffer = 0x20000000;
  static constexpr uint64_t kQpHandle = 501;
  static constexpr uint64_t kSendCqHandle = 601;
  static constexpr uint64_t kRecvCqHandle = 602;
  static constexpr uint64_t kSrqHandle = 701;

  Endpoint(Bench& bench, engine::ClientId id, engine::DeviceIndex device,
           const EndpointOptions& options)
      : client(bench, id, device), pd(client.alloc_pd()) {
    bench.memory.map(id, kSendBuffer, options.buffer_size);
    bench.memory.map(id, kRecvBuffer, options.buffer_size);
    send_mr = client.reg_mr(pd, kSendBuffer, options.buffer_size, 0);
    recv_mr = client.reg_mr(pd, kRecvBuffer, options.buffer_size, options.recv_access);
    send_cq = client.create_cq(options.cq_capacity, kSendCqHandle, options.channel);
    recv_cq = client.create_cq(options.cq_capacity, kRecvCqHandle, options.channel);
    if (options.srq_wr != 0) {
      srq = client.create_srq({.pd = pd, .max_wr = options.srq_wr, .user_handle = kSrqHandle});
    }
    qpn = client.create_qp({.pd = pd,
                            .send_cq = send_cq,
                            .recv_cq = recv_cq,
                            .srq = srq,
                            .type = options.connection.type,
                            .cap = options.cap,
                            .sig_all = options.sig_all,
                            .user_handle = kQpHandle});
  }

  Bench& bench() { return client.bench(); }
  ArrayMemory& memory() { return client.bench().memory; }

  /// Return an SGE for bytes [offset, offset + length) of the send buffer or the receive buffer.
  abi::Sge send_sge(uint32_t length, uint64_t offset = 0) const {
    return {kSendBuffer + offset, length, send_mr.lkey};
  }
  abi::Sge recv_sge(uint32_t length, uint64_t offset = 0) const {
    return {kRecvBuffer + offset, length, recv_mr.lkey};
  }
  std::span<uint8_t> send_bytes(size_t length, uint64_t offset = 0) {
    return memory().at(client.id(), kSendBuffer + offset, length);
  }
  std::vector<uint8_t> recv_bytes(size_t length, uint64_t offset = 0) {
    const auto bytes = memory().at(client.id(), kRecvBuffer + offset, length);
    return {bytes.begin(), bytes.end()};
  }
  void fill_send_buffer(const std::vector<uint8_t>& bytes, uint64_t offset = 0) {
    const auto target = send_bytes(bytes.size(), offset);
    std::copy(bytes.begin(), bytes.end(), target.begin());
  }

  void post_send(const SendWr& wr) { client.post_send(qpn, wr); }
  void post_recv(const RecvWr& wr) {
    if (srq != 0) return client.post_srq_recv(srq, wr);
    client.post_recv(qpn, wr);
  }
  abi::QpState state() { return client.state(qpn); }

  Client client;
  uint32_t pd;
  Mr send_mr, recv_mr;
  uint32_t send_cq = 0, recv_cq = 0;
  uint32_t srq = 0;  // 0 if the QP has its own receive queue
  uint32_t qpn = 0;
};

}  // namespace rocemu::test
