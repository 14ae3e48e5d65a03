// The entry point of rocemud, and of the child in which `rocemu run` continues as rocemud.
#pragma once

namespace rocemu::daemon {

/// Runs the NIC that the command line describes until it must end. Returns the exit status.
int daemon_main(int argc, const char* const* argv);

}  // namespace rocemu::daemon
