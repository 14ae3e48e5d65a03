// What the programs of this folder share: two queue pairs of one process, connected to each other
// on the first device. Every failure ends the process with a message and status 1; every wait ends
// after some seconds.
#pragma once
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { BUFFER_SIZE = 4096 };

struct pair_options {
  enum ibv_qp_type type;                                        // 0: RC
  uint32_t max_send_wr, max_recv_wr, max_send_sge, max_inline;  // 0: 4, 4, 1, 0
  int cqe;                                                      // of each CQ; 0: 16
  int all_signaled;                                             // sq_sig_all
  int with_channel;                                             // completion events
};

struct side {
  struct ibv_comp_channel* channel;
  struct ibv_cq* cq;  // of both queues
  struct ibv_qp* qp;
  struct ibv_mr* mr;
  char* buffer;  // of BUFFER_SIZE
};

struct pair {
  struct ibv_context* context;
  struct ibv_pd* pd;
  struct ibv_ah* ah;  // to the own device
  struct side a, b;
};

extern uint8_t rnr_retry;  // of connect_qp(); at first 7, without end

void check(int is_right, const char* what);
struct ibv_context* open_first_device(void);

void open_pair(struct pair* p, struct pair_options options);
void close_pair(struct pair* p);
void connect_qp(struct ibv_qp* qp, uint32_t to);  // RESET to RTS
void connect_pair(struct pair* p);

struct ibv_sge whole(struct side* s);                         // of the buffer
int post_send(struct side* s, uint64_t wr_id, int signaled);  // 8 bytes
int post_receive(struct side* s, uint64_t wr_id);
void move_to(struct ibv_qp* qp, enum ibv_qp_state state);
// Polls the CQ until it has a completion, and returns that completion.
struct ibv_wc next_completion(struct ibv_cq* cq);
struct ibv_wc next_success(struct ibv_cq* cq);
