// Tests that the answer to any input is one JSON object per line.
#include "emulator/daemon/control/control_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>

#include "tests/daemon/temp_dir.h"

namespace rocemu::daemon {
namespace {

using testing::HasSubstr;

class ControlServerTest : public testing::Test {
 protected:
  ControlServerTest()
      : server(loop, listen_at(temp / "control", SOCK_STREAM),
               {{"version",
                 [](const Json&) {
                   return Json{{"version", "1"}};
                 }},
                {"echo",
                 [](const Json& request) {
                   return Json{{"said", request["say"]}};
                 }},
                {"never",
                 [](const Json&) -> Json { throw ControlServer::Refusal("it is never done"); }},
                {"big",
                 [](const Json&) {
                   return Json{{"text", std::string(1'000'000, 'x')}};
                 }}},
               {{"slow", [this](const Json& request, ControlServer::Done when_done) {
                   if (request.contains("refuse")) throw ControlServer::Refusal("not so fast");
                   done = std::move(when_done);
                 }}}) {
    client = connect_to_server();
  }

  UniqueFd connect_to_server() {
    UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, (temp / "control").c_str());
    EXPECT_EQ(connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    return fd;
  }
  void turn(int times = 10) {
    for (int i = 0; i < times; ++i) loop.wait(engine::Duration(0));
  }
  void say(const std::string& text) {
    EXPECT_EQ(send(client.get(), text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
    turn();
  }
  std::string hear() {
    std::string heard;
    char buffer[65536];
    ssize_t size;
    while ((size = recv(client.get(), buffer, sizeof buffer, 0)) > 0) {
      heard.append(buffer, static_cast<size_t>(size));
      turn();
    }
    closed = size == 0;
    return heard;
  }

  TempDir temp;
  EventLoop loop;
  ControlServer::Done done;
  ControlServer server;
  UniqueFd client;
  bool closed = false;
};

TEST_F(ControlServerTest, AnswersLineByLine) {
  say("{\"command\":\"version\"}\n{\"command\":\"ver");
  EXPECT_EQ(hear(), "{\"ok\":true,\"version\":\"1\"}\n");
  say("sion\"}\n");
  EXPECT_EQ(hear(), "{\"ok\":true,\"version\":\"1\"}\n");
}

TEST_F(ControlServerTest, ReportsAnErrorAndContinues) {
  say("nonsense\n");
  EXPECT_THAT(hear(), HasSubstr("not a JSON object"));
  say("[]\n");
  EXPECT_THAT(hear(), HasSubstr("not a JSON object"));
  say("{}\n");
  EXPECT_THAT(hear(), HasSubstr("no \\\"command\\\""));
  say("{\"command\":3}\n");
  EXPECT_THAT(hear(), HasSubstr("not a string"));
  say("{\"command\":\"sing\"}\n");
  EXPECT_THAT(
      hear(),
      HasSubstr("\\\"sing\\\" is unknown; the commands are big, echo, never, slow, version"));
  say(std::string("{\"command\":\"\xff\"}\n"));
  EXPECT_THAT(hear(), HasSubstr("\"ok\":false"));
  say("{\"command\":\"version\"}\n");
  EXPECT_THAT(hear(), HasSubstr("\"ok\":true"));
}

TEST_F(ControlServerTest, GivesACommandItsRequest) {
  say("{\"command\":\"echo\",\"say\":\"hello\"}\n");
  EXPECT_EQ(hear(), "{\"ok\":true,\"said\":\"hello\"}\n");
}

TEST_F(ControlServerTest, SaysWhyACommandIsNotDone) {
  say("{\"command\":\"never\"}\n");
  EXPECT_EQ(hear(), "{\"ok\":false,\"error\":\"it is never done\"}\n");
}

TEST_F(ControlServerTest, EndsAConnectionWhoseLineDoesNotEnd) {
  for (size_t sent = 0; sent <= ControlServer::kMaxLine; sent += 4096) say(std::string(4096, ' '));
  EXPECT_THAT(hear(), HasSubstr("at most"));
  EXPECT_TRUE(closed);
}

TEST_F(ControlServerTest, ASlowReaderDoesNotDelayOthers) {
  say("{\"command\":\"big\"}\n{\"command\":\"big\"}\n{\"command\":\"version\"}\n");
  UniqueFd slow = std::exchange(client, connect_to_server());
  say("{\"command\":\"version\"}\n");
  EXPECT_THAT(hear(), HasSubstr("\"ok\":true"));
  client = std::move(slow);
  const std::string all = hear();
  EXPECT_GT(all.size(), 2'000'000u);
  EXPECT_TRUE(all.ends_with("{\"ok\":true,\"version\":\"1\"}\n"));
}

TEST_F(ControlServerTest, AnswersAPeerThatHasNothingMoreToSay) {
  EXPECT_EQ(send(client.get(), "{\"command\":\"version\"}\n", 22, 0), 22);
  shutdown(client.get(), SHUT_WR);
  turn();
  EXPECT_THAT(hear(), HasSubstr("\"ok\":true"));
  EXPECT_TRUE(closed);
}

TEST_F(ControlServerTest, SurvivesAPeerThatLeavesInTheMiddle) {
  say("{\"command\":\"big\"}\n{\"comm");
  client.reset();
  turn();
  client = connect_to_server();
  say("{\"command\":\"version\"}\n");
  EXPECT_THAT(hear(), HasSubstr("\"ok\":true"));
}

TEST_F(ControlServerTest, AnswersASlowCommandWhenItIsDoneAndWhatFollowsThen) {
  say("{\"command\":\"slow\"}\n{\"command\":\"version\"}\n");
  EXPECT_EQ(hear(), "");
  const UniqueFd first = std::exchange(client, connect_to_server());
  say("{\"command\":\"version\"}\n");
  EXPECT_EQ(hear(), "{\"ok\":true,\"version\":\"1\"}\n");  // others go on
  done(Json{{"frames", 3}});
  client.reset(dup(first.get()));
  EXPECT_EQ(hear(), "{\"ok\":true,\"frames\":3}\n{\"ok\":true,\"version\":\"1\"}\n");
}

TEST_F(ControlServerTest, SaysWhyASlowCommandIsNotBegun) {
  say("{\"command\":\"slow\",\"refuse\":1}\n{\"command\":\"version\"}\n");
  EXPECT_EQ(hear(), "{\"ok\":false,\"error\":\"not so fast\"}\n{\"ok\":true,\"version\":\"1\"}\n");
}

TEST_F(ControlServerTest, ASlowCommandMayEndAfterItsPeerHasGone) {
  say("{\"command\":\"slow\"}\n");
  client.reset();
  turn();
  client = connect_to_server();  // the new connection may have the same descriptor number
  done(Json{{"frames", 3}});
  EXPECT_EQ(hear(), "");
  say("{\"command\":\"version\"}\n");
  EXPECT_EQ(hear(), "{\"ok\":true,\"version\":\"1\"}\n");
}

}  // namespace
}  // namespace rocemu::daemon
