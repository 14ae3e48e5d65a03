// The process's connection to the daemon that assigns turns: a socket, an eventfd to return turns,
// and the table of all threads, which is mapped once.
#pragma once

#include <cstdint>

#include "emulator/abi/turn_table.h"

namespace rocemu::turns {

/// Returns the table of all threads; null before the process has connected.
abi::TurnTable* table();

/// Connects for the slot, or for TurnsHello::kNoSlot, and stores the slot that the daemon assigns.
/// Returns false if there is no daemon that assigns turns.
bool connect_to_daemon(uint32_t slot_number, uint32_t* given);
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
