// Whether calls go on after a signal.
#pragma once

namespace rocemu::shim {

/// Whether read(2) would go on after a signal: all handlers were installed with SA_RESTART. poll(2)
/// never does, and of which signal it was nobody says.
bool restarts_after_signals();

}  // namespace rocemu::shim
