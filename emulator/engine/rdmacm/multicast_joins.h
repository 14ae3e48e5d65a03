// The multicast groups that ids have joined. RoCE has no subnet manager: every node that knows the
// group's address may join, and the group's GID is this address.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "emulator/engine/base/table.h"
#include "emulator/engine/events.h"
#include "emulator/engine/rdmacm/event_output.h"
#include "emulator/engine/rdmacm/id_table.h"

namespace rocemu::engine::cm {

using GroupNumber = Id<struct GroupTag>;

class MulticastJoins {
 public:
  static constexpr uint32_t kMaxJoins = 1 << 16;

  MulticastJoins(const IdTable& ids, EventOutput& events) : ids_(ids), events_(events) {}

  // ---- Commands, each of which returns 0 or an errno value ----
  int join_ip(const CmCommand& command, std::vector<std::byte>& response);
  int join(const CmCommand& command, std::vector<std::byte>& response);
  int leave(const CmCommand& command, std::vector<std::byte>& response);

  /// Ends all joins of the id.
  void leave_all(const RdmaId& id);

 private:
  struct Join {
    Join(GroupNumber n, RdmaIdNumber i) : number(n), id(i) {}
    GroupNumber number;
    RdmaIdNumber id;
  };

  int join(const CmCommand& command, uint32_t number, uint64_t uid, const SocketAddress& address,
           std::vector<std::byte>& response);

  const IdTable& ids_;
  EventOutput& events_;
  Table<GroupNumber, Join> joins_{1, kMaxJoins};
};

}  // namespace rocemu::engine::cm
