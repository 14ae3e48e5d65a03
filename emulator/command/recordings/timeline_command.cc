// `rocemu timeline`: draws the events of a recording or a capture.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "emulator/command/base/color.h"
#include "emulator/command/base/error.h"
#include "emulator/command/base/number_option.h"
#include "emulator/command/base/subcommand.h"
#include "emulator/command/faults/explanations.h"
#include "emulator/command/recordings/recorded_capture.h"
#include "emulator/journal/all_events.h"
#include "emulator/journal/journal_reader.h"
#include "emulator/journal/recording.h"
#include "emulator/os/temporary_directory.h"
#include "emulator/timeline/beside.h"
#include "emulator/timeline/drawing/text_ladder.h"
#include "emulator/timeline/drawing/write_mermaid.h"
#include "emulator/timeline/drawing/write_page.h"
#include "emulator/timeline/drawing/write_svg.h"
#include "emulator/timeline/drawing/write_trace.h"
#include "emulator/timeline/network/network_series.h"
#include "emulator/timeline/network/write_series.h"
#include "emulator/timeline/reading/read_capture.h"
#include "emulator/timeline/reading/read_recording.h"
#include "emulator/timeline/select.h"

namespace rocemu::command {
namespace po = boost::program_options;
namespace fs = std::filesystem;
namespace {

using Words = std::vector<std::string>;

/// The default for the maximum number of rows of a page. Browsers can still open a page of a few
/// hundred megabytes.
constexpr size_t kMaxRows = 250'000;

constexpr uint64_t kMaxRowsGiven = 1'000'000'000;       // --rows and --around-error
constexpr uint64_t kMinWidth = 20, kMaxWidth = 10'000;  // --width, in characters
constexpr uint32_t kMaxQpn = 0xffffff;                  // IBTA vol 1, 9.2.4: QPNs have 24 bits

po::options_description options_of_timeline() {
  po::options_description options("Options");
  options.add_options()("process", po::value<Words>()->value_name("NAME|PID"),
                        "show only this process; --process, --device, --qp and --kind may be "
                        "repeated");
  options.add_options()("device", po::value<Words>()->value_name("DEVICE"),
                        "show only this device");
  options.add_options()("qp", po::value<Words>()->value_name("QPN"),
                        "show only this QP, such as 0x11 or 17");
  options.add_options()("kind", po::value<Words>()->value_name("KIND"),
                        "show only rows of this kind: verb, post, frame, cm, completion, event "
                        "or fault");
  options.add_options()("from", po::value<std::string>()->value_name("TIME"),
                        "begin at this time of the recording, such as 2ms, 1.5s, 300us or 1000ns");
  options.add_options()("to", po::value<std::string>()->value_name("TIME"),
                        "end at this time of the recording");
  options.add_options()("around-error",
                        po::value<std::string>()->implicit_value("20")->value_name("N"),
                        "show only the first error (or the first fault, if there is no error), "
                        "with N rows before and after it (default 20)");
  options.add_options()("html", po::value<std::string>()->value_name("FILE"),
                        "write an HTML page instead of text; - is standard output");
  options.add_options()("svg", po::value<std::string>()->value_name("FILE"),
                        "write an SVG picture instead of text");
  options.add_options()("mermaid", po::value<std::string>()->value_name("FILE"),
                        "write a Mermaid sequence diagram, for Markdown, instead of text");
  options.add_options()("perfetto", po::value<std::string>()->value_name("FILE"),
                        "write Chrome trace JSON, for ui.perfetto.dev, instead of text");
  options.add_options()("pcap", po::value<std::string>()->value_name("FILE"),
                        "write all complete frames of the recording to FILE (pcap)");
  options.add_options()("fabric", po::bool_switch(),
                        "show a recording's simulated network over virtual time: for each port "
                        "the use of its link, its queue, ECN marks and pauses, and the rate of "
                        "each QP; prints text unless --html, --perfetto or --csv is given");
  options.add_options()("port", po::value<Words>()->value_name("PORT"),
                        "with --fabric, show only this port, such as h0 or s1:3, and the QPs of a "
                        "host's port; may be repeated");
  options.add_options()("csv", po::value<std::string>()->value_name("FILE"),
                        "with --fabric, write a CSV file with a line for each port and QP in "
                        "each interval");
  options.add_options()("interval", po::value<std::string>()->value_name("TIME"),
                        "with --fabric, divide the shown time into intervals of length TIME, "
                        "such as 100us (default: a length that gives 100 to 200 intervals)");
  options.add_options()("events", po::bool_switch(),
                        "print all events and frames of the recording, one JSON object per line");
  options.add_options()("json", po::bool_switch(), "print the data of the HTML page as JSON");
  options.add_options()("rows", po::value<std::string>()->value_name("N"),
                        "show at most N of the selected rows, those around the first error "
                        "(default: all; with --html 250000)");
  options.add_options()("width",
                        po::value<std::string>()->default_value("80")->value_name("COLUMNS"),
                        "set the width of the text and of the SVG picture, in characters");
  return options;
}

size_t width_of(const po::variables_map& values) {
  return number_option("timeline", values, "width", {kMinWidth, kMaxWidth}).value();
}

/// Returns the QPN in the text, such as 0x11 or 17.
uint32_t read_qpn(const std::string& text) {
  const bool is_hexadecimal = text.starts_with("0x") || text.starts_with("0X");
  const char* const begin = text.data() + (is_hexadecimal ? 2 : 0);
  const char* const end = text.data() + text.size();
  uint32_t qpn = 0;
  const auto [stop, error] = std::from_chars(begin, end, qpn, is_hexadecimal ? 16 : 10);
  if (error != std::errc() || stop != end || qpn > kMaxQpn)
    throw UsageError("timeline: --qp '" + text + "' is not a QPN such as 0x11 or 17");
  return qpn;
}

engine::Duration read_time(const std::string& text, const char* option) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  const double scale = unit == "ns" ? 1 : unit == "us" ? 1e3 : unit == "ms" ? 1e6 : 1e9;
  const bool is_unit = unit == "ns" || unit == "us" || unit == "ms" || unit == "s";
  if (error != std::errc() || !is_unit || !(number >= 0 && number <= 1e9))
    throw UsageError(std::string("timeline: --") + option + " '" + text +
                     "' is not a time such as 300us, 2ms or 1.5s");
  return engine::Duration(static_cast<int64_t>(number * scale));
}

timeline::Selection selection_of(const po::variables_map& values) {
  timeline::Selection selection;
  if (values.count("process") != 0) selection.processes = values["process"].as<Words>();
  if (values.count("device") != 0) selection.devices = values["device"].as<Words>();
  if (values.count("qp") != 0) {
    for (const std::string& word : values["qp"].as<Words>())
      selection.qpns.push_back(read_qpn(word));
  }
  if (values.count("kind") != 0) {
    for (const std::string& word : values["kind"].as<Words>()) {
      bool known = false;
      for (const auto& [name, kind] : timeline::kKindNames) {
        if (word != name) continue;
        selection.kinds.insert(kind);
        known = true;
      }
      if (!known)
        throw UsageError("timeline: --kind '" + word +
                         "' is not one of verb, post, frame, cm, completion, event and fault");
    }
  }
  if (values.count("from") != 0)
    selection.from = read_time(values["from"].as<std::string>(), "from");
  if (values.count("to") != 0) selection.to = read_time(values["to"].as<std::string>(), "to");
  selection.around_error =
      number_option("timeline", values, "around-error", {0, kMaxRowsGiven, "number of rows"});
  return selection;
}

/// Returns the text with `to` instead of each `from`.
std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

/// Returns whether the bytes are the beginning of a pcap or pcapng file.
bool is_capture(std::string_view bytes) {
  constexpr std::string_view kMagics[] = {"\xa1\xb2\xc3\xd4", "\xd4\xc3\xb2\xa1",
                                          "\xa1\xb2\x3c\x4d", "\x4d\x3c\xb2\xa1",
                                          "\x0a\x0d\x0d\x0a"};
  return std::ranges::any_of(kMagics, [&](std::string_view one) { return bytes.starts_with(one); });
}

/// Copies a capture, up to its end. Of anything else, which can be endless, copies only the
/// beginning, which is enough for an error.
void copy_capture(const std::string& from, const std::string& to) {
  std::ifstream in(from, std::ios::binary);
  if (!in) fail_with_errno("cannot read " + from, errno);
  std::ofstream out(to, std::ios::binary);
  std::vector<char> buffer(65536);
  for (bool is_first = true; in && out; is_first = false) {
    in.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    out.write(buffer.data(), in.gcount());
    const std::string_view bytes(buffer.data(), static_cast<size_t>(in.gcount()));
    if (is_first && !is_capture(bytes)) break;
  }
  out.close();
  if (!out) fail_with_errno("cannot copy " + from + " to " + to, errno);
}

/// Reads a capture that can be read only once, such as a pipe.
timeline::Timeline read_stream(const std::string& file, const std::string& name) {
  const TemporaryDirectory directory;
  const std::string copy = directory.path() / "capture";
  copy_capture(file, copy);  // read_capture() reads its file twice
  try {
    timeline::Timeline frames = timeline::read_capture(copy);
    frames.source = name;
    for (std::string& note : frames.notes) note = replaced(note, copy, name);
    return frames;
  } catch (const std::runtime_error& error) {
    throw Failure(replaced(error.what(), copy, name));
  }
}

/// Reads the timeline of a recording, if `name` is a directory, or of a capture. If the recording's
/// journal cannot be read, its capture is used.
timeline::Timeline read(const std::string& name) {
  if (name == "-") return read_stream("/dev/stdin", "standard input");
  if (!fs::is_directory(name)) {
    if (fs::exists(name) && !fs::is_regular_file(name)) return read_stream(name, name);
    if (fs::path(name).filename() == "journal")
      return timeline::read_recording(fs::path(name).parent_path().string());
    return timeline::read_capture(name);
  }
  try {
    return timeline::read_recording(name);
  } catch (const journal::JournalError& error) {
    const std::string capture = name + journal::kCaptureFile;
    if (!fs::exists(capture)) throw;
    timeline::Timeline frames = timeline::read_capture(capture);
    frames.notes.push_back(std::string(error.what()) + "; only its capture is shown: " + capture);
    return frames;
  }
}

std::string explained(const std::string& topic) {
  const std::optional<Explanation> found = find_explanation(topic);
  if (!found) return "";
  std::string text = found->cause;
  if (!found->remedy.empty()) text += "\nwhat programs do: " + found->remedy;
  if (!found->rule.empty()) text += "\na rule that causes it: " + found->rule;
  return text;
}

template <class Write>
void write_to(const std::string& name, const Write& write) {
  if (name == "-") return write(std::cout);
  std::ofstream file(name);
  if (file) write(file);
  file.close();
  if (!file) fail_with_errno("cannot write " + name, errno);
}

/// Writes the output of --events and --pcap. Returns the exit status.
int write_recorded(const po::variables_map& values, const Words& given) {
  if (given.size() != 1 || !fs::is_directory(given[0]))
    throw UsageError("timeline: --events and --pcap need one recording, which is a directory");
  const std::string path = given[0] + journal::kJournalFile;
  if (values.count("pcap") != 0) {
    journal::JournalReader journal(path);
    journal::Replay replay(journal);
    const std::string file = values["pcap"].as<std::string>();
    if (replay_into_capture(journal, replay, {}, file))
      throw Failure(file + " ends at the point where the replay differs; `rocemu replay " +
                    given[0] + "` prints it");
  }
  if (!values["events"].as<bool>()) return 0;
  journal::for_each_event(
      path, [](const journal::Event& event) { std::cout << journal::to_json(event) << "\n"; });
  return 0;
}

/// Shows the simulated network of a recording. Returns the exit status.
int show_network(const po::variables_map& values, const Words& given) {
  if (given.size() != 1 || !fs::is_directory(given[0]))
    throw UsageError("timeline: --fabric needs one recording, which is a directory");
  timeline::SeriesOptions options;
  const auto instant = [&](const char* option) {
    return engine::Instant(read_time(values[option].as<std::string>(), option));
  };
  if (values.count("from") != 0) options.from = instant("from");
  if (values.count("to") != 0) options.to = instant("to");
  if (values.count("interval") != 0) {
    options.interval = read_time(values["interval"].as<std::string>(), "interval");
    if (options.interval->count() == 0)
      throw UsageError("timeline: --interval must be at least 1ns");
  }
  if (values.count("port") != 0) options.ports = values["port"].as<Words>();
  timeline::NetworkSeries series;
  try {
    series = timeline::read_network_series(given[0], options);
  } catch (const std::runtime_error& error) {
    throw Failure(error.what());
  }
  using Write = void (*)(const timeline::NetworkSeries&, std::ostream&);
  struct Writer {
    const char* option;
    Write write;
  };
  constexpr Writer kWriters[] = {{"csv", timeline::write_series_csv},
                                 {"html", timeline::write_series_page},
                                 {"perfetto", timeline::write_series_trace}};
  bool is_written = false;
  for (const Writer& writer : kWriters) {
    if (values.count(writer.option) == 0) continue;
    write_to(values[writer.option].as<std::string>(),
             [&](std::ostream& out) { writer.write(series, out); });
    is_written = true;
  }
  if (!is_written) timeline::write_series_text(series, width_of(values), std::cout);
  return 0;
}

}  // namespace

