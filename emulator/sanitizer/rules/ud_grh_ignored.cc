// ud-grh-ignored: the program does not leave space for the GRH in a receive for UD datagrams. The
// first 40 bytes are for the GRH, even if the datagram has none.
#include "emulator/sanitizer/nic.h"
#include "emulator/sanitizer/rules.h"
#include "emulator/sanitizer/words.h"

namespace rocemu::sanitizer {

const Rule kUdGrhIgnored{
    .id = "ud-grh-ignored",
    .severity = Severity::kWarning,
    .summary = "A receive of a UD QP has no room for the GRH before the message.",
    .remedy =
        "Make each receive 40 bytes longer than the longest message. The message begins at "
        "byte 40.",
    .clause = "man ibv_post_recv; IBTA vol 1, 11.4.1.2",
};

NicFinding ud_grh_ignored(uint32_t qp, uint32_t from, uint64_t payload) {
  const std::string title = "QP " + std::to_string(qp);
  return {kUdGrhIgnored,
          "lost a datagram of " + count_of(payload, "byte") + " from QP " + std::to_string(from) +
              " to " + title +
              ": the receive had room for the datagram, but not also for the 40 bytes of the "
              "GRH",
          {{"created", title}}};
}

}  // namespace rocemu::sanitizer
