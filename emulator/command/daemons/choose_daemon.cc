#include "emulator/command/daemons/choose_daemon.h"

#include <cstdlib>
#include <optional>
#include <utility>
#include <vector>

#include "emulator/abi/runtime_dir.h"
#include "emulator/command/base/error.h"
#include "emulator/command/daemons/default_runtime_dir.h"

namespace rocemu::command {
namespace po = boost::program_options;
namespace {

ControlClient require_daemon(const std::string& dir, const std::string& named_by) {
  if (std::optional<ControlClient> client = ControlClient::connect(dir)) return std::move(*client);
  throw Failure("no daemon runs in " + dir + " (" + named_by + ")");
}

}  // namespace

void add_dir_option(po::options_description& options) {
  options.add_options()("dir", po::value<std::string>()->value_name("DIR"),
                        "use the NIC with this runtime directory");
}

ControlClient choose_daemon(const po::variables_map& values, const std::string& invocation) {
  if (values.count("dir") != 0)
    return require_daemon(values["dir"].as<std::string>(), "given by --dir");
  const char* const variable = std::getenv(abi::kDirVariable);
  if (variable != nullptr && variable[0] != '\0')
    return require_daemon(variable, std::string("given by ") + abi::kDirVariable);
  if (const std::string distrust = distrust_of_base(base_dir()); !distrust.empty())
    throw Failure("the runtime directory cannot be used: " + distrust);
  if (std::optional<ControlClient> shared = ControlClient::connect(shared_dir()))
    return std::move(*shared);

  std::vector<ControlClient> running;
  for (const std::string& dir : private_dirs())
    if (std::optional<ControlClient> client = ControlClient::connect(dir))
      running.push_back(std::move(*client));
  if (running.empty())
    throw Failure("no NIC is running; start one with `rocemu up` or `rocemu run -- COMMAND`");
  if (running.size() == 1) return std::move(running[0]);
  std::string list;
  for (const ControlClient& client : running)
    list += "\n  rocemu " + invocation + " --dir " + client.dir();
  throw Failure("several NICs are running; name one with --dir:" + list);
}

std::string choice_in_words() {
  return "The command uses the NIC of the enclosing `rocemu run`, else the shared NIC, else this "
         "user's only NIC.\n"
         "--dir chooses another one by its runtime directory.\n";
}

}  // namespace rocemu::command
