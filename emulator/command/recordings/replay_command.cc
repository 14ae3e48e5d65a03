// `rocemu replay`: runs the engine again on a run's recorded inputs, without the program.
#include <algorithm>
#include <iostream>
#include <optional>

#include "emulator/command/base/error.h"
#include "emulator/command/base/print_json.h"
#include "emulator/command/base/subcommand.h"
#include "emulator/command/base/text_table.h"
#include "emulator/command/recordings/recorded_capture.h"
#include "emulator/command/recordings/recording_judge.h"
#include "emulator/command/sanitizer/finding_files.h"
#include "emulator/command/sanitizer/sanitizer_options.h"
#include "emulator/command/sanitizer/sanitizer_reports.h"
#include "emulator/journal/recording.h"
#include "emulator/journal/replay.h"
#include "emulator/options/read_number.h"

namespace rocemu::command {
namespace po = boost::program_options;
namespace {

constexpr size_t kContext = 10;

po::options_description options_of_replay() {
  po::options_description options("Options");
  options.add_options()("until", po::value<std::string>()->value_name("frame=N|event=N"),
                        "stop after the step that sent frame N of trace.pcap, or that wrote line "
                        "N of events.jsonl; print the events before this step, and the state of "
                        "the queue pairs after it");
  options.add_options()("capture", po::value<std::string>()->value_name("FILE"),
                        "write the frames of the recording to FILE (pcap); with --until, only "
                        "those before the stop");
  options.add_options()(
      "sanitize",
      po::value<std::string>()->implicit_value("", "")->value_name("RULE,...|all|-RULE"),
      "report wrong uses of verbs that the NIC can detect without the program, and "
      "exit with status 1 if one is an error; RULE,... checks only these rules, all "
      "checks all of them, and -RULE,... checks the default rules except these "
      "(docs/sanitizer.md)");
  options.add_options()("sanitize-report", po::value<std::string>()->value_name("FILE"),
                        "write the reports to FILE, whose name ends in .json, .sarif (for GitHub "
                        "code scanning) or .xml (JUnit)");
  options.add_options()("json", po::bool_switch(), "print JSON");
  return options;
}

/// The values of --sanitize and of the options that depend on it.
struct Judging {
  RecordingJudge judge;
  std::string report;  // empty if there is none
};

std::optional<Judging> read_judging(const po::variables_map& values) {
  const std::optional<SanitizerOptions> options = read_sanitizer_options("replay", values);
  if (!options) return std::nullopt;
  const sanitizer::Selection judged = rules_for_recordings();
  sanitizer::Selection rules;
  std::string names;
  for (const sanitizer::Rule* rule : sanitizer::rules()) {
    if (!judged.contains(rule)) continue;
    names += (names.empty() ? "" : ", ") + std::string(rule->id);
    if (options->rules.contains(rule)) rules.insert(rule);
  }
  if (rules.empty())
    throw UsageError(
        "replay: --sanitize selects no rule that a replay can check without the program; use " +
        names);
  return Judging{RecordingJudge(rules), options->report};
}

void set_judge(journal::Replay& replay, RecordingJudge& judge) {
  if (judge.looks_for(sanitizer::kRemoteWriteRace)) replay.watch_write_races();
  replay.on_step([&judge](const journal::Step& step, const engine::Outputs& outputs) {
    judge.on_step(step, outputs);
  });
}

journal::Until parse_until(const std::string& text) {
  const size_t equals = text.find('=');
  const std::string what = text.substr(0, equals);
  const auto number = options::read_number(
      equals == std::string::npos ? "" : std::string_view(text).substr(equals + 1));
  if (number.value_or(0) == 0 || (what != "frame" && what != "event"))
    throw UsageError("replay: --until '" + text +
                     "' is not frame=N or event=N with N of at least 1");
  return what == "frame" ? journal::Until{.frame = number, .event = {}}
                         : journal::Until{.frame = {}, .event = number};
}

/// Throws Failure if the recording ends before the frame or event of --until.
void require_reached(const journal::Until& until, const journal::Replay& replay,
                     const journal::JournalReader& journal) {
  const auto fail = [&](const char* noun, uint64_t wanted, uint64_t count) {
    throw Failure("replay: --until " + std::string(noun) + "=" + std::to_string(wanted) +
                  ": the recording has only " + std::to_string(count) + " " + noun + "s" +
                  (journal.torn() ? ", because it is cut off" : ""));
  };
  if (until.frame && replay.frames() < *until.frame) fail("frame", *until.frame, replay.frames());
  if (until.event && replay.events() < *until.event) fail("event", *until.event, replay.events());
}

void print_context(const std::string& path, uint64_t offset, const journal::Until& until) {
  for (const std::string& line : journal::last_lines(path, offset, kContext, until))
    std::cout << "  " << line << "\n";
}

int report(const std::string& path, const journal::Difference& difference) {
  std::cout << "difference at " << difference.at.time_since_epoch().count() << " ns";
  if (difference.frame) std::cout << ", frame " << *difference.frame;
  std::cout << " (byte " << difference.offset << " of the journal); before it:\n";
  print_context(path, difference.offset, {});
  std::cout << "recorded: " << difference.recorded << "\n"
            << "now:      " << difference.now << "\n";
  return kExitFailure;
}

void print_queue_pairs(const engine::FabricSnapshot& fabric) {
  for (const engine::DeviceSnapshot& device : fabric.devices) {
    for (const engine::QpSnapshot& qp : device.qps) {
      std::cout << device.name << " QP " << hexadecimal(qp.number.value) << " of client "
                << qp.client.value << ", " << name_of(qp.state) << ": next PSN "
                << psn_text(qp.send_psn, qp.sq_psn) << ", unacknowledged from "
                << psn_text(qp.unacked_psn, qp.sq_psn) << ", expects "
                << psn_text(qp.expected_psn, qp.rq_psn) << ", " << qp.send_posted << " sends and "
                << qp.recv_posted << " receives posted\n";
    }
  }
}

Json lines_before(const std::string& path, uint64_t offset, const journal::Until& until) {
  Json lines = Json::array();
  for (const std::string& line : journal::last_lines(path, offset, kContext, until))
    lines.push_back(Json::parse(line));
  return lines;
}

Json queue_pairs(const engine::FabricSnapshot& fabric) {
  Json list = Json::array();
  for (const engine::DeviceSnapshot& device : fabric.devices) {
    for (const engine::QpSnapshot& qp : device.qps) {
      list.push_back({{"device", device.name},
                      {"qp", qp.number.value},
                      {"client", qp.client.value},
                      {"state", name_of(qp.state)},
                      {"sq_psn", qp.sq_psn},
                      {"rq_psn", qp.rq_psn},
                      {"send_psn", qp.send_psn},
                      {"unacked_psn", qp.unacked_psn},
                      {"expected_psn", qp.expected_psn},
                      {"send_posted", qp.send_posted},
                      {"recv_posted", qp.recv_posted}});
    }
  }
  return list;
}

/// Prints the result as JSON. Returns the exit status.
int print_as_json(const std::string& path, const journal::Until& until,
                  const std::optional<journal::Difference>& difference,
                  const journal::JournalReader& journal, const journal::Replay& replay,
                  const std::vector<Misuse>* misuses) {
  Json json{{"steps", replay.steps()}, {"frames", replay.frames()}, {"same", !difference}};
  if (difference) {
    json["difference"] = {{"t", difference->at.time_since_epoch().count()},
                          {"frame", difference->frame ? Json(*difference->frame) : Json()},
                          {"offset", difference->offset},
                          {"before", lines_before(path, difference->offset, {})},
                          {"recorded", difference->recorded},
                          {"now", difference->now}};
  } else if (until.frame || until.event) {
    json["before"] = lines_before(path, journal.offset() + 1, until);
    json["qps"] = queue_pairs(replay.snapshot());
  }
  json["cut_off_at"] = journal.torn() ? Json(journal.offset()) : Json();
  if (misuses != nullptr)
    json["reports"] = Json::parse(to_text(*misuses, ReportFormat::kJson, "")).at("reports");
  print_json(json);
  return difference ? kExitFailure : 0;
}

}  // namespace

std::string replay_help() {
  return R"(usage: rocemu replay [--until frame=N|event=N] [--capture FILE] [--json] DIR
       rocemu replay --sanitize[=RULE,...] [--sanitize-report FILE] [--json] DIR

Repeats a recording (`rocemu run --record DIR`) without the program: gives the recorded inputs
to a new NIC and compares its outputs with the recorded ones. Prints how much was compared, or
the first difference with the ten events and frames before it.

)" + to_text(options_of_replay()) +
         R"(
Exit status: 0 if nothing differs; 1 for a difference, an unreadable journal, a frame or event
of --until that the recording lacks, or with --sanitize an error; 2 for wrong usage.

Examples:
  rocemu run --record /tmp/run1 -- ./my_test
  rocemu replay /tmp/run1
  rocemu replay --until frame=120 /tmp/run1
  rocemu replay --sanitize /tmp/run1
)";
}

