// Compares the faults that are tried at each point with the lists in the man pages.
#include "emulator/explore/points/fault_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <sstream>

namespace rocemu::explore {
namespace {

using testing::Contains;
using testing::IsSupersetOf;
using testing::Not;

/// ibv_get_async_event(3), without IBV_EVENT_.
const std::set<std::string> kAsyncEvents = {"QP_FATAL",
                                            "QP_REQ_ERR",
                                            "QP_ACCESS_ERR",
                                            "COMM_EST",
                                            "SQ_DRAINED",
                                            "PATH_MIG",
                                            "PATH_MIG_ERR",
                                            "QP_LAST_WQE_REACHED",
                                            "CQ_ERR",
                                            "SRQ_ERR",
                                            "SRQ_LIMIT_REACHED",
                                            "WQ_FATAL",
                                            "PORT_ACTIVE",
                                            "PORT_ERR",
                                            "LID_CHANGE",
                                            "PKEY_CHANGE",
                                            "SM_CHANGE",
                                            "GID_CHANGE",
                                            "CLIENT_REREGISTER",
                                            "DEVICE_FATAL",
                                            "DEVICE_SPEED_CHANGE"};
/// The events of rdma_get_cm_event(3) without RDMA_CM_EVENT_, and those of rdma_cma.h that the page
/// does not have.
const std::set<std::string> kCmEvents = {
    "ADDR_RESOLVED",     "ADDR_ERROR",       "ROUTE_RESOLVED", "ROUTE_ERROR",
    "CONNECT_REQUEST",   "CONNECT_RESPONSE", "CONNECT_ERROR",  "UNREACHABLE",
    "REJECTED",          "ESTABLISHED",      "DISCONNECTED",   "DEVICE_REMOVAL",
    "MULTICAST_JOIN",    "MULTICAST_ERROR",  "ADDR_CHANGE",    "TIMEWAIT_EXIT",
    "ADDRINFO_RESOLVED", "ADDRINFO_ERROR",   "USER",           "INTERNAL"};

/// Returns the words of a text of rules and notes, without punctuation.
std::set<std::string> words_of(std::string text) {
  for (char& c : text)
    if (c == '{' || c == '}' || c == ',' || c == ':') c = ' ';
  std::istringstream stream(text);
  std::set<std::string> words;
  for (std::string word; stream >> word;) words.insert(word);
  return words;
}

std::set<std::string> words_of_table() {
  std::string text;
  for (const Fault& fault : fault_table()) text += std::string(fault.effect) + " ";
  for (const EventNote& note : event_notes()) text += std::string(note.names) + " ";
  return words_of(text);
}

FaultPoint point_of(PointKind kind, const std::string& name) {
  FaultPoint point;
  point.kind = kind;
  point.name = name;
  return point;
}

std::vector<std::string> effects_at(const FaultPoint& point) {
  std::vector<std::string> effects;
  for (const Fault& fault : faults_for(point)) effects.emplace_back(fault.effect);
  return effects;
}

TEST(FaultTable, HasEachAsyncEventOrSaysWhyNot) {
  EXPECT_THAT(words_of_table(), IsSupersetOf(kAsyncEvents));
}

TEST(FaultTable, HasEachCmEventOrSaysWhyNot) {
  EXPECT_THAT(words_of_table(), IsSupersetOf(kCmEvents));
}

TEST(FaultTable, RaisesEventsAtQpsThatOnlySend) {
  FaultPoint point = point_of(PointKind::kSendCompletion, "SEND");
  point.is_connected = true;
  EXPECT_THAT(effects_at(point),
              IsSupersetOf({"{raise: QP_REQ_ERR}", "{raise: QP_ACCESS_ERR}", "{raise: COMM_EST}",
                            "{raise: PORT_ERR}", "{raise: DEVICE_FATAL}"}));
  EXPECT_THAT(effects_at(point_of(PointKind::kWorkRequest, "SEND")), Contains("{raise: QP_FATAL}"));
}

TEST(FaultTable, RaisesEventsAtQpsThatOnlyReceive) {
  FaultPoint point = point_of(PointKind::kReceiveCompletion, "RECV");
  point.is_connected = true;
  EXPECT_THAT(effects_at(point),
              IsSupersetOf({"{raise: QP_FATAL}", "{raise: QP_REQ_ERR}", "{raise: QP_ACCESS_ERR}",
                            "{raise: COMM_EST}", "{raise: PORT_ERR}", "{raise: DEVICE_FATAL}",
                            "{port: {down: 1s}}"}));
}

TEST(FaultTable, RaisesEventsAtQpsThatAreTargetsOnly) {
  EXPECT_THAT(effects_at(point_of(PointKind::kRequest, "RDMA_WRITE")),
              IsSupersetOf({"{raise: QP_FATAL}", "{raise: COMM_EST}"}));
}

// IBTA vol 1, 11.6.3.2: only a connected QP has a peer whose request can be wrong.
TEST(FaultTable, RaisesNoErrorOfAPeerAtADatagramQp) {
  const std::vector<std::string> effects =
      effects_at(point_of(PointKind::kReceiveCompletion, "RECV"));
  EXPECT_THAT(effects, Not(Contains("{raise: QP_ACCESS_ERR}")));
  EXPECT_THAT(effects, Not(Contains("{raise: COMM_EST}")));
  EXPECT_THAT(effects, Contains("{raise: QP_FATAL}"));
}

TEST(FaultTable, RaisesEventsOfAnSrqWhereThereIsOne) {
  FaultPoint point = point_of(PointKind::kReceiveCompletion, "RECV");
  EXPECT_THAT(effects_at(point), Not(Contains("{raise: SRQ_LIMIT_REACHED}")));
  point.has_srq = true;
  EXPECT_THAT(effects_at(point), IsSupersetOf({"{raise: SRQ_LIMIT_REACHED}", "{raise: SRQ_ERR}",
                                               "{raise: QP_LAST_WQE_REACHED}"}));
}

// librdmacm converts the active side's CONNECT_RESPONSE into the ESTABLISHED that a program gets.
TEST(FaultTable, LetsAnEstablishedConnectionOfEitherSideFail) {
  for (const char* event : {"CONNECT_RESPONSE", "ESTABLISHED"})
    EXPECT_THAT(effects_at(point_of(PointKind::kCmEvent, event)),
                IsSupersetOf({"{raise_cm: UNREACHABLE}", "{raise_cm: DISCONNECTED}",
                              "{raise_cm: DEVICE_REMOVAL}", "{raise_cm: ADDR_CHANGE}"}));
}

TEST(FaultTable, SelectsErrorsByTheBeginningOfAVerbsName) {
  EXPECT_THAT(effects_at(point_of(PointKind::kVerb, "destroy_qp")), Contains("{errno: EBUSY}"));
  EXPECT_THAT(effects_at(point_of(PointKind::kVerb, "reg_mr")), Not(Contains("{errno: EBUSY}")));
}

TEST(FaultTable, DescribesAFaultWithItsPoint) {
  FaultPoint point = point_of(PointKind::kVerb, "reg_mr");
  point.process = "server#1";
  point.position = 2;
  const std::vector<Fault> faults = faults_for(point);
  EXPECT_EQ(text_of(point, faults.front()), "server#1's 2nd reg_mr fails with ENOMEM");
  EXPECT_EQ(text_of(point, faults.back()), "the device is removed at server#1's 2nd reg_mr");
}

}  // namespace
}  // namespace rocemu::explore
