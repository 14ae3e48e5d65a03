#include "verbs_provider/shim/counters.h"

#include <cerrno>
#include <cstring>

#include <sys/socket.h>
#include <sys/syscall.h>

#include "emulator/abi/runtime_dir.h"
#include "verbs_provider/hooks/provider_calls.h"
#include "verbs_provider/shim/daemon_socket.h"
#include "verbs_provider/shim/served_paths.h"
#include "verbs_provider/shim/text.h"
#include "verbs_provider/system/raw.h"

namespace rocemu::shim {

bool is_counter(const char* name) {
  return strstr(name, "/counters") != nullptr || strstr(name, "/hw_counters") != nullptr;
}

void refresh_counters(const char* dir) {
  char path[kMaxPath];
  Text text(path, sizeof(path));
  text.add(dir);
  text.add("/");
  text.add(abi::kSysfsSocket);
  if (!text.fits()) return;
  const long fd = connect_to_daemon(path, SOCK_CLOEXEC);
  if (fd < 0) return;
  const turns::WaitForReply waits;
  char nothing;
  while (raw_syscall(SYS_recvfrom, fd, &nothing, sizeof(nothing), 0, nullptr, nullptr) == -EINTR) {
  }
  raw_syscall(SYS_close, fd);
}

}  // namespace rocemu::shim
