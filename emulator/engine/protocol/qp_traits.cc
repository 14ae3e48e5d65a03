#include "emulator/engine/protocol/qp_traits.h"

namespace rocemu::engine {

using abi::QpType;
using wire::Transport;

Transport transport_of(QpType type) {
  switch (type) {
    case QpType::kRc:
      return Transport::kRc;
    case QpType::kUc:
      return Transport::kUc;
    case QpType::kUd:
      return Transport::kUd;
    case QpType::kXrcSend:
    case QpType::kXrcRecv:
      return Transport::kXrc;
  }
  __builtin_unreachable();
}

bool is_reliable(QpType type) {
  return type != QpType::kUc && type != QpType::kUd;
}

}  // namespace rocemu::engine
