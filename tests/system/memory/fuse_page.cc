// A file system with one file. A child process serves it through /dev/fuse in separate namespaces,
// and answers a read of the file only when the test requests that.
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "tests/system/memory/late_page.h"

namespace rocemu::system_test {
namespace {

constexpr uint64_t kFileNode = 2;
constexpr char kPlace[] = "/tmp";  // a mount point in the child's namespace only
constexpr char kFileName[] = "page";

/// The messages between the child and the test.
enum class Word : char { kMade = 'm', kFailed = 'f', kProvide = 'p', kTakeAway = 't', kDone = 'd' };

class FuseServer {
 public:
  explicit FuseServer(int control) : control_(control) {}

  [[noreturn]] void run() {
    if (!mount_it()) {
      say(Word::kFailed, -1);
      _exit(1);
    }
    // Opening the file sends a request to the process that serves it, so another process must open
    // it.
    if (const pid_t opener = fork(); opener == 0) {
      // When the server has ended, the kernel aborts the connection after the last descriptor of
      // the device is closed. The opener must not keep one: as it exits, it would wait for the
      // answer to its last request.
      close(device_);
      const std::string path = std::string(kPlace) + "/" + kFileName;
      const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
      say(file >= 0 ? Word::kMade : Word::kFailed, file);
      _exit(0);
    }
    serve();
    _exit(0);
  }

 private:
  bool mount_it() {
    const uid_t user = geteuid();
    const gid_t group = getegid();
    if (unshare(CLONE_NEWNS) != 0) {
      if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
      // In the user namespace, the user is root, so that the file system has an owner.
      write_file("/proc/self/setgroups", "deny");
      write_file("/proc/self/uid_map", "0 " + std::to_string(user) + " 1");
      write_file("/proc/self/gid_map", "0 " + std::to_string(group) + " 1");
    }
    if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
    device_ = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    const std::string options = "fd=" + std::to_string(device_) +
                                ",rootmode=40000,user_id=" + std::to_string(geteuid()) +
                                ",group_id=" + std::to_string(getegid());
    return device_ >= 0 &&
           mount("test", kPlace, "fuse", MS_NOSUID | MS_NODEV, options.c_str()) == 0;
  }

  static void write_file(const char* path, const std::string& text) {
    const int file = open(path, O_WRONLY | O_CLOEXEC);
    [[maybe_unused]] const ssize_t size = write(file, text.data(), text.size());
    close(file);
  }

