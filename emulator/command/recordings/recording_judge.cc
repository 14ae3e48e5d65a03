#include "emulator/command/recordings/recording_judge.h"

#include <string_view>

#include "emulator/abi/verbs_values.h"
#include "emulator/journal/event.h"
#include "emulator/sanitizer/words.h"

namespace rocemu::command {
namespace {

using journal::Event;
using journal::Field;

std::string title_of(const char* kind, uint64_t number) {
  return std::string(kind) + " " + std::to_string(number);
}

std::string title_of_rkey(uint64_t rkey) {
  return "R_Key " + sanitizer::in_hex(rkey);
}

/// Returns the name, as in findings, of the object that the verb creates; empty if it creates none.
std::string created_by(std::string_view verb, const Event& event) {
  if (!verb.starts_with("create_")) return "";
  for (const auto& [key, kind] : {std::pair("qp", "QP"), {"srq", "SRQ"}, {"cq", "CQ"}})
    if (const Field* number = event.find(key); number != nullptr && verb.find(key) != verb.npos)
      return title_of(kind, number->number);
  return "";
}

}  // namespace

sanitizer::Selection rules_for_recordings() {
  sanitizer::Selection judged;
  for (const sanitizer::Rule* rule : sanitizer::rules())
    if (rule->make == nullptr || rule == &sanitizer::kProtectionExplained) judged.insert(rule);
  return judged;
}

void RecordingJudge::on_step(const journal::Step& step, const engine::Outputs& outputs) {
  if (const auto* name = std::get_if<engine::NameProcess>(&*step.input)) {
    if (const auto* client = std::get_if<engine::ClientId>(&name->of))
      processes_[client->value] = name->program + "#" + std::to_string(name->number);
  } else if (std::holds_alternative<engine::Command>(*step.input)) {
    read_verb(step);
  }
  for (const sanitizer::EngineFinding& one : sanitizer::findings_in(outputs)) add(one);
  for (const engine::Output& output : outputs.list)
    if (const auto* completion = std::get_if<engine::Completion>(&output))
      read_completion(*completion);
}

void RecordingJudge::read_verb(const journal::Step& step) {
  const Event event = journal::describe_input(step);
  const Field* const name = event.find("verb");
  if (name == nullptr || event.find("error") != nullptr) return;
  const uint32_t client = std::get<engine::Command>(*step.input).client.value;
  constexpr double kBillion = 1e9;
  const FoundCallSite here{"",
                           "ibv_" + name->text,
                           static_cast<double>(step.now.time_since_epoch().count()) / kBillion,
                           {}};
  if (const std::string title = created_by(name->text, event); !title.empty())
    sites_[{client, title}] = here;
  const Field *const region = event.find("mr"), *const rkey = event.find("rkey");
  if (region != nullptr && rkey != nullptr) rkeys_[{client, region->number}] = rkey->number;
  const Field* const ended = event.find("object");
  if (name->text == "dereg_mr" && ended != nullptr)
    if (const auto key = rkeys_.find({client, ended->number}); key != rkeys_.end())
      sites_[{client, title_of_rkey(key->second)}] = here;
  const Field *const qp = event.find("qp"), *const peer = event.find("dest_qp");
  if (qp != nullptr && peer != nullptr)
    peers_[{client, static_cast<uint32_t>(qp->number)}] = static_cast<uint32_t>(peer->number);
}

void RecordingJudge::add(const sanitizer::EngineFinding& found) {
  const sanitizer::NicFinding& finding = found.finding;
  if (!rules_.contains(&finding.rule)) return;
  const uint32_t client = found.client.value;
  const auto process = processes_.find(client);
  Misuse misuse{.rule = &finding.rule,
                .message = "",
                .process = process != processes_.end() ? process->second : "a program",
                .sites = {}};
  misuse.message = misuse.process + " " + finding.message;
  std::string identity = std::string(finding.rule.id) + " " + misuse.process;
  for (const sanitizer::NicObject& object : finding.objects) {
    identity += "," + object.title;
    const auto site = sites_.find({client, object.title});
    if (site == sites_.end()) continue;
    misuse.sites.push_back(site->second);
    misuse.sites.back().what = object.what + " " + object.title;
  }
  const auto [at, is_new] = known_.try_emplace(identity, findings_.size());
  if (!is_new) {
    ++findings_[at->second].count;
    return;
  }
  if (found.request) unnamed_[{found.request->from.value, found.request->to.value}] = at->second;
  findings_.push_back(std::move(misuse));
}

/// Adds the wr_id to the finding about a failed request. When the requester gets a NAK for a
/// request, it completes that request with an error (IBTA vol 1, 9.9.2).
void RecordingJudge::read_completion(const engine::Completion& completion) {
  const abi::Cqe& cqe = completion.cqe;
  const auto status = static_cast<abi::WcStatus>(cqe.status);
  if (status != abi::WcStatus::kRemAccessErr && status != abi::WcStatus::kRnrRetryExcErr) return;
  const auto peer = peers_.find({completion.client.value, cqe.qp_num});
  if (peer == peers_.end()) return;
  const auto finding = unnamed_.find({cqe.qp_num, peer->second});
  if (finding == unnamed_.end()) return;
  findings_[finding->second].message += "; wr_id " + std::to_string(cqe.wr_id) + " of QP " +
                                        std::to_string(cqe.qp_num) + " completed with " +
                                        std::string(name_of(status));
  unnamed_.erase(finding);
}

}  // namespace rocemu::command
