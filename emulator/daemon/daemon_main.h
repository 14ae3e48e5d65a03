// The entry point of rocemud, and of the child process of `rocemu run` that becomes the daemon.
#pragma once

namespace rocemu::daemon {

/// Runs the NIC that the command line describes, until it must end. Returns the exit status.
int daemon_main(int argc, const char* const* argv);

}  // namespace rocemu::daemon
