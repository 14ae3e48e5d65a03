#include "emulator/engine/cm/listeners.h"

#include <algorithm>
#include <cerrno>

namespace rocemu::engine::cm {
namespace {

constexpr size_t kMaxListeners = 65536;

/// Returns how specific the listener is: a listener with an address is more specific than one with
/// only a device.
int specificity(const Listen& listen) {
  if (listen.address) return 2;
  return listen.device ? 1 : 0;
}

bool same_place(const Listen& a, const Listen& b) {
  return a.device == b.device && a.address == b.address;
}

}  // namespace

wire::Result<ListenerId, int> Listeners::add(const Listen& listen) {
  if (service_ids_.size() >= kMaxListeners) return ENOMEM;
  std::vector<Listener>& there = services_[listen.service_id];
  for (const Listener& other : there) {
    if (same_place(other.options, listen)) return EADDRINUSE;
  }
  do {
    ++last_id_;
  } while (last_id_ == 0 || service_ids_.contains(ListenerId{last_id_}));
  const ListenerId id{last_id_};
  there.push_back({id, listen});
  service_ids_[id] = listen.service_id;
  return id;
}

void Listeners::remove(ListenerId id) {
  const auto found = service_ids_.find(id);
  if (found == service_ids_.end()) return;
  const auto service = services_.find(found->second);
  std::erase_if(service->second, [&](const Listener& listener) { return listener.id == id; });
  if (service->second.empty()) services_.erase(service);
  service_ids_.erase(found);
}

const Listener* Listeners::find(uint64_t service_id, DeviceIndex device,
                                const wire::IpAddress& address) const {
  const auto service = services_.find(service_id);
  if (service == services_.end()) return nullptr;
  const Listener* best = nullptr;
  for (const Listener& listener : service->second) {
    const Listen& options = listener.options;
    if (options.device && *options.device != device) continue;
    if (options.address && *options.address != address) continue;
    if (best == nullptr || specificity(options) > specificity(best->options)) best = &listener;
  }
  return best;
}

}  // namespace rocemu::engine::cm
