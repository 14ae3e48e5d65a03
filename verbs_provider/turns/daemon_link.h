// The process's connection to the daemon that assigns turns: a socket, an eventfd to return turns,
// and the table of all threads, which is mapped once.
#pragma once

#include <cstdint>

#include "emulator/abi/turn_table.h"

namespace rocemu::turns {

/// Returns the table of all threads; null before the process has connected.
abi::TurnTable* table();

/// The slot that was taken for the calling thread, with its serial number at that time
struct OwnSlot {
  uint32_t number = abi::TurnsHello::kNoSlot;
  uint32_t serial = 0;
};
/// Connects for the slot, and stores the number of the slot that the daemon assigns, which differs
/// if the slot has been freed. Returns false if there is no daemon that assigns turns.
bool connect_to_daemon(OwnSlot own, uint32_t* given);
/// Closes the descriptors of the parent's connection in a child of fork().
void disconnect();
bool is_daemon_gone();

/// Writes to the eventfd by which turns are returned, unless the daemon is awake. Returns false if
/// the program has closed the eventfd.
bool write_handback();

/// Sends a message to the daemon, with a descriptor if it is not -1. Returns TurnsReply::slot, or
/// -1 if the daemon has ended.
int64_t ask(const abi::TurnsRequest& request, int fd);

}  // namespace rocemu::turns
