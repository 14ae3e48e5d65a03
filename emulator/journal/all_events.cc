#include "emulator/journal/all_events.h"

#include <vector>

#include "emulator/journal/journal_reader.h"
#include "emulator/journal/step_record.h"

namespace rocemu::journal {

void for_each_event(const std::string& path, const std::function<void(const Event&)>& take) {
  JournalReader journal(path);
  std::vector<Event> events;
  Step step;
  ClientName client;
  engine::Instant now{};
  while (const std::optional<Bytes> body = journal.next()) {
    events.clear();
    if (parse(*body, client)) {
      describe(now, client, events);
    } else if (parse(*body, step)) {
      now = step.now;
      describe(step, Frames::kAll, events);
    } else {
      journal.fail("an invalid record");
    }
    name_devices(journal.header().fabric, events);
    for (const Event& event : events) take(event);
  }
}

}  // namespace rocemu::journal