int replay(const Arguments& given) {
  // The value of --sanitize must follow '='. Without this change of the arguments, Boost would take
  // DIR, a positional argument, as the value.
  Arguments arguments = given;
  std::stable_partition(arguments.begin(), arguments.end(),
                        [](const std::string& one) { return one != "--sanitize"; });
  po::options_description all = options_of_replay();
  all.add_options()("recording", po::value<std::string>());
  po::positional_options_description positional;
  positional.add("recording", 1);
  const po::variables_map values = parse_options("replay", arguments, all, positional);
  if (values.count("recording") == 0)
    throw UsageError(
        "replay: no recording given; use rocemu replay DIR, with the DIR of "
        "`rocemu run --record DIR`");
  const journal::Until until = values.count("until") != 0
                                   ? parse_until(values["until"].as<std::string>())
                                   : journal::Until{};
  const std::string path = values["recording"].as<std::string>() + journal::kJournalFile;
  journal::JournalReader journal(path);
  journal::Replay replay(journal);
  std::optional<Judging> judging = read_judging(values);
  if (judging) set_judge(replay, judging->judge);
  const auto difference =
      values.count("capture") != 0
          ? replay_into_capture(journal, replay, until, values["capture"].as<std::string>())
          : replay.run(until);
  if (!difference) require_reached(until, replay, journal);
  if (values["json"].as<bool>()) {
    const std::vector<Misuse>* const misuses = judging ? &judging->judge.findings() : nullptr;
    const int status = print_as_json(path, until, difference, journal, replay, misuses);
    const bool failed = judging && write_all(*misuses, judging->report);
    return failed ? kExitFailure : status;
  }
  const bool failed = judging && report_all(judging->judge.findings(), judging->report);
  if (difference) return report(path, *difference);
  if (until.frame || until.event) {
    print_context(path, journal.offset() + 1, until);
    print_queue_pairs(replay.snapshot());
  }
  if (journal.torn())
    std::cout << "the journal is cut off at byte " << journal.offset()
              << ": its writer was killed or the disk was full\n";
  std::cout << replay.steps() << " steps, " << replay.frames() << " frames: no difference\n";
  return failed ? kExitFailure : 0;
}

}  // namespace rocemu::command
