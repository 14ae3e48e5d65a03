// Reads docs/statuses.md and docs/faults.md for tests, and controls the daemon of the test's run as
// docs/control.md describes.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>
#include <string>

namespace rocemu::system_test {

inline std::string content_of(const char* path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.is_open()) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Returns the pages' rule for a value or a function, or "none". The row of a pattern such as
/// `ibv_wr_*` applies to all names with this beginning; a row with the whole name has precedence.
inline std::string rule_for(const std::string& name) {
  std::stringstream lines(content_of(ROCEMU_STATUSES_PAGE) + content_of(ROCEMU_FAULTS_PAGE));
  const std::regex star("`([a-z_]+)\\*`");
  bool is_covered = false;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("| ")) continue;
    const std::string names = line.substr(0, line.find(" | "));
    if (names == "| " + name || names.find("`" + name + "`") != std::string::npos) {
      const size_t begin = line.find("| `{");
      if (begin == std::string::npos) return "none";
      return line.substr(begin + 3, line.find('`', begin + 3) - begin - 3);
    }
    for (std::sregex_iterator it(names.begin(), names.end(), star), end; it != end; ++it) {
      is_covered |= name.starts_with((*it)[1].str());
    }
  }
  if (is_covered) return "none";
  ADD_FAILURE() << "docs/statuses.md and docs/faults.md do not say how to cause " << name;
  return "none";
}

/// Sends a request to the control socket (docs/control.md) of the daemon that runs this test.
/// Returns the answer.
inline std::string ask_daemon(const std::string& request) {
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = std::string(getenv("ROCEMU_DIR")) + "/control";
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  const std::string line = request + "\n";
  EXPECT_EQ(write(fd, line.data(), line.size()), static_cast<ssize_t>(line.size()));
  std::string reply;
  for (char c = 0; read(fd, &c, 1) == 1 && c != '\n';) reply += c;
  close(fd);
  return reply;
}

inline void inject(const std::string& rule) {
  if (rule == "none") return;
  const std::string escaped = std::regex_replace(rule, std::regex("\""), "\\\"");
  const std::string reply = ask_daemon(R"({"command":"inject","rule":")" + escaped + R"("})");
  EXPECT_NE(reply.find(R"("ok":true)"), std::string::npos) << reply;
}

}  // namespace rocemu::system_test
