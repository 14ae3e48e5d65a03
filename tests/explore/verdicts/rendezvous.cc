// Two programs that meet in the way that the first argument names, at the path or the port that the
// second one names. With a third argument, this is the program that connects. If this program
// cannot allocate a PD, it reports that and ends, and the other program waits in vain.
#include <arpa/inet.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;

  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

/// Returns the address of a path, or of a port of the loopback interface.
Address address_of(const std::string& place) {
  Address address;
  if (place[0] == '/') {
    auto* local = reinterpret_cast<sockaddr_un*>(&address.storage);
    local->sun_family = AF_UNIX;
    std::strncpy(local->sun_path, place.c_str(), sizeof local->sun_path - 1);
    address.size = sizeof *local;
  } else {
    auto* internet = reinterpret_cast<sockaddr_in*>(&address.storage);
    internet->sin_family = AF_INET;
    internet->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    internet->sin_port = htons(static_cast<uint16_t>(std::stoi(place)));
    address.size = sizeof *internet;
  }
  return address;
}

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::exit(2);
}

void wait_readable(const std::string& way, int fd) {
  if (way == "poll") {
    pollfd entry{fd, POLLIN, 0};
    if (poll(&entry, 1, -1) != 1) fail("poll");
  } else if (way == "select") {
    fd_set set;
    FD_ZERO(&set);
    FD_SET(fd, &set);
    if (select(fd + 1, &set, nullptr, nullptr, nullptr) != 1) fail("select");
  } else if (way == "epoll") {
    const int epoll = epoll_create1(0);
    epoll_event event{EPOLLIN, {}};
    epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
    if (epoll_wait(epoll, &event, 1, -1) != 1) fail("epoll_wait");
  }
}

int listening(const std::string& place, int type) {
  if (place[0] == '/') unlink(place.c_str());
  Address address = address_of(place);
  const int fd = socket(address.storage.ss_family, type, 0);
  if (bind(fd, address.get(), address.size) != 0) fail("bind");
  if (type == SOCK_STREAM && listen(fd, 1) != 0) fail("listen");
  return fd;
}

void wait_for_other(const std::string& way, const std::string& place) {
  char byte = 0;
  if (way == "open") {
    if (read(open(place.c_str(), O_RDONLY), &byte, 1) != 1) fail("read");
    return;
  }
  if (way == "fifo") {  // also open for writing, so that its reader never sees the end
    if (read(open(place.c_str(), O_RDWR), &byte, 1) != 1) fail("read");
    return;
  }
  const bool has_datagrams = way == "recv";
  const int fd = listening(place, has_datagrams ? SOCK_DGRAM : SOCK_STREAM);
  wait_readable(way, fd);
  if (has_datagrams) {
    if (recv(fd, &byte, 1, 0) != 1) fail("recv");
  } else if ((way == "accept4" ? accept4(fd, nullptr, nullptr, SOCK_CLOEXEC)
                               : accept(fd, nullptr, nullptr)) < 0) {
    fail("accept");
  }
}

/// Connects to the other program, which may not have started yet.
void come(const std::string& way, const std::string& place) {
  const char byte = 'x';
  if (way == "open" || way == "fifo") {
    if (write(open(place.c_str(), O_WRONLY), &byte, 1) != 1) fail("write");
    return;
  }
  Address address = address_of(place);
  for (;;) {
    const int fd = socket(address.storage.ss_family, way == "recv" ? SOCK_DGRAM : SOCK_STREAM, 0);
    const bool connected = connect(fd, address.get(), address.size) == 0;
    if (way != "recv" && connected) return;
    // The second write(2) fails if nothing is bound to the port.
    if (way == "recv" && write(fd, &byte, 1) == 1 && usleep(1000) == 0 && write(fd, &byte, 1) == 1)
      return;
    close(fd);
    usleep(1000);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string way = argv[1], place = argv[2];
  ibv_device** devices = ibv_get_device_list(nullptr);
  ibv_context* context = ibv_open_device(devices[0]);
  if (context == nullptr) return 1;
  if (argc > 3) {
    ibv_pd* pd = ibv_alloc_pd(context);
    if (pd == nullptr) {
      std::perror("cannot allocate a PD");
      return 1;
    }
    come(way, place);
    ibv_dealloc_pd(pd);
  } else {
    wait_for_other(way, place);
    std::puts("met");
  }
  ibv_close_device(context);
  ibv_free_device_list(devices);
  return 0;
}
