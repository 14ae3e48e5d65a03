// A directory with a recording of a random program.
#pragma once

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/daemon/temp_dir.h"
#include "tests/engine/random_program.h"

namespace rocemu::test {

inline std::vector<std::byte> contents_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

class Recorded {
 public:
  Recorded(uint64_t seed, uint32_t inputs) {
    RandomProgram program(seed, dir_ / "");
    program.run(inputs);
  }

  std::string journal() const { return dir_ / "journal"; }
  std::string events() const { return dir_ / "events.jsonl"; }
  std::vector<std::byte> bytes() const { return contents_of(journal()); }

 private:
  daemon::TempDir dir_;
};

}  // namespace rocemu::test
