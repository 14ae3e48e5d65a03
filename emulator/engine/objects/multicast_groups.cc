#include "emulator/engine/objects/multicast_groups.h"

#include <algorithm>

#include "emulator/engine/base/limits.h"

namespace rocemu::engine {

MulticastTable::Attached MulticastTable::attach(DeviceIndex device, const wire::IpAddress& group,
                                                QpNumber qp) {
  auto found = groups_.find({group, device});
  if (found == groups_.end()) {
    uint32_t& groups = groups_of_device_[device];
    if (groups == kMaxMulticastGroups) return Attached::kNoRoom;
    ++groups;
    found = groups_.emplace(Key{group, device}, std::vector<QpNumber>{}).first;
  }
  std::vector<QpNumber>& members = found->second;
  if (std::ranges::find(members, qp) != members.end()) return Attached::kAlready;
  if (members.size() == kMaxQpsPerGroup) return Attached::kNoRoom;
  members.push_back(qp);
  memberships_.emplace(device, qp, group);
  return members.size() == 1 ? Attached::kFirst : Attached::kNew;
}

MulticastTable::Detached MulticastTable::detach(DeviceIndex device, const wire::IpAddress& group,
                                                QpNumber qp) {
  const auto found = groups_.find({group, device});
  if (found == groups_.end() || std::erase(found->second, qp) == 0) return Detached::kNotAttached;
  memberships_.erase({device, qp, group});
  if (!found->second.empty()) return Detached::kOne;
  groups_.erase(found);
  --groups_of_device_[device];
  return Detached::kLast;
}

std::vector<wire::IpAddress> MulticastTable::remove(DeviceIndex device, QpNumber qp) {
  std::vector<wire::IpAddress> left;
  for (auto at = memberships_.lower_bound({device, qp, wire::IpAddress{}});
       at != memberships_.end() && std::get<DeviceIndex>(*at) == device &&
       std::get<QpNumber>(*at) == qp;) {
    const wire::IpAddress group = std::get<wire::IpAddress>(*at++);
    if (detach(device, group, qp) == Detached::kLast) left.push_back(group);
  }
  return left;
}

std::span<const QpNumber> MulticastTable::members(DeviceIndex device,
                                                  const wire::IpAddress& group) const {
  const auto found = groups_.find({group, device});
  return found != groups_.end() ? std::span<const QpNumber>(found->second)
                                : std::span<const QpNumber>();
}

}  // namespace rocemu::engine
