// Checks whether calls are restarted after a signal.
#pragma once

namespace rocemu::shim {

/// Returns whether read(2) would be restarted after a signal, that is, whether all handlers were
/// installed with SA_RESTART. poll(2) is never restarted, and does not report which signal
/// interrupted it.
bool restarts_after_signals();

}  // namespace rocemu::shim
