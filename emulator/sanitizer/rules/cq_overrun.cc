// cq-overrun: a completion arrived while the CQ was full. The CQ and its QPs become unusable.
#include "emulator/sanitizer/nic.h"
#include "emulator/sanitizer/rules.h"

namespace rocemu::sanitizer {

const Rule kCqOverrun{
    .id = "cq-overrun",
    .severity = Severity::kError,
    .summary = "A completion arrived at a full completion queue.",
    .remedy =
        "Create the CQ with an entry for every request of its QPs that can be outstanding, "
        "or poll it before you post more.",
    .clause = "man ibv_create_cq; IBTA vol 1, 11.6.3.1 and 10.2.6",
};

NicFinding cq_overrun(uint32_t cq) {
  const std::string title = "CQ " + std::to_string(cq);
  return {kCqOverrun,
          "overran " + title + ": a completion found it full of completions that were not polled",
          {{"created", title}}};
}

}  // namespace rocemu::sanitizer
