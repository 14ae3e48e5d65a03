// librocemu-sanitizer.so checks a program's verbs for `rocemu run --sanitize`, with the rules of
// emulator/sanitizer. It writes findings at once (emulator/abi/sanitizer_log.h).
#include "verbs_provider/context/sanitizer_hooks.h"
#include "verbs_provider/sanitizer/data_path.h"
#include "verbs_provider/sanitizer/mapping_changes.h"
#include "verbs_provider/sanitizer/wrapped_verbs.h"

extern "C" constinit const rocemu::provider::SanitizerHooks rocemu_sanitizer_hooks = {
    .wrap = rocemu::sanitizer::wrap_verbs,
    .posted = rocemu::sanitizer::on_post,
    .taken_back = rocemu::sanitizer::on_taken_back,
    .polls = rocemu::sanitizer::on_poll,
    .completed = rocemu::sanitizer::on_completion,
    .dropped = rocemu::sanitizer::on_dropped,
    .mapping_changed = rocemu::sanitizer::on_mapping_change,
    .waits_for_acknowledgements = rocemu::sanitizer::on_acknowledgement_wait,
    .has_acknowledgements = rocemu::sanitizer::on_acknowledgements,
};
