#include "verbs_provider/sanitizer/wrapped_verbs.h"

#include "verbs_provider/sanitizer/compilers/results.h"
#include "verbs_provider/sanitizer/creations.h"
#include "verbs_provider/sanitizer/destructions.h"
#include "verbs_provider/sanitizer/program.h"

namespace rocemu::sanitizer {

provider::ContextOps original;

void wrap_verbs(provider::ContextOps* ops, uint64_t (*now_ns)(ibv_context*)) {
  Program* const program = Program::get();
  if (program == nullptr) return;
  const provider::Guard guard(program->lock);
  Program::now_ns = now_ns;
  original = *ops;  // the same for each context
  wrap_creations(*ops);
  wrap_destructions(*ops);
  wrap_results(*ops);
}

}  // namespace rocemu::sanitizer
