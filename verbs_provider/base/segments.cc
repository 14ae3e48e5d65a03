#include "verbs_provider/base/segments.h"

#include <cerrno>

#include "verbs_provider/base/objects.h"

namespace rocemu::provider {

Segments::~Segments() {
  while (first_ != nullptr) {
    Segment* segment = first_;
    first_ = segment->next;
    dispose(segment);
  }
}

int Segments::add(uint32_t number, int fd, uint64_t size) {
  auto* segment = make<Segment>();
  if (segment == nullptr) return ENOMEM;
  const int error = segment->memory.map(fd, size);
  if (error == 0) {
    const Guard guard(lock_);
    if (find(number) == nullptr) {
      segment->number = number;
      segment->next = first_;
      first_ = segment;
      return 0;
    }
  }
  dispose(segment);
  return error;
}

int Segments::find(const abi::SharedRange& range, SharedPiece* piece) {
  constexpr uint64_t kCacheLine = 64;
  const Guard guard(lock_);
  const Segment* segment = find(range.segment);
  if (segment == nullptr) return ENOENT;
  const uint64_t size = segment->memory.size();
  if (range.size > size || range.offset > size - range.size) return EIO;
  if (range.offset % kCacheLine != 0) return EIO;
  *piece = SharedPiece(segment->memory.at(range.offset), range.size);
  return 0;
}

Segments::Segment* Segments::find(uint32_t number) const {
  Segment* segment = first_;
  while (segment != nullptr && segment->number != number) segment = segment->next;
  return segment;
}

}  // namespace rocemu::provider
