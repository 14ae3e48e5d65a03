// The events of a journal, and its frames among them, as events.jsonl and describe_frame tell them.
#pragma once

#include <functional>
#include <string>

#include "emulator/journal/event.h"

namespace rocemu::journal {

/// Calls `take` for each. Of a journal that is cut off, or that is still written, up to there.
/// Throws JournalError for one that is damaged.
void for_each_event(const std::string& path, const std::function<void(const Event&)>& take);

}  // namespace rocemu::journal
