#include "emulator/engine/rdmacm/listening.h"

#include <algorithm>
#include <cerrno>

#include "emulator/engine/rdmacm/command_codec.h"

namespace rocemu::engine::cm {
namespace {

constexpr uint32_t kMaxBacklog = 1024;

/// Returns whether a request whose header has this destination is one for the listener.
bool hears(const RdmaId& listener, const wire::IpCmHeader& header) {
  const bool v4 = header.destination.is_v4();
  if (listener.source.family == Family::kIb) return false;
  if (listener.is_wildcard && !listener.family_only) return true;
  if ((listener.source.family == Family::kIpv4) != v4) return false;
  return listener.is_wildcard || listener.source.address == header.destination;
}

}  // namespace

int Listening::listen(const CmCommand& command) {
  const auto in = parse<abi::ucma::Listen>(command);
  if (!in) return EINVAL;
  RdmaId* id;
  if (const int error = ids_.find(command.channel, in->id, id)) return error;
  if (id->state == IdState::kIdle) {
    if (const int error = binding_.bind_to(*id, any_address(Family::kIpv4))) return error;
  }
  if (id->state != IdState::kBound) return EINVAL;
  if (id->reuse_address) {
    if (const int error = binding_.check_listen(*id)) return error;
    id->reuse_address =
        false;  // a listener's port is no longer shared, as in Linux's rdma_listen()
  }
  const bool usable = in->backlog > 0 && in->backlog <= kMaxBacklog;
  id->backlog = usable ? in->backlog : kMaxBacklog;
  return start(*id);
}

int Listening::start(RdmaId& id) {
  const uint64_t service = service_id(id, id.source);
  const auto found = services_.find(service);
  if (found == services_.end()) {
    Listen listen;
    listen.service_id = service;
    const auto listener = connections_.listen(listen);
    if (!listener) return listener.error();
    services_.emplace(service, Service{*listener, {id.number}});
  } else {
    found->second.ids.push_back(id.number);
  }
  id.was_known_to_manager = true;
  id.state = IdState::kListening;
  return 0;
}

void Listening::stop(RdmaId& id) {
  if (id.unread_requests > 0) {
    ids_.for_each([&](RdmaId& requested) {
      if (requested.requested_of == id.number) requested.requested_of.reset();
    });
  }
  const auto found = services_.find(service_id(id, id.source));
  if (found == services_.end()) return;
  std::erase(found->second.ids, id.number);
  if (!found->second.ids.empty()) return;
  connections_.stop_listening(found->second.listener);
  services_.erase(found);
}

void Listening::leave_backlog(RdmaId& requested) {
  if (!requested.requested_of) return;
  RdmaId* listener = ids_.find(*requested.requested_of);
  requested.requested_of.reset();
  if (listener != nullptr && listener->unread_requests > 0) --listener->unread_requests;
}

int Listening::request_was_read(const CmCommand& command) {
  const auto in = parse<abi::ucma::RequestRead>(command);
  if (!in) return EINVAL;
  RdmaId* id;
  if (const int error = ids_.find(command.channel, in->id, id)) return error;
  leave_backlog(*id);
  return 0;
}

RdmaId* Listening::find(uint64_t service, const std::optional<wire::IpCmHeader>& header) const {
  const auto found = services_.find(service);
  if (found == services_.end()) return nullptr;
  RdmaId* best = nullptr;
  for (const RdmaIdNumber number : found->second.ids) {
    RdmaId* id = ids_.find(number);
    const bool fits = header ? hears(*id, *header) : id->source.family == Family::kIb;
    // An id that listens on the address itself takes precedence over one that listens on the
    // wildcard.
    if (fits && (best == nullptr || best->is_wildcard)) best = id;
  }
  return best;
}

}  // namespace rocemu::engine::cm
