// Writes the frames of a recording as a pcap file, after the run. The engine processes the journal
// again to produce the frames: writing every frame while the program runs would take longer than
// everything else in a recording.
#pragma once

#include <optional>
#include <string>

#include "emulator/capture/pcap_writer.h"
#include "emulator/journal/replay.h"

namespace rocemu::command {

/// Replays the journal and writes the frames to the file `path`. Prints the progress to standard
/// error if the replay takes long. Throws Failure if the file cannot be written.
std::optional<journal::Difference> replay_into_capture(journal::JournalReader& journal,
                                                       journal::Replay& replay,
                                                       const journal::Until& until,
                                                       const std::string& path,
                                                       capture::CaptureLimits limits = {});

/// Creates DIR/trace.pcap for a finished run. If frames of the journal are missing from that file,
/// prints a message to standard error and returns false.
bool finish_recording(const std::string& dir, capture::CaptureLimits limits = {});

}  // namespace rocemu::command
