#include "emulator/command/recordings/recorded_capture.h"

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <exception>
#include <iostream>

#include "emulator/capture/pcap_writer.h"
#include "emulator/command/base/error.h"
#include "emulator/journal/recording.h"

namespace rocemu::command {
namespace {

using std::chrono::steady_clock;

constexpr auto kProgressInterval = std::chrono::seconds(2);
constexpr uint64_t kFramesPerLook = 4096;

/// Prints the progress of a replay from time to time.
class Progress {
 public:
  explicit Progress(const std::string& path) : path_(path) {}

  void count_frame() {
    if (++frames_ % kFramesPerLook != 0) return;
    const steady_clock::time_point now = steady_clock::now();
    if (now < next_) return;
    next_ = now + kProgressInterval;
    std::cerr << "rocemu: writing " + path_ + ": " + std::to_string(frames_) + " frames so far\n";
  }

 private:
  std::string path_;
  uint64_t frames_ = 0;
  steady_clock::time_point next_ = steady_clock::now() + kProgressInterval;
};

}  // namespace

std::optional<journal::Difference> replay_into_capture(journal::JournalReader& journal,
                                                       journal::Replay& replay,
                                                       const journal::Until& until,
                                                       const std::string& path,
                                                       capture::CaptureLimits limits) {
  std::signal(SIGXFSZ, SIG_IGN);  // if the file may not grow further, treat it like a full disk
  const std::chrono::nanoseconds start(journal.header().wall_start_ns);
  capture::CaptureFile file = capture::open_capture_file(path);
  // If the capture is written to standard output, messages about the replay are written to standard
  // error.
  if (file.descriptor == STDOUT_FILENO) dup2(STDERR_FILENO, STDOUT_FILENO);
  capture::PcapWriter capture(
      std::move(file),
      std::chrono::system_clock::time_point(
          std::chrono::duration_cast<std::chrono::system_clock::duration>(start)),
      capture::SlowReader::kIsWaitedFor, limits);
  Progress progress(path);
  replay.on_frame([&](engine::Instant at, std::span<const uint8_t> frame) {
    if (!capture.write(at, frame)) throw Failure(capture.error());
    progress.count_frame();
  });
  std::optional<journal::Difference> difference = replay.run(until);
  if (!capture.is_open() || !capture.finish()) throw Failure(capture.error());
  return difference;
}

bool finish_recording(const std::string& dir, capture::CaptureLimits limits) {
  try {
    journal::JournalReader journal(dir + journal::kJournalFile);
    journal::Replay replay(journal);
    if (!replay_into_capture(journal, replay, {}, dir + journal::kCaptureFile, limits)) {
      journal.require_whole();
      return true;
    }
    std::cerr << "rocemu: " + dir + journal::kCaptureFile +
                     " ends at the point where the replay differs; `rocemu replay " + dir +
                     "` prints it\n";
  } catch (const journal::TruncatedJournal& error) {
    std::cerr << std::string("rocemu: ") + error.what() + "\n";
    return true;
  } catch (const std::exception& error) {
    std::cerr << std::string("rocemu: ") + error.what() + "\n";
  }
  return false;
}

}  // namespace rocemu::command