std::string timeline_help() {
  return R"(usage: rocemu timeline [options] RECORDING|PCAP [RECORDING|PCAP]

Draws a recording or a capture: a column for each queue pair, arrows for frames, and beside
them verbs, work requests, completions, events and faults. Each retransmission shows its
reason. PSNs are relative to the connection's first; the absolute number is in parentheses.

RECORDING is the DIR of `rocemu run --record DIR`. PCAP is any RoCEv2 capture, also a pipe;
`-` is standard input. Two arguments are drawn side by side, with a mark where they first
differ: for example the golden run of `rocemu run --expect` and the run that --actual kept.

)" + to_text(options_of_timeline()) +
         R"(
Exit status: 0 on success; 1 if an input cannot be read, or has no process, device or QP that
an option names; 2 for wrong usage. Terminals get colors unless NO_COLOR is set.

Examples:
  rocemu run --record /tmp/run1 --scenario rnr-recovers -- ./my_test
  rocemu timeline /tmp/run1 --kind frame --kind completion
  rocemu timeline /tmp/run1 --around-error
  rocemu timeline /tmp/run1 --html run1.html
  rocemu timeline /tmp/run1 --mermaid - --kind frame
  ssh host cat trace.pcap | rocemu timeline -
  rocemu timeline golden failed --html difference.html
  rocemu timeline /tmp/incast --fabric --html queues.html
)";
}

