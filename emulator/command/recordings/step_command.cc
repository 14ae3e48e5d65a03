// `rocemu pause`, `resume` and `step`: stop a NIC, and deliver its frames one at a time.
#include <iostream>

#include "emulator/command/base/error.h"
#include "emulator/command/base/number_option.h"
#include "emulator/command/base/print_json.h"
#include "emulator/command/base/subcommand.h"
#include "emulator/command/base/text_table.h"
#include "emulator/command/daemons/choose_daemon.h"

namespace rocemu::command {
namespace po = boost::program_options;
namespace {

constexpr uint64_t kMaxFrames = 1000;

po::options_description options_of_pause() {
  po::options_description options("Options");
  options.add_options()("json", po::bool_switch(), "print the result as JSON");
  add_dir_option(options);
  return options;
}

po::options_description options_of_step() {
  po::options_description options("Options");
  options.add_options()("json", po::bool_switch(), "print JSON");
  add_dir_option(options);
  return options;
}

/// Prints the state of a QP in two lines, the first of which begins with `label`.
void print_qp(const char* label, const Json& qp) {
  const auto number = [&](const char* key) { return qp.at(key).get<uint32_t>(); };
  const auto psn = [&](const char* key, const char* first) {
    return psn_text(number(key), number(first));
  };
  std::cout << "  " << label << qp.at("device").get<std::string>() << " QP "
            << hexadecimal(number("qp")) << " " << qp.at("state").get<std::string>() << ": to send "
            << psn("send_psn", "sq_psn") << ", unacked " << psn("unacked_psn", "sq_psn")
            << ",\n          expects " << psn("expected_psn", "rq_psn") << ", "
            << number("send_posted") << " sends and " << number("recv_posted")
            << " receives posted\n";
}

/// Returns a description of the frame, with its PSN relative to the connection's first PSN, and the
/// PSN in the packet.
std::string frame_text(const Json& frame) {
  std::string text = frame.at("frame").get<std::string>();
  if (frame.value("relative_psn", Json()).is_null()) return text;
  const auto psn = frame.at("psn").get<uint32_t>();
  const std::string absolute = "psn=" + std::to_string(psn);
  const size_t at = text.find(absolute);
  if (at == std::string::npos) return text;
  const auto relative = frame.at("relative_psn").get<uint32_t>();
  return text.replace(at, absolute.size(), "psn " + psn_text(psn, psn - relative));
}

void print(const Json& frame) {
  std::cout << frame_text(frame) << "\n";
  for (const Json& qp : frame.at("before")) print_qp("before  ", qp);
  for (const Json& qp : frame.at("after")) print_qp("after   ", qp);
}

int set_paused(const char* command, const Arguments& arguments) {
  const po::variables_map values = parse_options(command, arguments, options_of_pause());
  ControlClient client = choose_daemon(values, command);
  client.require_same_version();
  client.request(command);
  if (values["json"].as<bool>()) print_json({{"paused", std::string_view(command) == "pause"}});
  return 0;
}

}  // namespace

std::string pause_help() {
  return R"(usage: rocemu pause [--json] [--dir DIR]

Stops time in a running NIC: no frame arrives and no timeout expires until `rocemu step` or
`rocemu resume`. Programs can still post work requests; they wait for the completions.

)" + choice_in_words() +
         "\n" + to_text(options_of_pause()) + R"(
Example:
  rocemu pause; rocemu step 3; rocemu resume
)";
}

std::string resume_help() {
  return R"(usage: rocemu resume [--json] [--dir DIR]

Continues a NIC that `rocemu pause` stopped. The pause does not count for its timeouts.

)" + choice_in_words() +
         "\n" + to_text(options_of_pause());
}

std::string step_help() {
  return R"(usage: rocemu step [N] [--json] [--dir DIR]

Delivers the next frame of a paused NIC, or the next N, one by one. Prints each frame on a
line, with the state of its queue pair and of the peer before and after it. Before each frame,
programs have time to respond to the previous one. If no frame is under way, time advances to
the next timeout that sends one.

)" + choice_in_words() +
         "\n" + to_text(options_of_step()) + R"(
Examples:
  rocemu step
  rocemu step 10 --json | jq -r '.[].frame'
)";
}

int pause(const Arguments& arguments) {
  return set_paused("pause", arguments);
}

int resume(const Arguments& arguments) {
  return set_paused("resume", arguments);
}

int step(const Arguments& arguments) {
  po::options_description all = options_of_step();
  all.add_options()("words", po::value<Arguments>());
  po::positional_options_description positional;
  positional.add("words", -1);
  const po::variables_map values = parse_options("step", arguments, all, positional);
  uint64_t count = 1;
  if (values.count("words") != 0) {
    const Arguments words = values["words"].as<Arguments>();
    if (words.size() > 1) throw UsageError("step: unexpected argument '" + words[1] + "'");
    count = read_number("step", "", words[0], {1, kMaxFrames, "number of frames"});
  }
  ControlClient client = choose_daemon(values, "step");
  client.require_same_version();
  const Json frames = client.request("step", {{"frames", count}}).at("frames");
  if (values["json"].as<bool>()) {
    print_json(frames);
    return 0;
  }
  for (const Json& frame : frames) print(frame);
  if (frames.size() < count)
    std::cout << "no frame is in transit, and no pending timeout will send one\n";
  return 0;
}

}  // namespace rocemu::command
