// The common parts of the programs in this folder: pairs of QPs of one process, connected to each
// other on the first device. A program exits with status 0 if it found what it expects, and
// otherwise with 1 and a message.
#pragma once
#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct end {
  struct ibv_qp* qp;
  struct ibv_cq *send_cq, *recv_cq;
};

// Connected QPs: `a` sends to `b`, and `b` to `a`.
struct pair {
  struct end a, b;
};

// Prints the message and exits with status 1 unless `holds`.
void expect(int holds, const char* message);

struct pair connect_pair(void);  // RC, each queue with a CQ of its own
// Moves the QP to ERR, so that all its requests are flushed.
void fail_qp(struct ibv_qp* qp);

// Returns a region of `size` zeroed bytes, in whole pages. Allows all accesses, and `access`, too.
struct ibv_mr* make_region(size_t size, int access);

// Posts a request for `size` bytes of `from`, and of `to` unless it is a SEND. For atomics, which
// have 8 bytes, `value` is added or swapped, and `compare` compared.
struct request {
  enum ibv_wr_opcode opcode;
  struct ibv_mr* from;
  size_t from_offset;
  struct ibv_mr* to;
  size_t to_offset;
  size_t size;
  int flags;  // ibv_send_flags
  uint64_t wr_id, value, compare;
};
void post(struct end* end, struct request request);
void post_receive(struct end* end, struct ibv_mr* to, size_t size);

// Polls until the CQ has a completion, which must be successful, and returns the completion.
struct ibv_wc wait_for(struct ibv_cq* cq);
// Polls until the CQ has a completion, with any status, and returns the completion.
struct ibv_wc wait_for_any(struct ibv_cq* cq);

// Waits until the byte or word is not 0 any more, as a program does that polls memory.
void wait_for_byte(const uint8_t* byte);
uint64_t load(const void* word);
