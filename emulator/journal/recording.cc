#include "emulator/journal/recording.h"

#include <cstring>

#include "emulator/engine/adversarial/adversarial_class.h"

namespace rocemu::journal {
namespace {

constexpr size_t kHandOver = size_t{256} << 10;

}  // namespace

Recording::Recording(const std::string& dir, const Header& header, engine::HostMemory& memory,
                     uint64_t most_bytes)
    : fabric_(header.fabric),
      journal_(dir + kJournalFile, header),
      memory_(memory, journal_.buffer()),
      events_path_(dir + kEventsFile),
      events_file_(events_path_),
      most_bytes_(most_bytes) {
  if (fabric_.adversarial != 0) choices_file_.emplace(dir + kChoicesFile);
}

Recording::~Recording() {
  end();
}

void Recording::end() {
  if (ended_) return;
  memory_.set_recording(false);
  journal_.finish();
  flush();
  ended_ = true;
}

void Recording::begin_step(engine::Instant now, const engine::Input& input) {
  if (ended_) return;
  now_ = now;
  journal_.begin_record();
  record_ = journal_.buffer().size();
  Appender to(journal_.buffer());
  append_input(to, now, input);
  calls_ = to.position();
  to.put(uint32_t{0});  // their size, which is known later
  memory_.set_recording(true);
}

void Recording::end_step(const engine::Outputs& outputs, size_t before) {
  if (ended_) return;
  memory_.set_recording(false);
  Appender to(journal_.buffer());
  const auto size_since = [&](size_t field) {
    return static_cast<uint32_t>(to.position() - field - sizeof(uint32_t));
  };
  to.patch(calls_, size_since(calls_));
  const size_t field = to.position();
  to.put(uint32_t{0});
  append_outputs(to, outputs, before);
  to.patch(field, size_since(field));
  if (parse(Bytes(journal_.buffer()).subspan(record_), step_)) {
    describe(step_, Frames::kConnectionManager, described_);
    write_events();
  }
  bytes_ += journal_.buffer().size() - record_;
  journal_.end_record();
}

void Recording::add_choices(const std::vector<engine::AdversarialChoice>& choices) {
  if (ended_ || !choices_file_) return;
  Appender to(choices_);
  for (const engine::AdversarialChoice& one : choices) {
    const std::string_view name = engine::adversarial::classes()[one.of].name;
    to.raw_text(std::string(name) + " " + std::to_string(one.number) + " " + one.text + "\n");
  }
  if (choices_.size() >= kHandOver) choices_file_->write(choices_);
}

void Recording::name(const ClientName& client) {
  if (ended_) return;
  journal_.begin_record();
  Appender to(journal_.buffer());
  append(to, client);
  journal_.end_record();
  describe(now_, client, described_);
  write_events();
}

void Recording::write_events() {
  Appender to(events_);
  name_devices(fabric_, described_);
  for (const Event& event : described_) {
    to.raw_text(to_json(event));
    to.raw_text("\n");
  }
  described_.clear();
  if (events_.size() >= kHandOver) events_file_.write(events_);
}

void Recording::flush() {
  if (ended_) return;
  journal_.flush();
  if (!events_.empty()) events_file_.write(events_);
  if (!choices_.empty()) choices_file_->write(choices_);
}

void Recording::sync() {
  flush();
  journal_.sync();
  events_file_.sync();
  if (choices_file_) choices_file_->sync();
}

std::string Recording::take_error() {
  if (ended_) return "";
  std::string error = journal_.take_error();
  if (error.empty() && events_file_.error() != 0) {
    error = "cannot write " + events_path_ + ": " + std::strerror(events_file_.error());
  }
  if (error.empty() && most_bytes_ != 0 && bytes_ >= most_bytes_) {
    flush();
    error = "its journal has " + std::to_string(bytes_) + " bytes, which is --record-limit";
  }
  ended_ = !error.empty();
  return error;
}

}  // namespace rocemu::journal
