// A thread that waits with std::atomic::wait() is notified of a message before the message's length
// is written. Depth 1: the length is read after the notification and before it is written.
#include <infiniband/verbs.h>
#include <pthread.h>

#include <atomic>
#include <cstdint>

extern "C" {
#include "race.h"
}

namespace {

std::atomic<int> is_there = 0;
int length = 0;
struct end receiver, sender;

void* read_length(void*) {
  is_there.wait(0);
  require(length == 64, "the length is not there");
  return nullptr;
}

}  // namespace

int main(int argc, char** argv) {
  const bool right = is_right(argc, argv);
  open_pair(&receiver, &sender);
  post_receive(&receiver, 0);
  const pthread_t thread = start(read_length, nullptr);
  post_send(&sender, 0);
  wait_for_one(&receiver);
  if (right) length = 64;
  is_there = 1;
  is_there.notify_one();
  length = 64;
  join(thread);
}
