#include "emulator/journal/replay.h"

#include <algorithm>
#include <deque>

namespace rocemu::journal {
namespace {

std::string in_words(const engine::FabricConfig& fabric, engine::Instant now,
                     const std::optional<RecordedOutput>& output) {
  if (!output) return "nothing more";
  Event event = describe(now, *output);
  name_devices(fabric, event);
  return event.what.empty() ? "an answer to the program" : to_json(event);
}

bool is_frame(const std::optional<RecordedOutput>& output) {
  return output && std::holds_alternative<RecordedFrame>(*output);
}

}  // namespace

Replay::Replay(JournalReader& journal)
    : journal_(journal), engine_(journal.header().fabric, memory_) {}

std::optional<Difference> Replay::run(const Until& until) {
  Step step;
  while (const std::optional<Bytes> body = journal_.next()) {
    ClientName client;
    if (parse(*body, client)) {
      ++events_;
      continue;
    }
    if (!parse(*body, step)) journal_.fail("an invalid record");
    check(step);
    if (std::optional<Difference> difference = replay(step)) return difference;
    ++steps_;
    if (until.event) {
      described_.clear();
      describe(step, Frames::kConnectionManager, described_);
      events_ += described_.size();
      if (events_ >= *until.event) return std::nullopt;
    }
    if (until.frame && frames_ >= *until.frame) return std::nullopt;
  }
  return std::nullopt;
}

void Replay::require(bool holds, const char* what) {
  if (!holds) journal_.fail(what);
}

/// Throws JournalError if the step contradicts what the daemon guarantees. A modified journal must
/// not give the engine inputs that it is not designed for.
void Replay::check(const Step& step) {
  const auto& devices = journal_.header().fabric.devices;
  const auto check_device = [&](engine::DeviceIndex device) {
    require(device.value < devices.size(), "a step with a device that is not in the header");
  };
  const auto check_client = [&](engine::ClientId client) {
    require(clients_.contains(client), "a step of a client that never connected");
  };
  require(step.now >= now_, "a step that is earlier than the previous one");
  now_ = step.now;
  const engine::Input& input = *step.input;
  if (const auto* attach = std::get_if<engine::AttachClient>(&input)) {
    check_device(attach->device);
    if (attach->shares_with) check_client(*attach->shares_with);
    require(clients_.insert(attach->client).second, "a client that connects twice");
  } else if (const auto* detach = std::get_if<engine::DetachClient>(&input)) {
    require(clients_.erase(detach->client) == 1, "a client that leaves but never connected");
  } else if (const auto* command = std::get_if<engine::Command>(&input)) {
    check_client(command->client);
  } else if (const auto* send = std::get_if<engine::PostSend>(&input)) {
    check_client(send->client);
  } else if (const auto* recv = std::get_if<engine::PostRecv>(&input)) {
    check_client(recv->client);
  } else if (const auto* srq = std::get_if<engine::PostSrqRecv>(&input)) {
    check_client(srq->client);
  } else if (const auto* arm = std::get_if<engine::ArmCq>(&input)) {
    check_client(arm->client);
  } else if (const auto* received = std::get_if<engine::ReceivedFrames>(&input)) {
    for (const engine::ReceivedFrame& frame : received->frames) check_device(frame.device);
  } else if (const auto* port = std::get_if<engine::SetPort>(&input)) {
    check_device(port->device);
  } else if (const auto* removed = std::get_if<engine::RemoveDevice>(&input)) {
    check_device(removed->device);
  } else if (const auto* open = std::get_if<engine::OpenCmChannel>(&input)) {
    require(channels_.insert(open->channel).second, "an event channel that is opened twice");
  } else if (const auto* name = std::get_if<engine::NameProcess>(&input)) {
    if (const auto* client = std::get_if<engine::ClientId>(&name->of)) {
      check_client(*client);
    } else {
      require(channels_.contains(std::get<engine::CmChannelId>(name->of)),
              "the process of an event channel that is not open");
    }
  } else if (const auto* close = std::get_if<engine::CloseCmChannel>(&input)) {
    require(channels_.erase(close->channel) == 1, "an event channel that is not open is closed");
  } else if (const auto* cm = std::get_if<engine::CmCommand>(&input)) {
    require(channels_.contains(cm->channel), "a command of an event channel that is not open");
  }
}

std::optional<Difference> Replay::replay(const Step& step) {
  memory_.begin_step(step.calls);
  outputs_.clear();
  engine_.step(step.now, *step.input, outputs_);
  if (memory_.failed()) journal_.fail("the record of the clients' memory is invalid");
  encoded_.clear();
  Appender to(encoded_);
  append_outputs(to, outputs_);
  if (std::optional<Difference> difference = compare(step)) return difference;
  for (const engine::Output& output : outputs_.list) {
    const auto* trace = std::get_if<engine::FrameTrace>(&output);
    if (trace == nullptr) continue;
    ++frames_;
    if (on_frame_) on_frame_(trace->at, trace->frame.bytes());
  }
  const std::string asked = memory_.difference();
  if (asked.empty()) {
    if (on_step_) on_step_(step, outputs_);
    return std::nullopt;
  }
  return Difference{journal_.offset(), step.now, std::nullopt, "other accesses to memory", asked};
}

std::optional<Difference> Replay::compare(const Step& step) {
  if (std::ranges::equal(step.outputs, encoded_)) return std::nullopt;
  OutputReader recorded(step.outputs), fresh(encoded_);
  Difference difference{journal_.offset(), step.now, std::nullopt, "", ""};
  uint64_t frame = frames_;
  while (true) {
    const size_t begin = recorded.position(), fresh_begin = fresh.position();
    const std::optional<RecordedOutput> was = recorded.next();
    const std::optional<RecordedOutput> is = fresh.next();
    if (recorded.failed()) journal_.fail("the record of a step's outputs is invalid");
    if (is_frame(was) || is_frame(is)) ++frame;
    if (was && is &&
        std::ranges::equal(step.outputs.subspan(begin, recorded.position() - begin),
                           Bytes(encoded_).subspan(fresh_begin, fresh.position() - fresh_begin))) {
      continue;
    }
    if (is_frame(was) || is_frame(is)) difference.frame = frame;
    difference.recorded = in_words(journal_.header().fabric, step.now, was);
    difference.now = in_words(journal_.header().fabric, step.now, is);
    if (difference.now == difference.recorded) {
      difference.now += is_frame(is) ? " with another payload" : " with other details";
    }
    if (const std::string asked = memory_.difference(); !asked.empty()) {
      difference.now += "; " + asked;
    }
    return difference;
  }
}

std::vector<std::string> last_lines(const std::string& path, uint64_t offset, size_t count,
                                    const Until& until) {
  JournalReader journal(path);
  std::deque<Event> last;
  std::vector<Event> events;
  Step step;
  engine::Instant now{};
  uint64_t frame = 0, event = 0;
  const auto is_behind = [&] {
    return (until.frame && frame >= *until.frame) || (until.event && event >= *until.event);
  };
  while (const std::optional<Bytes> body = journal.next()) {
    if (journal.offset() >= offset) break;
    ClientName client;
    events.clear();
    if (parse(*body, client)) {
      describe(now, client, events);
    } else if (parse(*body, step)) {
      now = step.now;
      describe(step, Frames::kAll, events);
    }
    for (Event& one : events) {
      if (is_behind()) break;
      const bool is_message = one.what == "cm_message";
      if (is_message || one.what == "frame") ++frame;
      if (is_message || one.what != "frame") ++event;
      last.push_back(std::move(one));
      if (last.size() > count) last.pop_front();
    }
  }
  std::vector<std::string> lines;
  for (Event& one : last) {
    name_devices(journal.header().fabric, one);
    lines.push_back(to_json(one));
  }
  return lines;
}

}  // namespace rocemu::journal
