// A thread polls for the last message and adds up what it holds. The main thread frees the buffers
// when all were sent, which it knows by the sender's completions.
// Depth 1: the buffers are freed after the message was polled, and before it is read.
#include "race.h"

enum { MESSAGES = 2 };
static struct end receiver, sender;
static volatile bool is_freed;
static bool right;

static void* add_up(void* unused) {
  for (int i = 0; i < MESSAGES; ++i) {
    const struct ibv_wc wc = wait_for_one(&receiver);
    require(!is_freed, "a buffer is read that was freed");
    (void)wc;
  }
  return unused;
}

int main(int argc, char** argv) {
  right = is_right(argc, argv);
  open_pair(&receiver, &sender);
  for (uint64_t i = 0; i < MESSAGES; ++i) post_receive(&receiver, i);
  const pthread_t poller = start(add_up, NULL);
  for (uint64_t i = 0; i < MESSAGES; ++i) post_send(&sender, i);
  for (int i = 0; i < MESSAGES; ++i) wait_for_one(&sender);
  if (right) join(poller);
  is_freed = true;
  if (!right) join(poller);
}
