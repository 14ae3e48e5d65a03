// Clients that are gone, and those whose device is. One of them may have had a million objects, and
// the others are not to wait until all of those are destroyed: so that is done by and by.
#pragma once

#include <cstdint>
#include <deque>

#include "emulator/engine/verbs/command_context.h"

namespace rocemu::engine {

class LeavingClients {
 public:
  /// What `context` refers to outlives this.
  explicit LeavingClients(const CommandContext& context)
      : context_(context), objects_(context.objects) {}

  /// The client is gone.
  void detach(ClientId client);
  /// Its device is: the clients stay, but without objects.
  void remove_device(DeviceIndex index);
  /// Goes on with what is left of them, for a while.
  void release();
  bool empty() const { return leaving_.empty(); }

 private:
  struct Leaving {
    ClientId client;
    bool detached;                // else only its device is gone
    bool has_left_xrcds = false;  // and gave back what it had of them
  };

  /// From now on the client's QPs neither send nor receive, as if they were gone.
  void silence(ClientId client);
  /// All that the client has, but no more than `budget` objects; what others still need of it goes
  /// to them. True if that was all.
  bool release_objects(Leaving& leaving, uint32_t& budget);
  void drop_further_references(QueuePair& qp, ClientId client);
  void leave_xrcds(ClientId client);
  void finish(const Leaving& leaving);

  CommandContext context_;
  Objects& objects_;
  std::deque<Leaving> leaving_;
};

}  // namespace rocemu::engine
