// The events of a journal, including its frames, in the words of events.jsonl and describe_frame
#pragma once

#include <functional>
#include <string>

#include "emulator/journal/event.h"

namespace rocemu::journal {

/// Calls `take` for each event. If the journal is truncated or still being written, ends at that
/// point. Throws JournalError for a damaged journal.
void for_each_event(const std::string& path, const std::function<void(const Event&)>& take);

}  // namespace rocemu::journal
