// The command line of vipl_pingpong.
#pragma once

#include <string>

namespace rocemu::vipl::pingpong {

enum class Mode { kPoll, kWait, kNotify };

struct Options {
  std::string device = "";
  std::string server;  // empty: this is the server
  std::string discriminator = "vipl_pingpong";
  Mode mode = Mode::kPoll;
  unsigned size = 4096;
  unsigned iterations = 1000;
  unsigned patience_s = 30;
  bool unreliable = false;
};

/// Reads the command line. Exits after --help, or with status 2 if the command line is wrong.
Options read_options(int argc, char** argv);

}  // namespace rocemu::vipl::pingpong
