#include "emulator/daemon/run_files.h"

#include <spdlog/spdlog.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <string>
#include <utility>

#include "emulator/daemon/base/start_error.h"

namespace rocemu::daemon {
namespace {

/// Sets the user's umask while files for the user are created: captures and recordings. The
/// daemon's other files are private to the user.
class UsersUmask {
 public:
  explicit UsersUmask(mode_t mask) : own_(umask(mask)) {}
  ~UsersUmask() { umask(own_); }
  UsersUmask(const UsersUmask&) = delete;
  UsersUmask& operator=(const UsersUmask&) = delete;

 private:
  mode_t own_;
};

std::unique_ptr<capture::PcapWriter> make_capture(const Options& options, const Clock& clock) {
  if (options.capture.empty()) return nullptr;
  const UsersUmask for_its_file(options.umask);
  capture::CaptureFile file =
      options.capture_fd < 0
          ? capture::open_capture_file(options.capture)
          : capture::CaptureFile{options.capture, UniqueFd(options.capture_fd), -1, ""};
  auto capture = std::make_unique<capture::PcapWriter>(std::move(file), clock.wall_start(),
                                                       capture::SlowReader::kMissesFrames,
                                                       options.capture_limits);
  if (!capture->is_open()) throw StartError(capture->error());
  return capture;
}

PortCaptures make_port_captures(const Options& options, const Clock& clock) {
  const UsersUmask for_their_files(options.umask);
  PortCaptures captures;
  for (const std::string& file : options.port_captures) {
    captures.push_back(std::make_unique<capture::PcapWriter>(capture::open_capture_file(file),
                                                             clock.wall_start()));
    if (!captures.back()->is_open()) throw StartError(captures.back()->error());
  }
  return captures;
}

}  // namespace

RunFiles::RunFiles(const Options& options, const Clock& clock, std::function<void()> stop)
    : options_(options),
      clock_(clock),
      stop_(std::move(stop)),
      capture_(make_capture(options, clock)),
      port_captures_(make_port_captures(options, clock)) {}

std::unique_ptr<journal::Recording> RunFiles::make_recording(engine::HostMemory& memory) {
  if (options_.record.empty()) return nullptr;
  const UsersUmask for_its_files(options_.umask);
  if (mkdir(options_.record.c_str(), 0777) != 0 && errno != EEXIST) {
    fail_start("cannot make the directory " + options_.record, errno);
  }
  journal::Header header;
  header.fabric = options_.fabric;
  header.clock = clock_.is_virtual() ? "lockstep" : "real";
  header.wall_start_ns =
      std::chrono::duration_cast<std::chrono::nanoseconds>(clock_.wall_start().time_since_epoch())
          .count();
  auto recording =
      std::make_unique<journal::Recording>(options_.record, header, memory, options_.record_limit);
  if (const std::string error = recording->take_error(); !error.empty()) throw StartError(error);
  recording_ = recording.get();
  return recording;
}

bool RunFiles::sync_recording() {
  if (recording_ == nullptr) return false;
  flush();
  recording_->sync();
  return true;
}

void RunFiles::flush() {
  if (recording_ != nullptr) recording_->flush();
  if (capture_ != nullptr && !capture_->flush()) {
    spdlog::error("the capture stops here: {}", capture_->error());
  }
}

void RunFiles::finish() {
  flush();
  for (const auto& capture : port_captures_) {
    if (!capture->finish()) spdlog::error("a port's capture is incomplete: {}", capture->error());
  }
  finish_capture();
  check();
}

void RunFiles::finish_capture() {
  if (capture_ == nullptr) return;
  if (!capture_->finish()) spdlog::error("the capture is incomplete: {}", capture_->error());
  if (const uint64_t lost = capture_->lost_frames(); lost > 0) {
    spdlog::warn("{} frames are not in the capture {}: its reader was too slow", lost,
                 options_.capture);
  }
}

void RunFiles::check() {
  if (recording_ == nullptr || recording_failed_) return;
  const std::string error = recording_->take_error();
  if (error.empty()) return;
  recording_failed_ = true;
  if (options_.stop_without_record) {
    spdlog::error("the run ends, since it can no longer be recorded: {}", error);
    stop_();
  } else {
    spdlog::error("the recording ends here, but the run continues: {}", error);
  }
}

}  // namespace rocemu::daemon
