// The ports of ids. Each port space of librdmacm has its own ports, for which the rules of bind(2)
// apply as in Linux.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "emulator/engine/rdmacm/rdma_id.h"

namespace rocemu::engine::cm {

class PortSpaces {
 public:
  /// Gives the id the port of its source address, or an unused port if that port is 0. Returns 0,
  /// EADDRINUSE, EADDRNOTAVAIL (one of two ids with the port has a wildcard address, or no port is
  /// left), or EPROTONOSUPPORT (an AF_IB service ID that belongs to no port space).
  int bind(RdmaId& id);
  /// Returns 0, or the error of bind() if another id has the same port: with REUSEADDR, ids may
  /// share a port only until one of them listens.
  int check_listen(const RdmaId& id) const;
  void unbind(RdmaId& id);

 private:
  using Key = std::pair<abi::ucma::PortSpace, uint16_t>;

  int check(const RdmaId& id, const std::vector<const RdmaId*>& owners, bool may_reuse) const;
  int choose_port(RdmaId& id, abi::ucma::PortSpace space);

  std::map<Key, std::vector<const RdmaId*>> owners_;
  std::map<abi::ucma::PortSpace, uint16_t> last_chosen_;
};

/// Returns the part of a service ID that comes from the port space (IBTA vol 1, annex A11). The
/// port is added to it.
constexpr uint64_t service_prefix(abi::ucma::PortSpace space) {
  return static_cast<uint64_t>(space) << 16;
}

}  // namespace rocemu::engine::cm
