// Names of the processes that own clients and event channels. A name is the same in every run: it
// consists of the program and a number. Rules select processes by name.
#pragma once

#include <map>
#include <string>
#include <variant>

#include "emulator/engine/base/ids.h"

namespace rocemu::engine {

/// An object in the NIC that identifies the process to which it belongs.
using Owner = std::variant<ClientId, CmChannelId>;

struct ProcessName {
  std::string program;  // as in /proc/PID/comm, at most 15 characters
  uint32_t number = 0;  // 1 is the run's first process of that program
};

class ProcessNames {
 public:
  void name(ClientId client, ProcessName name) { clients_[client] = std::move(name); }
  void name(CmChannelId channel, ProcessName name) { channels_[channel] = std::move(name); }
  void forget(ClientId client) { clients_.erase(client); }
  void forget(CmChannelId channel) { channels_.erase(channel); }

  /// Returns the name of the owner's process, or null if the process is not known.
  const ProcessName* of(const Owner& owner) const {
    if (const auto* client = std::get_if<ClientId>(&owner)) return find(clients_, *client);
    return find(channels_, std::get<CmChannelId>(owner));
  }

 private:
  template <class Id>
  static const ProcessName* find(const std::map<Id, ProcessName>& names, Id id) {
    const auto found = names.find(id);
    return found == names.end() ? nullptr : &found->second;
  }

  std::map<ClientId, ProcessName> clients_;
  std::map<CmChannelId, ProcessName> channels_;
};

}  // namespace rocemu::engine
