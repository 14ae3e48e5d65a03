#include "emulator/explore/trials/result_store.h"

#include <cerrno>
#include <stdexcept>
#include <system_error>

namespace rocemu::explore {

ResultStore::ResultStore(const std::filesystem::path& file, const Json& identity, bool resumes)
    : file_(file) {
  if (resumes && std::filesystem::exists(file)) read(file, identity);
  // The file is written again without a line that was truncated. The old file remains until the new
  // one is complete.
  const std::filesystem::path anew = file.string() + ".new";
  out_.open(anew, std::ios::trunc);
  out_ << identity.dump() << "\n";
  for (const auto& [key, facts] : facts_)
    out_ << Json{{"key", key}, {"facts", facts.to_json()}}.dump() << "\n";
  out_.flush();
  if (!out_)
    throw std::system_error(errno, std::generic_category(), "cannot write " + anew.string());
  std::filesystem::rename(anew, file);
}

void ResultStore::read(const std::filesystem::path& file, const Json& identity) {
  std::ifstream in(file);
  std::string line;
  if (!std::getline(in, line)) return;
  const Json theirs = Json::parse(line, nullptr, false);
  if (theirs != identity)
    throw std::runtime_error(
        "the results in " + file.parent_path().string() +
        " are from another command, other options or another version of rocemu: "
        "give another --output, or --force to replace them");
  for (size_t number = 2; std::getline(in, line); ++number) {
    const Json json = Json::parse(line, nullptr, false);
    if (json.is_discarded()) return;
    try {
      facts_[json.at("key").get<std::string>()] = RunFacts::from_json(json.at("facts"));
    } catch (const Json::exception& error) {
      throw std::runtime_error(file.string() + ", line " + std::to_string(number) +
                               " is damaged, so the exploration can be neither resumed nor merged: "
                               "--force begins a new one (" +
                               error.what() + ")");
    }
  }
}

const RunFacts* ResultStore::find(const std::string& key) const {
  const auto found = facts_.find(key);
  return found == facts_.end() ? nullptr : &found->second;
}

void ResultStore::add(const std::string& key, const RunFacts& facts) {
  facts_[key] = facts;
  out_ << Json{{"key", key}, {"facts", facts.to_json()}}.dump() << "\n" << std::flush;
  if (!out_)
    throw std::system_error(errno, std::generic_category(),
                            "cannot write " + file_.string() +
                                "; the findings so far are kept, and --resume continues from them");
}

void ResultStore::merge(const std::filesystem::path& file, const Json& identity) {
  std::map<std::string, RunFacts> mine = std::move(facts_);
  facts_.clear();
  read(file, identity);
  for (auto& [key, facts] : facts_) {
    if (mine.contains(key)) continue;
    out_ << Json{{"key", key}, {"facts", facts.to_json()}}.dump() << "\n";
    mine[key] = facts;
  }
  out_.flush();
  if (!out_)
    throw std::system_error(errno, std::generic_category(), "cannot write " + file_.string());
  facts_ = std::move(mine);
}

}  // namespace rocemu::explore
