// Tests librdmacm's event channels in the daemon, with an engine that accepts every request. The
// tests are about behavior that depends on which events the program has read.
#include "emulator/daemon/rdmacm/cm_session.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "tests/daemon/descriptor_limit.h"
#include "tests/daemon/recording_engine.h"

namespace rocemu::daemon {
namespace {

using abi::ucma::Command;
using abi::ucma::EventResponse;
using abi::ucma::EventType;

class Owner : public CmSessionOwner {
 public:
  void ended(CmSession&) override { ++ends; }
  CmSession* with_cookie(uint64_t cookie) override {
    for (CmSession* session : sessions) {
      if (session->cookie() == cookie) return session;
    }
    return nullptr;
  }
  std::vector<CmSession*> sessions;
  int ends = 0;
};

/// A channel, with the program's end and the daemon's end.
class Channel {
 public:
  Channel(RecordingEngine& engine, EventLoop& loop, Owner& owner, uint32_t number) : loop_(loop) {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    program = UniqueFd(ends[1]);
    session = std::make_unique<CmSession>(CmSession::Services{engine, loop, owner},
                                          engine::CmChannelId{number}, UniqueFd(ends[0]),
                                          PeerCredentials{getpid(), geteuid()});
    owner.sessions.push_back(session.get());
  }

  struct Answer {
    int error = -1;
    uint32_t events_reported = 0;
  };
  template <class In>
  Answer ask(Command command, const In& in, int old_channel = -1) {
    int pair[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    const UniqueFd reply(pair[0]);
    {
      const UniqueFd given(pair[1]);
      const abi::ucma::CommandHeader header{abi::ucma::kMagic, abi::ucma::kVersion, command,
                                            sizeof in, 4};
      std::vector<std::byte> message(sizeof header + sizeof in);
      std::memcpy(message.data(), &header, sizeof header);
      std::memcpy(message.data() + sizeof header, &in, sizeof in);
      std::vector<int> fds{given.get(), program.get()};
      if (old_channel >= 0) fds.push_back(old_channel);
      EXPECT_EQ(send_message(program.get(), message, fds), SendStatus::kOk);
    }
    loop_.wait(engine::Duration(0));
    struct {
      abi::ucma::ReplyHeader header;
      uint32_t events_reported;
    } answer{};
    if (recv(reply.get(), &answer, sizeof answer, MSG_DONTWAIT) < 0) return {};
    return {answer.header.error, answer.events_reported};
  }
  /// Reads an event. Returns the number of its id, or 0 if there is no event.
  uint32_t read_event() const {
    EventResponse event{};
    return recv(program.get(), &event, sizeof event, MSG_DONTWAIT) == sizeof event ? event.id : 0;
  }

  UniqueFd program;
  std::unique_ptr<CmSession> session;

 private:
  EventLoop& loop_;
};

EventResponse event_of(uint32_t id, EventType type = EventType::kEstablished,
                       uint32_t counted_for = 0) {
  EventResponse event{};
  event.id = id;
  event.reserved = counted_for != 0 ? counted_for : id;
  event.event = type;
  return event;
}

class CmSessions : public testing::Test {
 protected:
  CmSessions() {
    recorder.cm_answer = [](const engine::CmCommand& command) {
      const bool counts = command.command == Command::kDestroyId ||
                          command.command == Command::kLeaveMcast ||
                          command.command == Command::kMigrateId;
      return engine::CmReply{0, std::vector<std::byte>(counts ? 4 : 0)};
    };
  }

