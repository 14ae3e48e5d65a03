#include "vipl/pingpong/options.h"

#include <boost/program_options.hpp>
#include <cstdlib>
#include <iostream>

namespace rocemu::vipl::pingpong {
namespace {

namespace po = boost::program_options;

constexpr const char* kAbout =
    R"(Sends a message back and forth through the library of the Virtual Interface Architecture (VIPL
1.0), and prints the time of a round trip, in the format of ibv_rc_pingpong.

usage: vipl_pingpong [OPTION]...            the server, which prints the address at which it listens
       vipl_pingpong [OPTION]... SERVER     the client; SERVER is a name or an address

Server and client need the same NIC, for example:
  rocemu run -- sh -c 'vipl_pingpong & vipl_pingpong localhost'

--mode chooses how a side waits for a message; the two sides can differ:
  poll     calls VipRecvDone until the message is there
  wait     sleeps in VipRecvWait
  notify   registers a handler with VipCQNotify; the handler takes the message, replies, and registers
           itself again
)";

[[noreturn]] void refuse(const std::string& what) {
  std::cerr << "vipl_pingpong: " << what << "\nSee vipl_pingpong --help.\n";
  std::exit(2);
}

Mode mode_of(const std::string& name) {
  if (name == "poll") return Mode::kPoll;
  if (name == "wait") return Mode::kWait;
  if (name == "notify") return Mode::kNotify;
  refuse("there is no mode '" + name + "'; use poll, wait or notify");
}

}  // namespace

Options read_options(int argc, char** argv) {
  Options options;
  std::string mode = "poll";
  po::options_description shown("Options");
  shown.add_options()                //
      ("help,h", "print this help")  //
      ("device,d", po::value(&options.device),
       "use this NIC: a verbs device (rocemu0), or VINIC and a number (default: the first one)")  //
      ("mode,m", po::value(&mode)->default_value(mode),
       "wait for messages by poll, wait or notify (see above)")  //
      ("size,s", po::value(&options.size)->default_value(options.size),
       "send messages of this many bytes")  //
      ("iters,n", po::value(&options.iterations)->default_value(options.iterations),
       "make this many round trips")  //
      ("unreliable,u", po::bool_switch(&options.unreliable),
       "use VIP_SERVICE_UNRELIABLE, which both sides need; a lost message ends the run")  //
      ("discriminator", po::value(&options.discriminator)->default_value(options.discriminator),
       "find the other side by this name of up to 20 bytes")  //
      ("patience", po::value(&options.patience_s)->default_value(options.patience_s),
       "wait this many seconds for the other side");
  po::options_description all;
  all.add(shown).add_options()("server", po::value(&options.server));
  po::positional_options_description positional;
  positional.add("server", 1);
  po::variables_map found;
  try {
    po::store(po::command_line_parser(argc, argv).options(all).positional(positional).run(), found);
    po::notify(found);
  } catch (const po::error& error) {
    refuse(error.what());
  }
  if (found.contains("help")) {
    std::cout << kAbout << '\n' << shown;
    std::exit(0);
  }
  options.mode = mode_of(mode);
  constexpr unsigned kMax = 1u << 30;
  if (options.size == 0 || options.size > kMax) refuse("--size must be from 1 to 2^30 bytes");
  if (options.iterations == 0) refuse("--iters must be at least 1");
  if (options.discriminator.size() > 20) refuse("--discriminator is at most 20 bytes long");
  return options;
}

}  // namespace rocemu::vipl::pingpong
