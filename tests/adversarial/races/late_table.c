// A thread posts a request and then stores what it belongs to in a table, by its wr_id. Another one
// polls, and looks there.
// Depth 2: the completion is polled after the post and before the store.
#include "race.h"

enum { REQUESTS = 3 };
static struct end receiver, sender;
static const char* volatile table[REQUESTS];
static bool right;

static void* handle(void* unused) {
  for (int i = 0; i < REQUESTS; ++i)
    require(table[wait_for_one(&sender).wr_id] != NULL, "a completion belongs to nothing");
  return unused;
}

int main(int argc, char** argv) {
  right = is_right(argc, argv);
  open_pair(&receiver, &sender);
  for (uint64_t i = 0; i < REQUESTS; ++i) post_receive(&receiver, i);
  const pthread_t poller = start(handle, NULL);
  for (uint64_t i = 0; i < REQUESTS; ++i) {
    if (right) table[i] = "request";
    post_send(&sender, i);
    table[i] = "request";
  }
  join(poller);
}
