// A ring all-reduce: RANKS processes, each on a device of its own (rocemu0, rocemu1, ...), add up a
// vector of COUNT numbers by RDMA WRITEs to their right neighbors.
//
//   ring_all_reduce RANKS COUNT
//
// Prints the nanoseconds from the first post to the last completion of any rank, if every number of
// every rank is right. After RANKS - 1 steps each rank has the sum of one chunk, and after another
// RANKS - 1 steps the sums of all chunks (Patarasuk and Yuan, 2009).
#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { kMostRanks = 64 };

// What a rank sends to its neighbors before they connect.
struct Address {
  uint32_t qp_num;
  uint32_t rkey;
  uint64_t memory;
  union ibv_gid gid;
};

struct Rank {
  int number, ranks;
  size_t chunk;       // the count of numbers in a chunk
  uint32_t *vector;   // RANKS chunks
  uint32_t *arrived;  // RANKS - 1 chunks, one for each step of the first phase
  struct ibv_mr *mr;
  struct ibv_cq *send_cq, *recv_cq;
  struct ibv_qp *to_right, *from_left;
  struct Address right;
};

static void fail(const char *what) {
  perror(what);
  exit(1);
}

static int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void transfer(int fd, void *data, size_t size, int is_write) {
  char *at = data;
  while (size > 0) {
    const ssize_t done = is_write ? write(fd, at, size) : read(fd, at, size);
    if (done <= 0) fail("the pipe between the processes");
    at += done;
    size -= (size_t)done;
  }
}

static struct ibv_context *open_device(int number) {
  char name[32];
  snprintf(name, sizeof name, "rocemu%d", number);
  struct ibv_device **list = ibv_get_device_list(NULL);
  for (int i = 0; list != NULL && list[i] != NULL; ++i) {
    if (strcmp(ibv_get_device_name(list[i]), name) == 0) return ibv_open_device(list[i]);
  }
  return NULL;
}

static struct ibv_qp *make_qp(struct Rank *rank, struct ibv_pd *pd) {
  struct ibv_qp_init_attr attr = {.send_cq = rank->send_cq,
                                  .recv_cq = rank->recv_cq,
                                  .cap = {2 * kMostRanks, 2 * kMostRanks, 1, 1, 0},
                                  .qp_type = IBV_QPT_RC,
                                  .sq_sig_all = 1};
  struct ibv_qp *qp = ibv_create_qp(pd, &attr);
  if (qp == NULL) fail("ibv_create_qp");
  return qp;
}

static void connect_qp(struct ibv_qp *qp, const struct Address *peer) {
  struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT,
                             .port_num = 1,
                             .qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE};
  struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR,
                            .path_mtu = IBV_MTU_4096,
                            .dest_qp_num = peer->qp_num,
                            .max_dest_rd_atomic = 1,
                            .min_rnr_timer = 1,
                            .ah_attr = {.is_global = 1,
                                        .port_num = 1,
                                        .grh = {.dgid = peer->gid, .hop_limit = 64}}};
  struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS,
                            .timeout = 14,
                            .retry_cnt = 7,
                            .rnr_retry = 7,
                            .max_rd_atomic = 1};
  if (ibv_modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) ||
      ibv_modify_qp(qp, &rtr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                                  IBV_QP_MIN_RNR_TIMER) ||
      ibv_modify_qp(qp, &rts, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                  IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC))
    fail("ibv_modify_qp");
}

// Writes a chunk into the right neighbor's memory, at `place` numbers from the begin of its vector.
static void write_chunk(struct Rank *rank, const uint32_t *chunk, size_t place, uint32_t step) {
  struct ibv_sge sge = {(uintptr_t)chunk, (uint32_t)(rank->chunk * sizeof *chunk), rank->mr->lkey};
  struct ibv_send_wr wr = {.wr_id = step,
                           .sg_list = &sge,
                           .num_sge = 1,
                           .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
                           .imm_data = htonl(step),
                           .wr.rdma = {rank->right.memory + place * sizeof *chunk,
                                       rank->right.rkey}};
  struct ibv_send_wr *bad;
  if (ibv_post_send(rank->to_right, &wr, &bad)) fail("ibv_post_send");
}

static void await(struct ibv_cq *cq) {
  struct ibv_wc wc;
  int found = 0;
  while (found == 0) found = ibv_poll_cq(cq, 1, &wc);
  if (found < 0 || wc.status != IBV_WC_SUCCESS) {
    fprintf(stderr, "completion: %s\n", ibv_wc_status_str(wc.status));
    exit(1);
  }
}

static uint32_t *chunk_of(struct Rank *rank, int number) {
  const int ranks = rank->ranks;
  return rank->vector + (size_t)((number % ranks + ranks) % ranks) * rank->chunk;
}

static void all_reduce(struct Rank *rank) {
  const int last = rank->ranks - 1;
  for (int step = 0; step < last; ++step) {
    const size_t place = (size_t)(rank->ranks + step) * rank->chunk;
    write_chunk(rank, chunk_of(rank, rank->number - step), place, (uint32_t)step);
    await(rank->recv_cq);
    uint32_t *sum = chunk_of(rank, rank->number - step - 1);
    const uint32_t *other = rank->arrived + (size_t)step * rank->chunk;
    for (size_t i = 0; i < rank->chunk; ++i) sum[i] += other[i];
  }
  for (int step = 0; step < last; ++step) {
    const uint32_t *chunk = chunk_of(rank, rank->number + 1 - step);
    write_chunk(rank, chunk, (size_t)(chunk - rank->vector), (uint32_t)(last + step));
    await(rank->recv_cq);
  }
  for (int step = 0; step < 2 * last; ++step) await(rank->send_cq);
}

