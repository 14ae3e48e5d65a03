#include "emulator/daemon/run/finding_log.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "emulator/abi/sanitizer_log.h"
#include "emulator/os/unique_fd.h"

namespace rocemu::daemon {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kCountsSize = abi::kMaxSanitizerReports * sizeof(uint64_t);
constexpr char kCountsName[] = "counts.nic";

uint64_t* map_counts(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!fd || ftruncate(fd.get(), kCountsSize) != 0) return nullptr;
  void* const memory = mmap(nullptr, kCountsSize, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  return memory == MAP_FAILED ? nullptr : static_cast<uint64_t*>(memory);
}

}  // namespace

FindingLog::FindingLog(const std::string& directory)
    : directory_(directory), counts_(map_counts(directory + "/" + kCountsName)) {
  std::ifstream names(directory + "/" + abi::kSanitizerRules);
  for (std::string name; std::getline(names, name);)
    if (const sanitizer::Rule* rule = sanitizer::find_rule(name)) rules_.insert(rule);
}

FindingLog::~FindingLog() {
  if (counts_ != nullptr) munmap(counts_, kCountsSize);
}

void FindingLog::name(pid_t pid, const std::string& program, uint32_t number) {
  append(Json{{"process", pid}, {"program", program}, {"number", number}}.dump(
      -1, ' ', false, Json::error_handler_t::replace));
}

void FindingLog::write(const sanitizer::NicFinding& finding, const Owner& owner) {
  if (!rules_.contains(&finding.rule)) return;
  std::string key = std::string(finding.rule.id) + " " + std::to_string(owner.pid);
  Json objects = Json::array();
  for (const sanitizer::NicObject& object : finding.objects) {
    key += "," + object.title;
    objects.push_back({{"what", object.what}, {"object", object.title}});
  }
  const auto [at, is_new] = indices_.try_emplace(key, indices_.size() + 1);
  if (at->second > abi::kMaxSanitizerReports) return (void)indices_.erase(at);
  if (counts_ != nullptr) ++counts_[at->second - 1];
  if (!is_new) return;
  append(Json{{"report", finding.rule.id},
              {"pid", owner.pid},
              {"device", owner.device},
              {"index", at->second},
              {"counts", kCountsName},
              {"message", finding.message},
              {"objects", objects}}
             .dump());
}

void FindingLog::append(const std::string& line) const {
  const std::string path = directory_ + "/" + abi::kSanitizerLog;
  const UniqueFd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  const std::string text = line + "\n";
  if (!fd || ::write(fd.get(), text.data(), text.size()) < 0)
    spdlog::warn("cannot write {}: {}", path, std::strerror(errno));
}

}  // namespace rocemu::daemon
