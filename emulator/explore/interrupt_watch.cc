#include "emulator/explore/interrupt_watch.h"

#include <atomic>

namespace rocemu::explore {
namespace {

std::atomic<bool> is_asked = false;

}  // namespace

InterruptWatch::InterruptWatch() {
  is_asked = false;
  struct sigaction action {};
  action.sa_handler = [](int) { is_asked = true; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, &int_before_);
  sigaction(SIGTERM, &action, &term_before_);
  sigaction(SIGHUP, &action, &hup_before_);
  if (hup_before_.sa_handler == SIG_IGN) sigaction(SIGHUP, &hup_before_, nullptr);
  action = {};
  action.sa_handler = [](int) {};
  sigaction(SIGPIPE, &action, &pipe_before_);
}

InterruptWatch::~InterruptWatch() {
  sigaction(SIGINT, &int_before_, nullptr);
  sigaction(SIGTERM, &term_before_, nullptr);
  sigaction(SIGHUP, &hup_before_, nullptr);
  sigaction(SIGPIPE, &pipe_before_, nullptr);
}

bool InterruptWatch::interrupted() {
  return is_asked;
}

}  // namespace rocemu::explore
