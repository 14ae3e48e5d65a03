// Detects RDMA WRITEs of different QPs to the same bytes whose order no program can know, because
// the second was posted before the first was executed at its target. The poster of the second WRITE
// then cannot have learned that the first was executed, however programs communicate (IBTA vol 1,
// 9.5: there is no order between QPs). WRITEs that may have been ordered are not reported, so every
// report is a real race.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "emulator/engine/transport/context.h"

namespace rocemu::engine {

class WriteRaces {
 public:
  /// Starts checking.
  void watch() { is_watching_ = true; }
  bool is_watching() const { return is_watching_; }

  /// Checks the WQE that was posted to the QP last, and reports a race if there is one.
  void note_post(const TransportContext& context, const QueuePair& qp);

 private:
  struct Write {
    QpNumber qp;
    uint32_t generation;
    uint32_t index;  // of the WQE
    uint64_t address, length;
  };

  bool is_watching_ = false;
  std::unordered_map<uint32_t, std::vector<Write>> pending_;  // by R_Key, oldest first
};

}  // namespace rocemu::engine