  void say(Word word, int file) {
    char byte = static_cast<char>(word);
    iovec part{&byte, 1};
    alignas(cmsghdr) char space[CMSG_SPACE(sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (file >= 0) {
      message.msg_control = space;
      message.msg_controllen = sizeof(space);
      cmsghdr* header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(sizeof(int));
      std::memcpy(CMSG_DATA(header), &file, sizeof(int));
    }
    sendmsg(control_, &message, MSG_NOSIGNAL);
  }

  void serve() {
    while (true) {
      pollfd both[] = {{device_, POLLIN, 0}, {control_, POLLIN, 0}};
      if (poll(both, 2, -1) < 0) return;
      if ((both[1].revents & (POLLIN | POLLHUP)) != 0 && !obey()) return;
      if ((both[0].revents & POLLIN) != 0 && !answer_next()) return;
      if ((both[0].revents & POLLERR) != 0) return;
    }
  }

  bool obey() {
    char word;
    if (recv(control_, &word, 1, 0) != 1) return false;
    provides_ = static_cast<Word>(word) == Word::kProvide;
    if (provides_) {
      for (const fuse_in_header& read : waiting_) answer_read(read);
      waiting_.clear();
    }
    say(Word::kDone, -1);
    return true;
  }

  bool answer_next() {
    alignas(8) char request[FUSE_MIN_READ_BUFFER + 65536];
    const ssize_t size = read(device_, request, sizeof(request));
    if (size < 0) return errno == EINTR || errno == EAGAIN || errno == ENOENT;
    fuse_in_header header;
    std::memcpy(&header, request, sizeof(header));
    switch (header.opcode) {
      case FUSE_INIT: {
        fuse_init_in in{};
        std::memcpy(&in, request + sizeof(header), 16);
        fuse_init_out out{};
        out.major = FUSE_KERNEL_VERSION;
        out.minor = FUSE_KERNEL_MINOR_VERSION;
        out.max_readahead = in.max_readahead;
        out.flags = in.flags & FUSE_ASYNC_READ;
        out.max_write = 65536;
        return answer(header, &out, sizeof(out));
      }
      case FUSE_LOOKUP: {
        fuse_entry_out out{};
        out.nodeid = kFileNode;
        out.attr = attributes(kFileNode);
        const bool known = std::strcmp(request + sizeof(header), kFileName) == 0;
        return known ? answer(header, &out, sizeof(out)) : refuse(header, ENOENT);
      }
      case FUSE_GETATTR: {
        fuse_attr_out out{};
        out.attr = attributes(header.nodeid);
        return answer(header, &out, sizeof(out));
      }
      case FUSE_OPEN: {
        fuse_open_out out{};
        return answer(header, &out, sizeof(out));
      }
      case FUSE_READ:
        if (provides_) return answer_read(header);
        waiting_.push_back(header);
        return true;
      case FUSE_FLUSH:
      case FUSE_RELEASE:
        return answer(header, nullptr, 0);
      case FUSE_FORGET:
      case FUSE_BATCH_FORGET:
      case FUSE_INTERRUPT:
        return true;
      default:
        return refuse(header, ENOSYS);
    }
  }

  static fuse_attr attributes(uint64_t node) {
    fuse_attr attr{};
    attr.ino = node;
    attr.mode = node == kFileNode ? S_IFREG | 0666 : S_IFDIR | 0777;
    attr.nlink = 1;
    attr.size = LatePage::kSize;
    attr.blksize = LatePage::kSize;
    return attr;
  }

  bool answer_read(const fuse_in_header& read) {
    const std::vector<uint8_t> bytes(LatePage::kSize, LatePage::kProvided);
    return answer(read, bytes.data(), bytes.size());
  }
  bool refuse(const fuse_in_header& request, int error) {
    return answer(request, nullptr, 0, error);
  }
  /// If no process needs the answer any more, the kernel refuses it, which is not an error here.
  bool answer(const fuse_in_header& request, const void* bytes, size_t size, int error = 0) {
    fuse_out_header header{};
    header.len = static_cast<uint32_t>(sizeof(header) + size);
    header.error = -error;
    header.unique = request.unique;
    const iovec parts[] = {{&header, sizeof(header)}, {const_cast<void*>(bytes), size}};
    return writev(device_, parts, size == 0 ? 1 : 2) > 0 || errno == ENOENT;
  }

  int control_;
  int device_ = -1;
  bool provides_ = false;
  std::vector<fuse_in_header> waiting_;
};

class FusePage : public LatePage {
 public:
  ~FusePage() override {
    if (server_ > 0) {
      kill(server_, SIGKILL);  // threads that still wait for the page get an error
      waitpid(server_, nullptr, 0);
    }
    if (page_ != MAP_FAILED) munmap(page_, kSize);
    if (file_ >= 0) close(file_);
    if (control_ >= 0) close(control_);
  }

  bool make() {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) return false;
    control_ = pair[0];
    const pid_t parent = getpid();
    server_ = fork();
    if (server_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != parent) _exit(1);
      close(pair[0]);
      FuseServer(pair[1]).run();
    }
    close(pair[1]);
    if (server_ < 0 || hear(&file_) != Word::kMade) return false;
    page_ = mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE, file_, 0);
    return page_ != MAP_FAILED;
  }

  uint8_t* data() override { return static_cast<uint8_t*>(page_); }
  void provide() override { tell(Word::kProvide); }
  void take_away() override {
    madvise(page_, kSize, MADV_DONTNEED);
    posix_fadvise(file_, 0, kSize, POSIX_FADV_DONTNEED);
    tell(Word::kTakeAway);
  }

 private:
  void tell(Word word) {
    const char byte = static_cast<char>(word);
    int none = -1;
    if (send(control_, &byte, 1, MSG_NOSIGNAL) == 1) hear(&none);
  }

  Word hear(int* file) {
    char byte = static_cast<char>(Word::kFailed);
    iovec part{&byte, 1};
    alignas(cmsghdr) char space[CMSG_SPACE(sizeof(int))];
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = space;
    message.msg_controllen = sizeof(space);
    if (recvmsg(control_, &message, MSG_CMSG_CLOEXEC) != 1) return Word::kFailed;
    if (const cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr) {
      std::memcpy(file, CMSG_DATA(header), sizeof(int));
    }
    return static_cast<Word>(byte);
  }

  int control_ = -1;
  int file_ = -1;
  pid_t server_ = -1;
  void* page_ = MAP_FAILED;
};

}  // namespace

std::unique_ptr<LatePage> make_fuse_page(std::string* why) {
  auto page = std::make_unique<FusePage>();
  if (page->make()) return page;
  *why = "no file system in user space can be mounted here";
  return nullptr;
}

}  // namespace rocemu::system_test
