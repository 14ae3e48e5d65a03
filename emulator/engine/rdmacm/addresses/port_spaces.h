// The ports of ids. They follow the rules of bind(2) in each port space of librdmacm, as Linux
// applies these rules.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "emulator/engine/rdmacm/rdma_id.h"

namespace rocemu::engine::cm {

class PortSpaces {
 public:
  /// Gives the id the port of its source address, or an unused port if that is 0. Returns
  /// EADDRINUSE, EADDRNOTAVAIL (either of two ids with the port has a wildcard address, or no port
  /// is left), or EPROTONOSUPPORT (an AF_IB service ID that belongs to no port space).
  int bind(RdmaId& id);
  /// Returns EADDRINUSE or EADDRNOTAVAIL if another id has the same port: REUSEADDR permits
  /// binding, but not listening.
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
