// A thread says by a flag that the key of its memory is there, before it has registered the memory.
// Depth 1: the other thread looks between.
#include <err.h>
#include <sched.h>
#include <stddef.h>

#include "race.h"

static struct end one, other;
static volatile bool is_ready;
static volatile uint32_t key;
static char memory[64];
static bool right;

static void* publish(void* unused) {
  if (!right) is_ready = true;
  const struct ibv_mr* mr = ibv_reg_mr(one.pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE);
  if (mr == NULL) err(1, "ibv_reg_mr");
  struct ibv_port_attr port;
  if (ibv_query_port(one.context, 1, &port) != 0) err(1, "ibv_query_port");
  key = mr->rkey;
  is_ready = true;
  return unused;
}

int main(int argc, char** argv) {
  right = is_right(argc, argv);
  open_pair(&one, &other);
  const pthread_t thread = start(publish, NULL);
  while (!is_ready) sched_yield();
  require(key != 0, "the key is not there");
  join(thread);
}
