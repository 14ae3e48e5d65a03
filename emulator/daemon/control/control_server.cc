#include "emulator/daemon/control/control_server.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <vector>

#include "emulator/daemon/base/start_error.h"

namespace rocemu::daemon {
namespace {

std::string line_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string refusal(const std::string& why) {
  Json json;
  json["ok"] = false;
  json["error"] = why;
  return line_of(json);
}

}  // namespace

ControlServer::ControlServer(EventLoop& loop, UniqueFd listener, Commands commands,
                             SlowCommands slow_commands)
    : loop_(loop),
      commands_(std::move(commands)),
      slow_commands_(std::move(slow_commands)),
      listener_(loop, std::move(listener),
                [this](UniqueFd socket, PeerCredentials) { on_connect(std::move(socket)); }) {}

void ControlServer::on_connect(UniqueFd socket) {
  const int fd = socket.get();
  Connection connection;
  connection.watch = loop_.watch(fd, EPOLLIN, [this, fd](uint32_t) { on_ready(fd); });
  if (!connection.watch) return;
  connection.socket = std::move(socket);
  connection.serial = ++last_serial_;
  connections_.emplace(fd, std::move(connection));
}

void ControlServer::on_ready(int fd) {
  const auto found = connections_.find(fd);
  if (found == connections_.end()) return;
  Connection& connection = found->second;
  bool alive = !connection.awaits_done;  // otherwise the peer has ended and gets no more replies
  if (alive && connection.output.empty()) alive = read_from(connection);
  if (alive) {
    answer_lines(connection);
    alive = write_to(connection);
  }
  if (!alive) connections_.erase(found);
}

bool ControlServer::read_from(Connection& connection) {
  char buffer[4096];
  const ssize_t size = recv(connection.socket.get(), buffer, sizeof buffer, MSG_DONTWAIT);
  if (size < 0) return errno == EAGAIN || errno == EINTR;
  if (size == 0) connection.at_end = true;
  connection.input.append(buffer, static_cast<size_t>(size));
  return true;
}

bool ControlServer::write_to(Connection& connection) {
  while (!connection.output.empty()) {
    const ssize_t size = send(connection.socket.get(), connection.output.data(),
                              connection.output.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (size < 0) {
      if (errno != EAGAIN && errno != EINTR) return false;
      connection.watch.set_events(EPOLLOUT);
      return true;
    }
    connection.output.erase(0, static_cast<size_t>(size));
    // Lines that arrived while this reply was being sent are answered now.
    if (connection.output.empty()) answer_lines(connection);
  }
  connection.watch.set_events(connection.awaits_done ? 0u : EPOLLIN);
  return connection.awaits_done || !connection.at_end;
}

void ControlServer::answer_lines(Connection& connection) {
  if (!connection.output.empty() || connection.awaits_done) return;
  const size_t end = connection.input.find('\n');
  if (end != std::string::npos) {
    const std::string line = connection.input.substr(0, end);
    connection.input.erase(0, end + 1);
    connection.output = answer(connection, line);
  } else if (connection.input.size() > kMaxLine) {
    connection.output = refusal(fmt::format("a line has at most {} bytes", kMaxLine));
    connection.input.clear();
    connection.at_end = true;
  }
}

void ControlServer::finish(int fd, uint64_t serial, const Json& result) {
  const auto found = connections_.find(fd);
  if (found == connections_.end() || found->second.serial != serial) return;
  Connection& connection = found->second;
  connection.awaits_done = false;
  Json reply;
  reply["ok"] = true;
  reply.update(result);
  connection.output = line_of(reply);
  if (!write_to(connection)) connections_.erase(found);
}

std::string ControlServer::answer(Connection& connection, std::string_view line) {
  const Json request = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!request.is_object()) return refusal("this line is not a JSON object");
  const auto name = request.find("command");
  if (name == request.end() || !name->is_string()) {
    return refusal("the object has no \"command\", or it is not a string");
  }
  const auto command = commands_.find(name->get<std::string>());
  const auto slow_command = slow_commands_.find(name->get<std::string>());
  if (command == commands_.end() && slow_command == slow_commands_.end()) {
    std::vector<std::string> known;
    for (const auto& [known_name, function] : commands_) known.push_back(known_name);
    for (const auto& [known_name, function] : slow_commands_) known.push_back(known_name);
    std::ranges::sort(known);
    return refusal(fmt::format("the command \"{}\" is unknown; the commands are {}",
                               name->get<std::string>(), fmt::join(known, ", ")));
  }
  Json reply;
  reply["ok"] = true;
  try {
    if (command == commands_.end()) {
      slow_command->second(request,
                           [this, fd = connection.socket.get(), serial = connection.serial](
                               const Json& result) { finish(fd, serial, result); });
      connection.awaits_done = true;
      return "";
    }
    reply.update(command->second(request));
  } catch (const Refusal& why) {
    return refusal(why.what());
  }
  return line_of(reply);
}

}  // namespace rocemu::daemon
