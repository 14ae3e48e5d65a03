// Tests the commands that librdmacm writes to /dev/infiniband/rdma_cm with write(2), and the errors
// for wrong commands.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <rdma/rdma_user_cm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

namespace rocemu::system_test {
namespace {

class RdmaCmCommands : public testing::Test {
 protected:
  void SetUp() override {
    fd = open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC);
    ASSERT_GE(fd, 0) << "is this run under `rocemu run`?";
  }
  void TearDown() override { close(fd); }

  /// Writes the command. Returns 0 or errno.
  template <class In>
  int command(uint32_t number, const In& in, uint16_t out_size = 0, int cut = 0) {
    struct {
      rdma_ucm_cmd_hdr header;
      In in;
    } message{{number, static_cast<uint16_t>(sizeof(In) - static_cast<size_t>(cut)), out_size}, in};
    const size_t size = sizeof message.header + message.header.in;
    const ssize_t written = write(fd, &message, size);
    EXPECT_TRUE(written == -1 || written == static_cast<ssize_t>(size));
    return written == -1 ? errno : 0;
  }
  int create_id(rdma_ucm_create_id_resp* response, uint16_t space = RDMA_PS_TCP) {
    rdma_ucm_create_id in{};
    in.uid = 1;
    in.response = reinterpret_cast<uintptr_t>(response);
    in.ps = space;
    in.qp_type = 2;
    return command(RDMA_USER_CM_CMD_CREATE_ID, in, sizeof *response);
  }

  int fd = -1;
};

TEST_F(RdmaCmCommands, TheDeviceIsACharacterDevice) {
  struct stat by_fd, by_name;
  ASSERT_EQ(fstat(fd, &by_fd), 0);
  ASSERT_EQ(stat("/dev/infiniband/rdma_cm", &by_name), 0);
  EXPECT_TRUE(S_ISCHR(by_fd.st_mode));
  EXPECT_TRUE(S_ISCHR(by_name.st_mode));
  EXPECT_EQ(by_fd.st_rdev, by_name.st_rdev);
}

TEST_F(RdmaCmCommands, UnknownCommandsAndShortOnesAreInvalid) {
  EXPECT_EQ(command(99, uint32_t{0}), EINVAL);
  EXPECT_EQ(command(RDMA_USER_CM_CMD_GET_OPTION, uint64_t{0}), ENOSYS);
  EXPECT_EQ(command(RDMA_USER_CM_CMD_LISTEN, rdma_ucm_listen{}, 0, 1), EINVAL);
  const rdma_ucm_cmd_hdr longer_than_written{RDMA_USER_CM_CMD_LISTEN, 8, 0};
  EXPECT_EQ(write(fd, &longer_than_written, sizeof longer_than_written), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(write(fd, "abc", 3), -1);
  EXPECT_EQ(errno, EINVAL);
}

TEST_F(RdmaCmCommands, ResponsesNeedRoomAndAnAddress) {
  rdma_ucm_create_id in{};
  in.ps = RDMA_PS_TCP;
  EXPECT_EQ(command(RDMA_USER_CM_CMD_CREATE_ID, in, 3), ENOSPC);
  EXPECT_EQ(command(RDMA_USER_CM_CMD_CREATE_ID, in, 4), EFAULT) << "a null pointer";
  rdma_ucm_get_event get{};
  EXPECT_EQ(command(RDMA_USER_CM_CMD_GET_EVENT, get, 100), ENOSPC);
}

TEST_F(RdmaCmCommands, AnIdThatDoesNotExistIsNotFound) {
  EXPECT_EQ(command(RDMA_USER_CM_CMD_LISTEN, rdma_ucm_listen{4711, 1}), ENOENT);
  rdma_ucm_destroy_id destroy{};
  uint32_t reported;
  destroy.response = reinterpret_cast<uintptr_t>(&reported);
  destroy.id = 4711;
  EXPECT_EQ(command(RDMA_USER_CM_CMD_DESTROY_ID, destroy, sizeof reported), ENOENT);
}

TEST_F(RdmaCmCommands, AnOptionsValueMustBeThere) {
  rdma_ucm_create_id_resp id{};
  ASSERT_EQ(create_id(&id), 0);
  rdma_ucm_set_option option{};
  option.id = id.id;
  option.level = RDMA_OPTION_ID;
  option.optname = RDMA_OPTION_ID_REUSEADDR;
  option.optlen = sizeof(int);
  EXPECT_EQ(command(RDMA_USER_CM_CMD_SET_OPTION, option), EFAULT);
  int yes = 1;
  option.optval = reinterpret_cast<uintptr_t>(&yes);
  EXPECT_EQ(command(RDMA_USER_CM_CMD_SET_OPTION, option), 0);
  option.optlen = 1u << 30;
  EXPECT_EQ(command(RDMA_USER_CM_CMD_SET_OPTION, option), EINVAL);
}

TEST_F(RdmaCmCommands, MigrationComesFromAnEventChannelOnly) {
  rdma_ucm_migrate_id in{};
  rdma_ucm_migrate_resp response{};
  in.response = reinterpret_cast<uintptr_t>(&response);
  in.fd = 9999;
  EXPECT_EQ(command(RDMA_USER_CM_CMD_MIGRATE_ID, in, sizeof response), ENOENT);
  in.fd = STDIN_FILENO;
  EXPECT_EQ(command(RDMA_USER_CM_CMD_MIGRATE_ID, in, sizeof response), EINVAL);
}

TEST_F(RdmaCmCommands, ANonblockingChannelHasNoEventToGive) {
  ASSERT_EQ(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
  rdma_ucm_event_resp event{};
  rdma_ucm_get_event get{};
  get.response = reinterpret_cast<uintptr_t>(&event);
  EXPECT_EQ(command(RDMA_USER_CM_CMD_GET_EVENT, get, sizeof event), EAGAIN);
  rdma_ucm_create_id_resp id{};
  EXPECT_EQ(create_id(&id), 0) << "other commands do not wait for events";
}

TEST_F(RdmaCmCommands, TheChannelIsReadableExactlyWhileThereIsAnEvent) {
  const auto readable = [&] {
    pollfd entry{fd, POLLIN, 0};
    return poll(&entry, 1, 0) == 1;
  };
  rdma_ucm_create_id_resp id{};
  ASSERT_EQ(create_id(&id), 0);
  EXPECT_FALSE(readable());
  rdma_ucm_resolve_ip resolve{};
  resolve.dst_addr.sin6_family = AF_INET6;
  resolve.dst_addr.sin6_addr.s6_addr[15] = 1;
  resolve.id = id.id;
  resolve.timeout_ms = 2000;
  ASSERT_EQ(command(RDMA_USER_CM_CMD_RESOLVE_IP, resolve), 0);
  EXPECT_TRUE(readable());
  rdma_ucm_event_resp event{};
  rdma_ucm_get_event get{};
  get.response = reinterpret_cast<uintptr_t>(&event);
  ASSERT_EQ(command(RDMA_USER_CM_CMD_GET_EVENT, get, sizeof event), 0);
  EXPECT_EQ(event.id, id.id);
  EXPECT_EQ(event.uid, 1u);
  EXPECT_EQ(event.reserved, 0u);
  EXPECT_FALSE(readable());
}

}  // namespace
}  // namespace rocemu::system_test