int timeline(const Arguments& arguments) {
  po::options_description all = options_of_timeline();
  all.add_options()("recording", po::value<Words>());
  po::positional_options_description positional;
  positional.add("recording", -1);
  const po::variables_map values = parse_options("timeline", arguments, all, positional);
  const Words given = values.count("recording") != 0 ? values["recording"].as<Words>() : Words();
  if (given.empty() || given.size() > 2)
    throw UsageError(
        "timeline: no recording given; use rocemu timeline DIR, or rocemu "
        "timeline FILE with a capture; two arguments are shown side by side");
  if (values["fabric"].as<bool>()) return show_network(values, given);
  if (values.count("csv") != 0 || values.count("interval") != 0)
    throw UsageError("timeline: --csv and --interval need --fabric");
  if (values["events"].as<bool>() || values.count("pcap") != 0)
    return write_recorded(values, given);
  const timeline::Selection selection = selection_of(values);
  const size_t width = width_of(values);
  const std::optional<uint64_t> rows =
      number_option("timeline", values, "rows", {1, kMaxRowsGiven, "number of rows"});
  timeline::Timeline shown = read(given[0]);
  if (given.size() == 2) shown = timeline::beside(std::move(shown), read(given[1]));
  if (const std::string missing = timeline::why_unmatched(selection, shown); !missing.empty())
    throw Failure("timeline: " + missing);
  timeline::select(selection, shown);
  if (rows || values.count("html") != 0) timeline::limit(rows.value_or(kMaxRows), shown);
  const std::pair<const char*, std::function<void(std::ostream&)>> writers[] = {
      {"html", [&](std::ostream& out) { timeline::write_page(shown, explained, out); }},
      {"svg", [&](std::ostream& out) { timeline::write_svg(shown, width, out); }},
      {"mermaid", [&](std::ostream& out) { timeline::write_mermaid(shown, out); }},
      {"perfetto", [&](std::ostream& out) { timeline::write_trace(shown, out); }},
  };
  bool is_written = false;
  for (const auto& [option, write] : writers) {
    if (values.count(option) == 0) continue;
    write_to(values[option].as<std::string>(), write);
    is_written = true;
  }
  if (values["json"].as<bool>()) {
    timeline::write_json(shown, explained, std::cout);
    is_written = true;
  }
  if (is_written) return 0;
  const bool color = has_colors(STDOUT_FILENO);
  timeline::write_text(shown, {.width = width, .color = color}, std::cout);
  return 0;
}

}  // namespace rocemu::command
