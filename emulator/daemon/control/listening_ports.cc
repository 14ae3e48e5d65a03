#include "emulator/daemon/control/listening_ports.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

namespace rocemu::daemon {
namespace {

/// Returns whether a socket in the table, such as /proc/net/tcp, listens on the port. In a line of
/// the table (proc(5)), the second word is the local address and port in hexadecimal. The fourth
/// word is the state, and 0A means LISTEN.
bool listens_by_tcp(const char* table, uint16_t port) {
  std::ifstream file(table);
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string number, local, remote, state;
    words >> number >> local >> remote >> state;
    const size_t colon = local.rfind(':');
    if (state == "0A" && colon != std::string::npos &&
        std::strtoul(local.c_str() + colon + 1, nullptr, 16) == port) {
      return true;
    }
  }
  return false;
}

}  // namespace

bool listens(const engine::FabricSnapshot& fabric, uint16_t port) {
  const bool by_rdma = std::ranges::any_of(
      fabric.listeners, [&](const engine::ListenerSnapshot& one) { return one.port == port; });
  return by_rdma || listens_by_tcp("/proc/net/tcp", port) || listens_by_tcp("/proc/net/tcp6", port);
}

}  // namespace rocemu::daemon
