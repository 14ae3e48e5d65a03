// Clients that have ended, and clients whose device was removed. Such a client may have a million
// objects. They are destroyed a part at a time, so that other clients need not wait until all are
// destroyed.
#pragma once

#include <cstdint>
#include <deque>

#include "emulator/engine/verbs/command_context.h"

namespace rocemu::engine {

class LeavingClients {
 public:
  /// The objects to which `context` refers must outlive this object.
  explicit LeavingClients(const CommandContext& context)
      : context_(context), objects_(context.objects) {}

  /// Notes that the client has ended.
  void detach(ClientId client);
  /// Notes that the device was removed. Its clients stay, but lose all their objects.
  void remove_device(DeviceIndex index);
  /// Destroys the next part of the remaining objects.
  void release();
  bool empty() const { return leaving_.empty(); }

 private:
  struct Leaving {
    ClientId client;
    bool detached;                // if false, only its device was removed
    bool has_left_xrcds = false;  // its XRC domains and references were released
  };

  /// Silences the client's QPs: they neither send nor receive from now on, as if they were
  /// destroyed.
  void silence(ClientId client);
  /// Destroys the client's objects, but at most `budget` of them. Objects that another client still
  /// needs are given to that client. Returns whether no objects are left.
  bool release_objects(Leaving& leaving, uint32_t& budget);
  void drop_further_references(QueuePair& qp, ClientId client);
  void leave_xrcds(ClientId client);
  void finish(const Leaving& leaving);

  CommandContext context_;
  Objects& objects_;
  std::deque<Leaving> leaving_;
};

}  // namespace rocemu::engine
