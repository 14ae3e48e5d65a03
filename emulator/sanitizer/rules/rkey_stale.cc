// rkey-stale: a peer uses an R_Key whose region was deregistered.
#include "emulator/sanitizer/nic.h"
#include "emulator/sanitizer/rules.h"

namespace rocemu::sanitizer {

const Rule kRkeyStale{
    .id = "rkey-stale",
    .severity = Severity::kError,
    .summary = "A peer uses the R_Key of a region that was deregistered.",
    .remedy =
        "Deregister a region only after the peer has confirmed that it no longer uses the "
        "R_Key.",
    .clause = "man ibv_dereg_mr; IBTA vol 1, 9.7.4.1.3 and 10.6.7.2",
};

}  // namespace rocemu::sanitizer
