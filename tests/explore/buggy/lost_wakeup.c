// The mistake: the receiver empties the CQ, writes its journal, and only then arms the CQ. What
// completes in between raises no event, and nobody polls again before sleeping.
// What a user sees: once in a while the receiver sleeps for ever beside a completion.
// What provokes it: the last sample but one is lost and comes 67 ms late, by the ACK timeout, just
// before the last one.
#include <err.h>
#include <stdio.h>
#include <time.h>

#include "connection.h"

enum { SAMPLES = 5, PERIOD_MS = 70, JOURNAL_MS = 10 };

static void sleep_ms(int ms) {
  const struct timespec time = {ms / 1000, ms % 1000 * 1000000L};
  nanosleep(&time, NULL);
}

static void write_journal(void) {
  sleep_ms(JOURNAL_MS);  // until it is on the disk
}

// Adds up what has come.
static int drain(struct connection* c, const int* samples, int* sum) {
  struct ibv_wc wc;
  int count = 0;
  for (; poll_one(c, &wc) > 0; ++count) {
    if (wc.status != IBV_WC_SUCCESS) errx(1, "%s", ibv_wc_status_str(wc.status));
    *sum += samples[wc.wr_id];
  }
  return count;
}

static void server(int socket) {
  struct connection c = {0};
  int samples[SAMPLES], sum = 0;
  open_device(&c);
  open_queues(&c, 1, SAMPLES, SAMPLES);
  struct ibv_mr* mr = register_memory(&c, samples, sizeof samples);
  for (int i = 0; i < SAMPLES; ++i) post_receive(&c, mr, &samples[i], sizeof(int), (uint64_t)i);
  arm(&c);
  exchange(&c, socket, NULL, NULL);

  for (int received = 0; received < SAMPLES;) {
#ifdef CORRECTED
    await_readable(c.channel->fd, "samples");
    take_event(&c);
    arm(&c);
    received += drain(&c, samples, &sum);
    write_journal();
#else
    take_event(&c);
    received += drain(&c, samples, &sum);
    write_journal();
    arm(&c);
#endif
  }
  printf("%d samples, sum %d\n", SAMPLES, sum);
  deregister(mr);
  close_connection(&c);
}

static void client(int socket) {
  struct connection c = {0};
  int samples[SAMPLES];
  open_device(&c);
  open_queues(&c, SAMPLES, 1, SAMPLES);
  struct ibv_mr* mr = register_memory(&c, samples, sizeof samples);
  exchange(&c, socket, NULL, NULL);
  for (int i = 0; i < SAMPLES; ++i) {
    sleep_ms(PERIOD_MS);
    samples[i] = i * i;
    post_send(&c, mr, &samples[i], sizeof(int), (uint64_t)i);
  }
  for (int i = 0; i < SAMPLES; ++i) await_success(&c);
  deregister(mr);
  close_connection(&c);
}

int main(void) {
  return run_server_and_client(server, client);
}
