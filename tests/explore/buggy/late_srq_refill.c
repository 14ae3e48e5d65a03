// The mistake: the shared receive queue is refilled only when IBV_EVENT_SRQ_LIMIT_REACHED comes.
// What a user sees: the server sleeps for ever, its clients fail with IBV_WC_RNR_RETRY_EXC_ERR.
// What provokes it: the event is lost, or comes before the messages that it is about were polled.
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>

#include "connection.h"

enum { RECEIVES = 8, LOW = 2, MESSAGES = 20 };

struct queue {
  struct ibv_srq* srq;
  struct ibv_mr* mr;
  int numbers[RECEIVES];
  int empty[RECEIVES];  // the indices of those to be posted
  int empty_count;
};

static void refill(struct queue* q) {
  if (q->empty_count == 0) return;  // none has been polled
  while (q->empty_count > 0) {
    const int index = q->empty[--q->empty_count];
    struct ibv_sge sge = {
        .addr = (uintptr_t)&q->numbers[index], .length = sizeof(int), .lkey = q->mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = (uint64_t)index, .sg_list = &sge, .num_sge = 1}, *bad;
    errno = ibv_post_srq_recv(q->srq, &wr, &bad);
    if (errno != 0) err(1, "ibv_post_srq_recv");
  }
  struct ibv_srq_attr attr = {.srq_limit = LOW};
  errno = ibv_modify_srq(q->srq, &attr, IBV_SRQ_LIMIT);
  if (errno != 0) err(1, "ibv_modify_srq");
}

static void handle_async_event(struct connection* c, struct queue* q) {
  struct ibv_async_event event;
  if (ibv_get_async_event(c->context, &event) != 0) err(1, "ibv_get_async_event");
  if (event.event_type == IBV_EVENT_SRQ_LIMIT_REACHED) refill(q);
  ibv_ack_async_event(&event);
}

// Returns how many messages came.
static int handle_messages(struct connection* c, struct queue* q, int* sum) {
  take_event(c);
  arm(c);
  int count = 0;
  struct ibv_wc wc;
  for (; poll_one(c, &wc) > 0; ++count) {
    if (wc.status != IBV_WC_SUCCESS) errx(1, "%s", ibv_wc_status_str(wc.status));
    *sum += q->numbers[wc.wr_id];
    q->empty[q->empty_count++] = (int)wc.wr_id;
  }
#ifdef CORRECTED
  if (q->empty_count >= RECEIVES / 2) refill(q);
#endif
  return count;
}

static void server(int socket) {
  struct connection c = {0};
  struct queue q = {.empty_count = RECEIVES};
  int sum = 0;
  for (int i = 0; i < RECEIVES; ++i) q.empty[i] = i;
  open_device(&c);
  c.pd = ibv_alloc_pd(c.context);
  c.channel = ibv_create_comp_channel(c.context);
  if (c.pd == NULL || c.channel == NULL) err(1, "cannot open");
  c.cq = ibv_create_cq(c.context, RECEIVES, NULL, c.channel, 0);
  struct ibv_srq_init_attr init = {.attr = {.max_wr = RECEIVES, .max_sge = 1}};
  q.srq = ibv_create_srq(c.pd, &init);
  if (c.cq == NULL || q.srq == NULL) err(1, "cannot create queues");
  struct ibv_qp_init_attr qp_init = {.send_cq = c.cq,
                                     .recv_cq = c.cq,
                                     .srq = q.srq,
                                     .qp_type = IBV_QPT_RC,
                                     .cap = {.max_send_wr = 1, .max_send_sge = 1}};
  c.qp = ibv_create_qp(c.pd, &qp_init);
  if (c.qp == NULL) err(1, "ibv_create_qp");
  reset_queue_pair(&c);
  q.mr = register_memory(&c, q.numbers, sizeof q.numbers);
  refill(&q);
  arm(&c);
  exchange(&c, socket, NULL, NULL);

  for (int received = 0; received < MESSAGES;) {
    struct pollfd entries[] = {{.fd = c.context->async_fd, .events = POLLIN},
                               {.fd = c.channel->fd, .events = POLLIN}};
#ifdef CORRECTED
    if (poll(entries, 2, PATIENCE_MS) <= 0) errx(1, "%d of %d messages", received, MESSAGES);
#else
    if (poll(entries, 2, -1) < 0) err(1, "poll");
#endif
    if (entries[1].revents != 0) received += handle_messages(&c, &q, &sum);
    if (entries[0].revents != 0) handle_async_event(&c, &q);
  }
  printf("%d messages, sum %d\n", MESSAGES, sum);
  errno = ibv_destroy_qp(c.qp);
  c.qp = NULL;
  if (errno != 0 || (errno = ibv_destroy_srq(q.srq)) != 0) err(1, "cannot destroy");
  deregister(q.mr);
  close_connection(&c);
}

static void client(int socket) {
  struct connection c = {0};
  open_device(&c);
  open_queues(&c, 1, 1, 2);
  int number;
  struct ibv_mr* mr = register_memory(&c, &number, sizeof number);
  exchange(&c, socket, NULL, NULL);
  for (number = 0; number < MESSAGES; ++number) {
    post_send(&c, mr, &number, sizeof number, (uint64_t)number);
    await_success(&c);
  }
  deregister(mr);
  close_connection(&c);
}

int main(void) {
  return run_server_and_client(server, client);
}
