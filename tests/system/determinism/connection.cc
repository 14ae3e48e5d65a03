#include "connection.h"

#include <netinet/in.h>
#include <rdma/rdma_verbs.h>

#include <cstdio>
#include <cstdlib>

#include "side.h"

namespace rocemu::determinism {
namespace {

constexpr uint32_t kSize = 64;
constexpr int kResolveMs = 2000;

sockaddr_in loopback(uint16_t big_endian_port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = big_endian_port;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

rdma_conn_param parameters() {
  rdma_conn_param param{};
  param.responder_resources = param.initiator_depth = 1;
  param.retry_count = param.rnr_retry_count = 7;
  return param;
}

}  // namespace

CmChannel::CmChannel() : channel_(rdma_create_event_channel()) {
  if (channel_ == nullptr) fail("rdma_create_event_channel");
}

CmChannel::~CmChannel() {
  rdma_destroy_event_channel(channel_);
}

rdma_cm_id* CmChannel::expect(rdma_cm_event_type type) {
  rdma_cm_event* event = nullptr;
  if (rdma_get_cm_event(channel_, &event) != 0) fail("rdma_get_cm_event");
  if (event->event != type) {
    std::fprintf(stderr, "%s instead of %s\n", rdma_event_str(event->event), rdma_event_str(type));
    std::exit(1);
  }
  rdma_cm_id* id = event->id;
  rdma_ack_cm_event(event);
  return id;
}

Connection::Connection(rdma_cm_id* id) : id_(id), buffer_(size_t{2} * kSize) {
  ibv_qp_init_attr init{};
  init.qp_type = IBV_QPT_RC;
  init.sq_sig_all = 1;
  init.cap = {16, 16, 1, 1, 0};
  if (rdma_create_qp(id, nullptr, &init) != 0) fail("rdma_create_qp");
  mr_ = rdma_reg_msgs(id, buffer_.data(), buffer_.size());
  if (mr_ == nullptr) fail("rdma_reg_msgs");
  for (uint32_t i = 0; i < kReceives; ++i) {
    if (rdma_post_recv(id, nullptr, buffer_.data() + kSize, kSize, mr_) != 0)
      fail("rdma_post_recv");
  }
}

Connection::~Connection() {
  rdma_dereg_mr(mr_);
  rdma_destroy_qp(id_);
  rdma_destroy_id(id_);
}

void Connection::send() {
  ibv_wc wc{};
  if (rdma_post_send(id_, nullptr, buffer_.data(), kSize, mr_, 0) != 0) fail("rdma_post_send");
  if (rdma_get_send_comp(id_, &wc) != 1 || wc.status != IBV_WC_SUCCESS) fail("rdma_get_send_comp");
}

void Connection::receive() {
  ibv_wc wc{};
  if (rdma_get_recv_comp(id_, &wc) != 1 || wc.status != IBV_WC_SUCCESS) fail("rdma_get_recv_comp");
  if (rdma_post_recv(id_, nullptr, buffer_.data() + kSize, kSize, mr_) != 0) fail("rdma_post_recv");
}

Listener::Listener(CmChannel& channel) {
  sockaddr_in any = loopback(0);
  if (rdma_create_id(channel.get(), &id_, nullptr, RDMA_PS_TCP) != 0) fail("rdma_create_id");
  if (rdma_bind_addr(id_, reinterpret_cast<sockaddr*>(&any)) != 0) fail("rdma_bind_addr");
  if (rdma_listen(id_, 64) != 0) fail("rdma_listen");
}

Listener::~Listener() {
  rdma_destroy_id(id_);
}

uint16_t Listener::port() const {
  return rdma_get_src_port(id_);
}

void accept(Connection& connection) {
  rdma_conn_param param = parameters();
  if (rdma_accept(connection.id(), &param) != 0) fail("rdma_accept");
}

rdma_cm_id* resolve(CmChannel& channel, uint16_t port) {
  rdma_cm_id* id = nullptr;
  sockaddr_in to = loopback(port);
  if (rdma_create_id(channel.get(), &id, nullptr, RDMA_PS_TCP) != 0) fail("rdma_create_id");
  if (rdma_resolve_addr(id, nullptr, reinterpret_cast<sockaddr*>(&to), kResolveMs) != 0)
    fail("rdma_resolve_addr");
  channel.expect(RDMA_CM_EVENT_ADDR_RESOLVED);
  if (rdma_resolve_route(id, kResolveMs) != 0) fail("rdma_resolve_route");
  channel.expect(RDMA_CM_EVENT_ROUTE_RESOLVED);
  return id;
}

void establish(CmChannel& channel, Connection& connection) {
  rdma_conn_param param = parameters();
  if (rdma_connect(connection.id(), &param) != 0) fail("rdma_connect");
  channel.expect(RDMA_CM_EVENT_ESTABLISHED);
}

}  // namespace rocemu::determinism
