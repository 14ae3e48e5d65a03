// `rocemu pause`, `resume` and `step`: a NIC whose frames arrive one at a time, to look at.
#include <charconv>
#include <iostream>

#include "emulator/command/daemons/choose_daemon.h"
#include "emulator/command/error.h"
#include "emulator/command/subcommand.h"

namespace rocemu::command {
namespace po = boost::program_options;
namespace {

constexpr uint64_t kMaxFrames = 1000;

po::options_description options_of_pause() {
  po::options_description options("Options");
  add_dir_option(options);
  return options;
}

po::options_description options_of_step() {
  po::options_description options("Options");
  options.add_options()("json", po::bool_switch(), "print JSON");
  add_dir_option(options);
  return options;
}

std::string qp_text(const Json& qp) {
  const auto number = [&](const char* key) { return std::to_string(qp.at(key).get<uint64_t>()); };
  return qp.at("device").get<std::string>() + " QP " + number("qp") + " " +
         qp.at("state").get<std::string>() + ": next to send " + number("send_psn") +
         ", oldest unacknowledged " + number("unacked_psn") + ", expects " +
         number("expected_psn") + ", " + number("send_posted") + " sends and " +
         number("recv_posted") + " receives posted";
}

void print(const Json& frame) {
  std::cout << frame.at("frame").get<std::string>() << "\n";
  const Json& before = frame.at("before");
  const Json& after = frame.at("after");
  for (const Json& qp : before) std::cout << "  before  " << qp_text(qp) << "\n";
  for (const Json& qp : after) std::cout << "  after   " << qp_text(qp) << "\n";
}

int set_paused(const char* command, const Arguments& arguments) {
  const po::variables_map values = parse_options(command, arguments, options_of_pause());
  ControlClient client = choose_daemon(values, command);
  client.require_same_version();
  client.request(command);
  return 0;
}

}  // namespace

std::string pause_help() {
  return "usage: rocemu pause [--dir DIR]\n"
         "\n"
         "Stops time in a running NIC: no frame arrives and no timeout passes until `rocemu step`\n"
         "or `rocemu resume`. Programs wait; what they post is taken.\n"
         "\n" +
         choice_in_words() + "\n" + to_text(options_of_pause()) +
         "\n"
         "Example:\n"
         "  rocemu pause; rocemu step 3; rocemu resume\n";
}

std::string resume_help() {
  return "usage: rocemu resume [--dir DIR]\n"
         "\n"
         "Lets a NIC go on that `rocemu pause` stopped. For its timeouts no time has passed.\n"
         "\n" +
         choice_in_words() + "\n" + to_text(options_of_pause());
}

std::string step_help() {
  return "usage: rocemu step [N] [--json] [--dir DIR]\n"
         "\n"
         "Of a paused NIC: lets the next frame arrive, or the next N, one by one. Prints each\n"
         "frame in a line, and the queue pair that it is for and its peer, before and after.\n"
         "Before each frame programs do what they do because of the one before it. When no frame\n"
         "is under way then, time moves on to the timeout that sends one.\n"
         "\n" +
         choice_in_words() + "\n" + to_text(options_of_step()) +
         "\n"
         "Examples:\n"
         "  rocemu step\n"
         "  rocemu step 10 --json | jq -r '.[].frame'\n";
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
    const std::string& word = words[0];
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), count);
    if (words.size() > 1 || error != std::errc() || end != word.data() + word.size() || count < 1 ||
        count > kMaxFrames)
      throw UsageError("step: '" + words.back() + "' is not a number of frames from 1 to 1000");
  }
  ControlClient client = choose_daemon(values, "step");
  client.require_same_version();
  const Json frames = client.request("step", {{"frames", count}}).at("frames");
  if (values["json"].as<bool>()) {
    std::cout << frames.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
    return 0;
  }
  for (const Json& frame : frames) print(frame);
  if (frames.size() < count) std::cout << "no frame is under way, and no timeout will send one\n";
  return 0;
}

}  // namespace rocemu::command
