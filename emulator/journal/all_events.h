// Reads all events of a journal, including frames, which events.jsonl omits.
#pragma once

#include <functional>
#include <string>

#include "emulator/journal/event.h"

namespace rocemu::journal {

/// Calls `take` for each event, up to the end of the journal or the point where it is truncated or
/// still being written. Throws JournalError for a damaged journal.
void for_each_event(const std::string& path, const std::function<void(const Event&)>& take);

}  // namespace rocemu::journal
