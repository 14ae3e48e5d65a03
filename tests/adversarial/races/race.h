// The functions that the programs of this folder share: two queue pairs of one process, on two
// devices. Each program has a planted race, which its argument "right" leaves out. It exits with 0
// if all went well and with RACE if its own check finds what the race did; some hang instead.
#pragma once
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum { RACE = 3, SLOTS = 16, SLOT_SIZE = 64 };

struct end {
  struct ibv_context* context;
  struct ibv_pd* pd;
  struct ibv_comp_channel* channel;
  struct ibv_cq* cq;  // of both queues
  struct ibv_qp* qp;
  struct ibv_mr* mr;
  char memory[SLOTS][SLOT_SIZE];
};

bool is_right(int argc, char** argv);
// Creates and connects both ends. An end has no posted receives until the program calls
// post_receive() for it.
void open_pair(struct end* one, struct end* other);
void post_receive(struct end* e, uint64_t wr_id);  // in slot wr_id % SLOTS
void post_send(struct end* e, uint64_t wr_id);     // from there
bool poll_one(struct end* e, struct ibv_wc* wc);   // with status success
struct ibv_wc wait_for_one(struct end* e);         // polls until there is one
pthread_t start(void* (*function)(void*), void* argument);
void join(pthread_t thread);
void lock(pthread_mutex_t* mutex);
void unlock(pthread_mutex_t* mutex);
// Ends the program with RACE.
void require(bool holds, const char* what);
