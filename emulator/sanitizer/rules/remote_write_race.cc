// remote-write-race: two QPs write to the same bytes by RDMA WRITE, and the second WRITE was posted
// before the first was executed. The WRITEs have no order, so the bytes can become those of either
// WRITE, or a mixture.
#include "emulator/sanitizer/nic.h"
#include "emulator/sanitizer/rules.h"
#include "emulator/sanitizer/words.h"

namespace rocemu::sanitizer {

const Rule kRemoteWriteRace{
    .id = "remote-write-race",
    .severity = Severity::kError,
    .summary = "Two QPs WRITE to the same bytes, and nothing orders the WRITEs.",
    .remedy =
        "Poll the completion of the first WRITE before you post the second, or use one QP "
        "for both. Between programs, send a message when the first WRITE is complete.",
    .clause = "man ibv_post_send; IBTA vol 1, 9.5 and 10.8.3.3",
};

NicFinding remote_write_race(const WriteRace& race) {
  const std::string qp = "QP " + std::to_string(race.qp);
  const std::string other = "QP " + std::to_string(race.other);
  return {kRemoteWriteRace,
          "posted a WRITE on " + qp + " to " + count_of(race.length, "byte") + " at " +
              in_hex(race.address) + " (R_Key " + in_hex(race.rkey) +
              "), to which an unfinished WRITE of " + other + " also writes",
          {{"created", other}, {"created", qp}}};
}

}  // namespace rocemu::sanitizer
