// The frames of a recording as a pcap file. It is made from the journal when the run is over, by
// the engine once more: to write every frame while the program runs would take longer than all else
// that a recording does.
#pragma once

#include <optional>
#include <string>

#include "emulator/capture/pcap_writer.h"
#include "emulator/journal/replay.h"

namespace rocemu::command {

/// Replays the journal with its frames written to `path`; says on standard error how far it is when
/// that takes long. A file that cannot be written is a Failure.
std::optional<journal::Difference> replay_into_capture(journal::JournalReader& journal,
                                                       journal::Replay& replay,
                                                       const journal::Until& until,
                                                       const std::string& path,
                                                       capture::CaptureLimits limits = {});

/// Makes DIR/trace.pcap of a run that is over. False, said on standard error, if it lacks frames
/// that the journal has.
bool finish_recording(const std::string& dir, capture::CaptureLimits limits = {});

}  // namespace rocemu::command
