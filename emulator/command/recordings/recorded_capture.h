// Writes the frames of a recording as a pcap file. After the run, the engine processes the journal
// again to produce the frames: writing every frame while the program runs would take longer than
// everything else in a recording.
#pragma once

#include <optional>
#include <string>

#include "emulator/capture/pcap_writer.h"
#include "emulator/journal/replay.h"

namespace rocemu::command {

/// Replays the journal and writes its frames to `path`. Prints the progress to standard error if
/// that takes long. Throws Failure if the file cannot be written.
std::optional<journal::Difference> replay_into_capture(journal::JournalReader& journal,
                                                       journal::Replay& replay,
                                                       const journal::Until& until,
                                                       const std::string& path,
                                                       capture::CaptureLimits limits = {});

/// Creates DIR/trace.pcap of a finished run. Returns false, with a message on standard error, if
/// frames of the journal are missing from it.
bool finish_recording(const std::string& dir, capture::CaptureLimits limits = {});

}  // namespace rocemu::command
