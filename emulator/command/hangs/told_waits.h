// Reads what the threads of programs in lockstep wait for. The programs publish this for the NIC
// (abi/turn_table.h).
#pragma once

#include <optional>
#include <string>

#include "emulator/os/threads/blocked_threads.h"

namespace rocemu::abi {
struct TurnTable;
}

namespace rocemu::command {

/// A read-only view of a daemon's table of turns.
class TurnTableView {
 public:
  /// Opens the table. Returns nothing if the daemon in `dir` schedules no turns.
  static std::optional<TurnTableView> open(const std::string& dir);
  TurnTableView(TurnTableView&& other) noexcept;
  TurnTableView& operator=(TurnTableView&& other) noexcept;
  ~TurnTableView();

  ToldWaits waits() const;

 private:
  explicit TurnTableView(const abi::TurnTable* table) : table_(table) {}

  const abi::TurnTable* table_;
};

}  // namespace rocemu::command
