// Threads that poll completion queues, and print which completions each of their rounds found.
#include <array>
#include <string>

#include "programs.h"
#include "side.h"

namespace rocemu::determinism {
namespace {

/// Polls both CQs in turn until they have had `left` completions. Prints the completions that each
/// turn found.
void poll_in_turn(const std::string& name, std::array<Side*, 2> sides, uint32_t left) {
  std::string history = name + ":";
  while (left > 0) {
    std::string turn;
    for (size_t i = 0; i < sides.size(); ++i) {
      ibv_wc wc{};
      while (left > 0 && sides[i]->poll(wc)) {
        turn += (i == 0 ? "a" : "b") + std::to_string(wc.wr_id);
        --left;
      }
    }
    if (!turn.empty()) history += " " + turn;
  }
  say(history);
}

void answer(std::array<Side*, 2> sides, uint32_t messages) {
  for (uint32_t i = 0; i < messages; ++i) {
    for (Side* side : sides) {
      side->poll_for(1);
      side->post_send(i);
    }
  }
  for (Side* side : sides) side->poll_for(static_cast<int>(messages));
}

}  // namespace

void poll_two_cqs(uint32_t messages) {
  Device device, other("rocemu1");
  Side a(device), b(device), peer_a(device), peer_b(other);
  connect(a, peer_a);
  connect(b, peer_b);
  for (uint32_t i = 0; i < messages; ++i) {
    a.post_recv(i);
    b.post_recv(i);
    peer_a.post_send(i);
    peer_b.post_send(i);
    poll_in_turn("receivers", {&a, &b}, 2);
  }
  poll_in_turn("senders", {&peer_a, &peer_b}, 2 * messages);
}

void poll_two_cqs_of_processes(uint32_t messages) {
  const SocketPair first, second;
  start_child([&] {
    Device device("rocemu1");
    Side a(device), b(device);
    for (uint32_t i = 0; i < messages; ++i) {
      a.post_recv(i);
      b.post_recv(i);
    }
    connect_over(a, first.theirs);
    connect_over(b, second.theirs);
    // Completions of sends and receives are mixed in the CQs, so they are polled one by one.
    uint32_t sent = 0;
    std::string history = "child:";
    for (uint32_t left = 4 * messages; left > 0;) {
      for (Side* side : {&a, &b}) {
        ibv_wc wc{};
        if (!side->poll(wc)) continue;
        --left;
        history += (side == &a ? " a" : " b") + std::to_string(wc.wr_id);
        if (wc.opcode == IBV_WC_RECV) side->post_send(1000 + sent++);
      }
    }
    say(history);
  });
  Device device;
  Side a(device), b(device);
  for (uint32_t i = 0; i < messages; ++i) {
    a.post_recv(i);
    b.post_recv(i);
  }
  connect_over(a, first.ours);
  connect_over(b, second.ours);
  for (uint32_t i = 0; i < messages; ++i) {
    a.post_send(100 + i);
    b.post_send(100 + i);
    poll_in_turn("parent", {&a, &b}, 4);
  }
  wait_for_children(1);
}

void count_empty_polls(uint32_t messages) {
  const SocketPair link;
  start_child([&] {
    Device device;
    Side a(device), b(device);
    for (uint32_t i = 0; i < messages; ++i) {
      a.post_recv(i);
      b.post_recv(i);
    }
    connect_over(a, link.theirs);
    connect_over(b, link.theirs);
    answer({&a, &b}, messages);
  });
  Device device;
  Side a(device), b(device);
  for (uint32_t i = 0; i < messages; ++i) {
    a.post_recv(i);
    b.post_recv(i);
  }
  connect_over(a, link.ours);
  connect_over(b, link.ours);
  std::string history = "empty polls:";
  for (uint32_t i = 0; i < messages; ++i) {
    for (Side* side : {&a, &b}) {
      side->post_send(i);
      uint32_t empty = 0;
      for (int left = 2; left > 0;) {
        ibv_wc wc{};
        side->poll(wc) ? --left : static_cast<int>(++empty);
      }
      history += " " + std::to_string(empty);
    }
  }
  say(history);
  wait_for_children(1);
}

}  // namespace rocemu::determinism
