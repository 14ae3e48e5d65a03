#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "tests/system/memory/late_page.h"

namespace rocemu::system_test {
namespace {

class UserfaultfdPage : public LatePage {
 public:
  ~UserfaultfdPage() override {
    if (fd_ >= 0) close(fd_);  // threads that still wait for the page continue
    if (page_ != MAP_FAILED) munmap(page_, kSize);
  }

  bool make() {
    fd_ = static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC));
    uffdio_api api{.api = UFFD_API, .features = 0, .ioctls = 0};
    if (fd_ < 0 || ioctl(fd_, UFFDIO_API, &api) != 0) return false;
    page_ = mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page_ == MAP_FAILED) return false;
    uffdio_register range{};
    range.range = {reinterpret_cast<uint64_t>(page_), kSize};
    range.mode = UFFDIO_REGISTER_MODE_MISSING;
    return ioctl(fd_, UFFDIO_REGISTER, &range) == 0;
  }

  uint8_t* data() override { return static_cast<uint8_t*>(page_); }
  void provide() override {
    const std::vector<uint8_t> bytes(kSize, kProvided);
    uffdio_copy copy{};
    copy.dst = reinterpret_cast<uint64_t>(page_);
    copy.src = reinterpret_cast<uint64_t>(bytes.data());
    copy.len = kSize;
    ioctl(fd_, UFFDIO_COPY, &copy);
  }
  void take_away() override { madvise(page_, kSize, MADV_DONTNEED); }

 private:
  int fd_ = -1;
  void* page_ = MAP_FAILED;
};

}  // namespace

std::unique_ptr<LatePage> make_userfaultfd_page(std::string* why) {
  auto page = std::make_unique<UserfaultfdPage>();
  if (page->make()) return page;
  *why = std::string("userfaultfd(2): ") + std::strerror(errno);
  return nullptr;
}

}  // namespace rocemu::system_test