  RecordingEngine recorder;
  EventLoop loop;
  Owner owner;
  Channel channel{recorder, loop, owner, 1};
};

TEST_F(CmSessions, ACommandWhoseDescriptorsDoNotFitEndsNothing) {
  const abi::ucma::DestroyId destroy{0, 5, 0};
  int pair[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
  const UniqueFd reply(pair[0]);
  UniqueFd given(pair[1]);
  for (const rlim_t left : {0u, 1u}) {
    const DescriptorLimit limit(left);
    const abi::ucma::CommandHeader header{abi::ucma::kMagic, abi::ucma::kVersion,
                                          Command::kDestroyId, sizeof destroy, 4};
    std::vector<std::byte> message(sizeof header + sizeof destroy);
    std::memcpy(message.data(), &header, sizeof header);
    std::memcpy(message.data() + sizeof header, &destroy, sizeof destroy);
    const std::vector<int> fds{given.get(), channel.program.get()};
    ASSERT_EQ(send_message(channel.program.get(), message, fds), SendStatus::kOk);
    loop.wait(engine::Duration(0));
  }
  abi::ucma::ReplyHeader answer{};
  EXPECT_EQ(recv(reply.get(), &answer, sizeof answer, MSG_DONTWAIT),
            static_cast<ssize_t>(sizeof answer));
  EXPECT_EQ(answer.error, ENFILE) << "where there was room for the socket of the reply";
  given.reset();
  EXPECT_EQ(recv(reply.get(), &answer, sizeof answer, 0), 0) << "the other is told by the end";
  EXPECT_EQ(owner.ends, 0);
  EXPECT_EQ(channel.ask(Command::kDestroyId, destroy).error, 0);
}

TEST_F(CmSessions, AChannelOpensInTheEngine) {
  EXPECT_EQ(recorder.inputs, std::vector<std::string>{"open channel 1"});
}

TEST_F(CmSessions, ACommandIsAnsweredOnItsOwnSocket) {
  EXPECT_EQ(channel.ask(Command::kListen, abi::ucma::Listen{7, 1}).error, 0);
  EXPECT_EQ(channel.read_event(), 0u) << "the channel itself stays unreadable";
}

TEST_F(CmSessions, AMessageThatARequestWasReadGetsNoAnswer) {
  const struct {
    abi::ucma::CommandHeader header;
    abi::ucma::RequestRead request;
  } message{{abi::ucma::kMagic, abi::ucma::kVersion, Command::kGetEvent, 4, 0}, {7}};
  ASSERT_EQ(send(channel.program.get(), &message, sizeof message, 0), 24);
  loop.wait(engine::Duration(0));
  EXPECT_EQ(recorder.cm_commands, std::vector{Command::kGetEvent});
  EXPECT_FALSE(channel.session->has_ended());
  EXPECT_EQ(channel.read_event(), 0u);
}

TEST_F(CmSessions, EventsComeInOrderHoweverMany) {
  constexpr uint32_t kMany = 2000;  // more than a socket holds
  for (uint32_t id = 1; id <= kMany; ++id) channel.session->deliver(event_of(id));
  for (uint32_t id = 1; id <= kMany; ++id) {
    loop.wait(engine::Duration(0));
    ASSERT_EQ(channel.read_event(), id);
  }
}

TEST_F(CmSessions, DestructionCountsReadEventsAndRemovesTheOthers) {
  for (const uint32_t id : {7u, 8u, 7u, 7u, 9u}) channel.session->deliver(event_of(id));
  EXPECT_EQ(channel.read_event(), 7u);
  const auto answer = channel.ask(Command::kDestroyId, abi::ucma::DestroyId{0, 7, 0});
  EXPECT_EQ(answer.error, 0);
  EXPECT_EQ(answer.events_reported, 1u);
  EXPECT_EQ(channel.read_event(), 8u);
  EXPECT_EQ(channel.read_event(), 9u);
  EXPECT_EQ(channel.read_event(), 0u);
}

TEST_F(CmSessions, UnreadConnectRequestsOfAListenerGoWithIt) {
  channel.session->deliver(event_of(20, EventType::kConnectRequest, 7));
  channel.session->deliver(event_of(21, EventType::kConnectRequest, 7));
  EXPECT_EQ(channel.read_event(), 20u);
  EXPECT_EQ(channel.ask(Command::kDestroyId, abi::ucma::DestroyId{0, 7, 0}).events_reported, 1u);
  // The commands destroy the listener, and an id whose number no program will ever learn.
  EXPECT_EQ(recorder.cm_commands, (std::vector{Command::kDestroyId, Command::kDestroyId}));
}

TEST_F(CmSessions, LeavingAGroupCountsItsEventsOnly) {
  channel.session->deliver(event_of(7));
  channel.session->deliver(event_of(100, EventType::kMulticastJoin, 7));
  channel.session->deliver(event_of(101, EventType::kMulticastJoin, 7));
  EXPECT_EQ(channel.read_event(), 7u);
  EXPECT_EQ(channel.read_event(), 100u);
  EXPECT_EQ(channel.ask(Command::kLeaveMcast, abi::ucma::DestroyId{0, 100, 0}).events_reported, 1u);
  EXPECT_EQ(channel.ask(Command::kLeaveMcast, abi::ucma::DestroyId{0, 101, 0}).events_reported, 0u);
  EXPECT_EQ(channel.read_event(), 0u);
  EXPECT_EQ(channel.ask(Command::kDestroyId, abi::ucma::DestroyId{0, 7, 0}).events_reported, 1u);
}

TEST_F(CmSessions, MigrationTakesUnreadEventsAndTheCountAlong) {
  Channel other(recorder, loop, owner, 2);
  for (const uint32_t id : {7u, 7u, 8u}) channel.session->deliver(event_of(id));
  EXPECT_EQ(channel.ask(Command::kListen, abi::ucma::Listen{7, 1}).error, 0);
  EXPECT_EQ(channel.read_event(), 7u);
  const auto answer =
      other.ask(Command::kMigrateId, abi::ucma::MigrateId{0, 7, 0}, channel.program.get());
  EXPECT_EQ(answer.error, 0);
  EXPECT_EQ(answer.events_reported, 1u);
  EXPECT_EQ(channel.read_event(), 8u);
  EXPECT_EQ(channel.read_event(), 0u);
  EXPECT_EQ(other.read_event(), 7u);
  EXPECT_EQ(other.ask(Command::kDestroyId, abi::ucma::DestroyId{0, 7, 0}).events_reported, 2u);
}

TEST_F(CmSessions, MigrationFromAnythingButAChannelIsRefused) {
  const UniqueFd stranger(socket(AF_UNIX, SOCK_SEQPACKET, 0));
  const abi::ucma::MigrateId in{0, 7, 0};
  EXPECT_EQ(channel.ask(Command::kMigrateId, in, stranger.get()).error, EINVAL);
  EXPECT_EQ(channel.ask(Command::kMigrateId, in).error, EINVAL);
}

TEST_F(CmSessions, GarbageEndsTheChannelOnly) {
  const char garbage[] = "hello";
  ASSERT_EQ(send(channel.program.get(), garbage, sizeof garbage, 0), 6);
  loop.wait(engine::Duration(0));
  EXPECT_TRUE(channel.session->has_ended());
  EXPECT_FALSE(channel.session->end_reason().empty());
  EXPECT_EQ(owner.ends, 1);
}

TEST_F(CmSessions, AProgramThatGoesAwayIsAGoodbye) {
  channel.program.reset();
  loop.wait(engine::Duration(0));
  EXPECT_TRUE(channel.session->has_ended());
  EXPECT_EQ(channel.session->end_reason(), "");
}

}  // namespace
}  // namespace rocemu::daemon
