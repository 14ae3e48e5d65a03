// The process's connection to the daemon that gives turns: a socket, an eventfd by which turns are
// handed back, and the table of all threads, which is mapped once.
#pragma once

#include <cstdint>

#include "emulator/abi/turn_table.h"

namespace rocemu::turns {

/// Returns the table; null before the process has connected.
abi::TurnTable* table();

/// Connects for the slot, or TurnsHello::kNoSlot, and stores the slot that the daemon gives.
/// Returns false if there is no daemon that gives turns.
bool connect_to_daemon(uint32_t slot_number, uint32_t* given);
/// Closes what a child of fork() has of its parent's connection.
void disconnect();
bool is_daemon_gone();

/// Writes the eventfd. Returns false if the program has closed it.
bool write_handback();

/// Sends a message to the daemon, with a descriptor if it is not -1, and returns TurnsReply::slot;
/// -1 if the daemon is gone.
int64_t ask(const abi::TurnsRequest& request, int fd);

}  // namespace rocemu::turns
