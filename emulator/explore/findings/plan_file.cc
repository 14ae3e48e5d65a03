#include "emulator/explore/findings/plan_file.h"

#include "emulator/explore/files.h"
#include "emulator/explore/findings/findings_folder.h"

namespace rocemu::explore {

Json identity_of(const Options& options, const RunFacts& baseline) {
  Json identity;
  identity["rocemu"] = ROCEMU_VERSION;
  identity["command"] = options.runs.command;
  identity["fabric"] = options.runs.fabric;
  identity["lockstep"] = options.runs.lockstep;
  identity["seed"] = options.seed;
  identity["random"] = options.random;
  identity["schedules"] = options.schedules;
  identity["adversarial"] = options.adversarial;
  identity["baseline_events"] = baseline.events;
  return identity;
}

Summary PlanFile::summary(const std::string& folder, int64_t baseline_ns) const {
  return {.command = identity.at("command").get<std::vector<std::string>>(),
          .fabric = identity.at("fabric").get<std::vector<std::string>>(),
          .lockstep = identity.at("lockstep"),
          .folder = folder,
          .points = points,
          .classes = classes,
          .trials = trials.size(),
          .baseline_ns = baseline_ns,
          .deterministic = deterministic,
          .stopped = {}};
}

void write_plan(const std::filesystem::path& folder, const PlanFile& plan) {
  Json json;
  json["identity"] = plan.identity;
  json["points"] = plan.points;
  json["classes"] = plan.classes;
  json["deterministic"] = plan.deterministic;
  json["baseline"] = json["trials"] = Json::array();
  for (const RunFacts& one : plan.baseline) json["baseline"].push_back(one.to_json());
  for (const Trial& trial : plan.trials) json["trials"].push_back(trial.to_json());
  json["shrunk"] = Json::array();
  for (const auto& [of, trial] : plan.shrunk)
    json["shrunk"].push_back(Json{{"of", of}, {"trial", trial.to_json()}});
  write_file(folder / kPlanFile, json.dump() + "\n");
}

PlanFile read_plan(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / kPlanFile;
  if (!std::filesystem::exists(file))
    throw ExploreError(folder.string() + " has no plan.json: it is not a folder of rocemu explore");
  try {
    const Json json = Json::parse(contents_of(file));
    PlanFile plan{.identity = json.at("identity"),
                  .points = json.at("points"),
                  .classes = json.at("classes"),
                  .deterministic = json.at("deterministic"),
                  .baseline = {},
                  .trials = {}};
    for (const Json& one : json.at("baseline")) plan.baseline.push_back(RunFacts::from_json(one));
    for (const Json& one : json.at("trials")) plan.trials.push_back(Trial::from_json(one));
    for (const Json& one : json.value("shrunk", Json::array()))
      plan.shrunk.emplace(one.at("of"), Trial::from_json(one.at("trial")));
    (void)plan.summary("", 0);
    if (plan.baseline.empty()) throw ExploreError("it has no baseline");
    return plan;
  } catch (const std::exception& error) {
    throw ExploreError(file.string() +
                       " is damaged, or from another version of rocemu: " + error.what());
  }
}

}  // namespace rocemu::explore
