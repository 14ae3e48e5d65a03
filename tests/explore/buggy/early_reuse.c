// The mistake: the receiver posts a buffer again as soon as it has handed its address to a worker,
// who has yet to read it.
// What a user sees: one order twice and another one never, with exit status 0.
// What provokes it: an order is late and comes together with the next one, here since it is lost
// once. Otherwise there is time enough between two orders.
#include <err.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "connection.h"

enum { ORDERS = 5, PERIOD_MS = 50, WORK_MS = 20 };

struct order {
  int number;
  int amount;
};

struct job {
  const struct order* order;
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  int total;
  int finished;  // orders
  int end;
};

static void sleep_ms(int ms) {
  const struct timespec time = {ms / 1000, ms % 1000 * 1000000L};
  nanosleep(&time, NULL);
}

static void* work(void* argument) {
  struct job* job = argument;
  pthread_mutex_lock(&job->mutex);
  for (;;) {
    while (job->order == NULL && !job->end) pthread_cond_wait(&job->changed, &job->mutex);
    if (job->order == NULL) break;
    const struct order* order = job->order;
    pthread_mutex_unlock(&job->mutex);
    sleep_ms(WORK_MS);  // looks up who has sent it
    const struct order seen = *order;
    pthread_mutex_lock(&job->mutex);
    printf("order %d: %d\n", seen.number, seen.amount);
    job->total += seen.amount;
    ++job->finished;
    job->order = NULL;
    pthread_cond_broadcast(&job->changed);
  }
  pthread_mutex_unlock(&job->mutex);
  return NULL;
}

static void wait_until_idle(struct job* job) {
  pthread_mutex_lock(&job->mutex);
  while (job->order != NULL) pthread_cond_wait(&job->changed, &job->mutex);
  pthread_mutex_unlock(&job->mutex);
}

static void hand_over(struct job* job, const struct order* order) {
  pthread_mutex_lock(&job->mutex);
  job->order = order;
  pthread_cond_broadcast(&job->changed);
  pthread_mutex_unlock(&job->mutex);
}

static void server(int socket) {
  struct connection c = {0};
  struct order buffer;
  struct job job = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
  pthread_t worker;
  open_device(&c);
  open_queues(&c, 1, 1, 2);
  struct ibv_mr* mr = register_memory(&c, &buffer, sizeof buffer);
  if (pthread_create(&worker, NULL, work, &job) != 0) errx(1, "pthread_create");
  post_receive(&c, mr, &buffer, sizeof buffer, 0);
  exchange(&c, socket, NULL, NULL);
  for (int i = 0; i < ORDERS; ++i) {
    await_success(&c);
    wait_until_idle(&job);
    hand_over(&job, &buffer);
#ifdef CORRECTED
    wait_until_idle(&job);
#endif
    if (i + 1 < ORDERS) post_receive(&c, mr, &buffer, sizeof buffer, 0);
  }
  wait_until_idle(&job);
  pthread_mutex_lock(&job.mutex);
  job.end = 1;
  pthread_cond_broadcast(&job.changed);
  pthread_mutex_unlock(&job.mutex);
  pthread_join(worker, NULL);
  printf("%d orders, total %d\n", job.finished, job.total);
  deregister(mr);
  close_connection(&c);
}

static void client(int socket) {
  struct connection c = {0};
  struct order orders[ORDERS];
  open_device(&c);
  open_queues(&c, ORDERS, 1, ORDERS + 1);
  struct ibv_mr* mr = register_memory(&c, orders, sizeof orders);
  exchange(&c, socket, NULL, NULL);
  for (int i = 0; i < ORDERS; ++i) {
    sleep_ms(PERIOD_MS);
    orders[i] = (struct order){i + 1, (i + 1) * 100};
    post_send(&c, mr, &orders[i], sizeof orders[i], 0);
  }
  for (int i = 0; i < ORDERS; ++i) await_success(&c);
  deregister(mr);
  close_connection(&c);
}

int main(void) {
  return run_server_and_client(server, client);
}
