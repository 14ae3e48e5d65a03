#include "emulator/explore/trials/adversarial_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "emulator/explore/files.h"
#include "emulator/explore/trials/take_away.h"

namespace rocemu::explore {
namespace {

constexpr char kChoicesFile[] = "choices";
constexpr size_t kMaxNamed = 3;

std::string text_of(const std::string& of_class, const AdversarialChoices& choices) {
  if (choices.empty()) return "the NIC shows the behavior of the class " + of_class;
  std::string text;
  for (size_t i = 0; i < std::min(choices.size(), kMaxNamed); ++i)
    text += (i == 0 ? "" : ", and ") + choices[i].text;
  if (choices.size() > kMaxNamed)
    text += fmt::format(", and {} more of these", choices.size() - kMaxNamed);
  return text;
}

}  // namespace

AdversarialChoices choices_of(const std::string& lines, const std::string& of_class) {
  AdversarialChoices choices;
  std::istringstream stream(lines);
  for (std::string line; std::getline(stream, line);) {
    std::istringstream words(line);
    std::string name;
    AdversarialChoice choice;
    if (!(words >> name >> choice.number) || name != of_class || words.get() != ' ') continue;
    std::getline(words, choice.text);
    choices.push_back(std::move(choice));
  }
  return choices;
}

AdversarialChoices read_choices(const std::filesystem::path& recording,
                                const std::string& of_class) {
  const std::filesystem::path file = recording / kChoicesFile;
  if (of_class.empty() || !std::filesystem::exists(file)) return {};
  return choices_of(contents_of(file), of_class);
}

std::string adversarial_with(const std::string& of_class, const AdversarialChoices& choices) {
  std::string text = of_class;
  for (const AdversarialChoice& one : choices) text += ":" + std::to_string(one.number);
  return text;
}

ShrunkChoices shrink_choices(const std::string& of_class,
                             const std::function<AdversarialRun(const std::string& argument)>& run,
                             size_t most_runs) {
  AdversarialChoices best;
  const auto leads = [&](const AdversarialChoices& tried) {
    AdversarialRun made = run(adversarial_with(of_class, tried));
    // The list `made.choices` contains only the choices that this run reached, with their
    // descriptions.
    if (made.is_again) best = std::move(made.choices);
    return made.is_again;
  };
  // Tries all choices of the class: the argument has no numbers.
  if (!leads({})) return {};
  const AdversarialChoices all = best;
  const auto leads_without_all = [&](const AdversarialChoices& tried) {
    return !tried.empty() && leads(tried);
  };
  if (leads_without_all(all)) take_away(best, leads_without_all, most_runs);
  return {adversarial_with(of_class, best), text_of(of_class, best)};
}

}  // namespace rocemu::explore
