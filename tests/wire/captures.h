// The frames in tests/data/rxe, which are captures of Linux rdma_rxe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tests/wire/bytes.h"

namespace rocemu::wire {

struct Capture {
  std::string name;
  std::vector<ByteVector> frames;
};

// Returns all captures, in order of their names.
const std::vector<Capture>& rxe_captures();

// Returns the RoCEv2 frames of the captures, without frame kBadIcrcFrame of kBadIcrcCapture.
const std::vector<ByteVector>& rxe_roce_frames();

// The capture with a connection request that was sent with a wrong ICRC on purpose, to see rxe drop
// it.
inline constexpr std::string_view kBadIcrcCapture = "interop_cm_req_from_host.pcap";
inline constexpr size_t kBadIcrcFrame = 1;

}  // namespace rocemu::wire
