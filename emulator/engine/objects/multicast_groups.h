// Multicast groups: the UD QPs of each device that are attached to them (IBTA vol 1, 10.5)
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "emulator/engine/base/ids.h"
#include "wire/ip_address.h"

namespace rocemu::engine {

class MulticastTable {
 public:
  enum class Attached { kFirst, kNew, kAlready, kNoRoom };  // kFirst: of the device
  Attached attach(DeviceIndex device, const wire::IpAddress& group, QpNumber qp);
  enum class Detached { kNotAttached, kOne, kLast };  // kLast: of the device
  Detached detach(DeviceIndex device, const wire::IpAddress& group, QpNumber qp);
  /// Detaches the QP from all groups. Returns the groups in which no other QP of the device is
  /// left.
  std::vector<wire::IpAddress> remove(DeviceIndex device, QpNumber qp);

  /// Returns the device's QPs in the group, in the order in which they were attached.
  std::span<const QpNumber> members(DeviceIndex device, const wire::IpAddress& group) const;
  /// Calls the visitor with each device that has a QP in the group.
  template <class Visitor>
  void for_each_device(const wire::IpAddress& group, Visitor visit) const {
    for (auto at = groups_.lower_bound({group, DeviceIndex{0}});
         at != groups_.end() && at->first.first == group; ++at) {
      visit(at->first.second);
    }
  }

 private:
  using Key = std::pair<wire::IpAddress, DeviceIndex>;
  std::map<Key, std::vector<QpNumber>> groups_;
  std::map<DeviceIndex, uint32_t> groups_of_device_;
  std::set<std::tuple<DeviceIndex, QpNumber, wire::IpAddress>> memberships_;
};

}  // namespace rocemu::engine
