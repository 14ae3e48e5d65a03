// A web server for one file and one connection, with ordinary blocking sockets: http_server ADDRESS
// PORT FILE. It answers each request with the file.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

namespace {

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

std::string content_of(const char* path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) fail(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const std::string body = content_of(argv[3]);
  const std::string answer = "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) +
                             "\r\nConnection: close\r\n\r\n" + body;
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  if (listener < 0) fail("socket");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(std::atoi(argv[2])));
  if (inet_pton(AF_INET, argv[1], &address.sin_addr) != 1) fail(argv[1]);
  if (bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) fail("bind");
  if (listen(listener, 1) != 0) fail("listen");
  const int connection = accept(listener, nullptr, nullptr);
  if (connection < 0) fail("accept");
  std::string request;
  char piece[1000];
  while (request.find("\r\n\r\n") == std::string::npos) {
    const ssize_t size = recv(connection, piece, sizeof piece, 0);
    if (size <= 0) fail("recv");
    request.append(piece, static_cast<size_t>(size));
  }
  for (size_t sent = 0; sent < answer.size();) {
    const ssize_t size = send(connection, answer.data() + sent, answer.size() - sent, 0);
    if (size <= 0) fail("send");
    sent += static_cast<size_t>(size);
  }
  shutdown(connection, SHUT_RDWR);
  close(connection);
  close(listener);
}