// Checks the sums. Number i of rank r is i * (r + 1), so the sum of all ranks is i * RANKS * (RANKS
// + 1) / 2.
static int is_right(const struct Rank *rank) {
  const size_t count = rank->chunk * (size_t)rank->ranks;
  const uint32_t ranks = (uint32_t)rank->ranks;
  for (size_t i = 0; i < count; ++i) {
    if (rank->vector[i] != (uint32_t)i * (ranks * (ranks + 1) / 2)) return 0;
  }
  return 1;
}

// Runs a rank. The processes exchange their addresses and times through the parent, with which `fd`
// is connected.
static int run_rank(struct Rank *rank, int fd) {
  struct ibv_context *context = open_device(rank->number);
  if (context == NULL) fail("ibv_open_device");
  struct ibv_pd *pd = ibv_alloc_pd(context);
  const size_t count = rank->chunk * (size_t)rank->ranks;
  const size_t size = (count + rank->chunk * (size_t)(rank->ranks - 1)) * sizeof *rank->vector;
  rank->vector = malloc(size);
  rank->arrived = rank->vector + count;
  for (size_t i = 0; i < count; ++i) rank->vector[i] = (uint32_t)i * (uint32_t)(rank->number + 1);
  rank->mr = ibv_reg_mr(pd, rank->vector, size, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  rank->send_cq = ibv_create_cq(context, 2 * kMostRanks, NULL, NULL, 0);
  rank->recv_cq = ibv_create_cq(context, 2 * kMostRanks, NULL, NULL, 0);
  if (rank->mr == NULL || rank->send_cq == NULL || rank->recv_cq == NULL) fail("objects");
  rank->to_right = make_qp(rank, pd);
  rank->from_left = make_qp(rank, pd);

  struct Address own[2] = {
      {rank->to_right->qp_num, rank->mr->rkey, (uintptr_t)rank->vector, {{0}}},
      {rank->from_left->qp_num, rank->mr->rkey, (uintptr_t)rank->vector, {{0}}}};
  if (ibv_query_gid(context, 1, 0, &own[0].gid)) fail("ibv_query_gid");
  own[1].gid = own[0].gid;
  struct Address all[kMostRanks][2];
  transfer(fd, own, sizeof own, 1);
  transfer(fd, all, sizeof(all[0]) * (size_t)rank->ranks, 0);
  rank->right = all[(rank->number + 1) % rank->ranks][1];
  connect_qp(rank->to_right, &rank->right);
  connect_qp(rank->from_left, &all[(rank->number + rank->ranks - 1) % rank->ranks][0]);
  for (int i = 0; i < 2 * (rank->ranks - 1); ++i) {
    struct ibv_recv_wr wr = {.wr_id = (uint64_t)i}, *bad;
    if (ibv_post_recv(rank->from_left, &wr, &bad)) fail("ibv_post_recv");
  }
  char ready = 1;
  transfer(fd, &ready, 1, 1);
  transfer(fd, &ready, 1, 0);

  int64_t times[2] = {now_ns(), 0};
  all_reduce(rank);
  times[1] = now_ns();
  if (!is_right(rank)) {
    fprintf(stderr, "rank %d has a wrong sum\n", rank->number);
    return 1;
  }
  transfer(fd, times, sizeof times, 1);
  transfer(fd, &ready, 1, 0);  // waits, because other ranks may still write to this rank
  return 0;
}

int main(int argc, char **argv) {
  const int ranks = argc == 3 ? atoi(argv[1]) : 0;
  const long count = argc == 3 ? atol(argv[2]) : 0;
  if (ranks < 2 || ranks > kMostRanks || count < ranks || count % ranks != 0) {
    fprintf(stderr, "usage: ring_all_reduce RANKS COUNT, a multiple of RANKS\n");
    return 2;
  }
  int ends[kMostRanks];
  for (int i = 0; i < ranks; ++i) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) fail("socketpair");
    ends[i] = pair[0];
    const pid_t pid = fork();
    if (pid < 0) fail("fork");
    if (pid == 0) {
      for (int k = 0; k <= i; ++k) close(ends[k]);
      struct Rank rank = {.number = i, .ranks = ranks, .chunk = (size_t)(count / ranks)};
      _exit(run_rank(&rank, pair[1]));
    }
    close(pair[1]);
  }
  struct Address all[kMostRanks][2];
  for (int i = 0; i < ranks; ++i) transfer(ends[i], all[i], sizeof all[i], 0);
  for (int i = 0; i < ranks; ++i) transfer(ends[i], all, sizeof(all[0]) * (size_t)ranks, 1);
  char ready = 1;
  for (int i = 0; i < ranks; ++i) transfer(ends[i], &ready, 1, 0);
  for (int i = 0; i < ranks; ++i) transfer(ends[i], &ready, 1, 1);
  int64_t begin = INT64_MAX, end = 0;
  for (int i = 0; i < ranks; ++i) {
    int64_t times[2];
    transfer(ends[i], times, sizeof times, 0);
    if (times[0] < begin) begin = times[0];
    if (times[1] > end) end = times[1];
  }
  for (int i = 0; i < ranks; ++i) transfer(ends[i], &ready, 1, 1);
  int result = 0;
  for (int i = 0; i < ranks; ++i) {
    int status = 0;
    if (wait(&status) < 0 || status != 0) result = 1;
  }
  printf("%lld ns\n", (long long)(end - begin));
  return result;
}
