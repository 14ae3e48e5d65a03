// XRC domains, which XRC target QPs and XRC SRQs share (IBTA vol 1, annex A14)
#pragma once

#include <cstdint>
#include <map>

#include "emulator/engine/base/ids.h"

namespace rocemu::engine {

struct XrcDomain {
  explicit XrcDomain(XrcdId i) : id(i) {}

  /// The record of a client that opened the domain, once or several times
  struct Opener {
    uint32_t times = 0;
    uint32_t objects = 0;  // SRQs, and references to target QPs
  };

  XrcdId id;
  DeviceIndex device;
  uint64_t file_device = 0;  // st_dev and st_ino of the file that names it
  uint64_t inode = 0;        // 0: a private domain, which no other client can open
  std::map<ClientId, Opener> openers;

  bool opened_by(ClientId client) const { return openers.contains(client); }
};

}  // namespace rocemu::engine
