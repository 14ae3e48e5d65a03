#include "emulator/engine/adversarial/placement.h"

#include "emulator/engine/adversarial/choices.h"

namespace rocemu::engine::adversarial {

using Shape = PlacementPlan::Shape;

uint32_t PlacementPlan::wave_of(uint64_t index, uint64_t count) const {
  switch (shape) {
    case Shape::kTogether:
      return 0;
    case Shape::kLastFirst:
      return index + 1 == count ? 0 : 1;
    case Shape::kBackward:
      return static_cast<uint32_t>((count - 1 - index) * kMaxWaves / count);
    case Shape::kScattered:
      return static_cast<uint32_t>((Random(salt ^ index).next() >> 32) % kMaxWaves);
  }
  return 0;
}

std::string in_words(const PlacementPlan& plan) {
  const std::string late = in_words(plan.delay), pieces = std::to_string(plan.granule) + " bytes";
  switch (plan.shape) {
    case Shape::kTogether:
      return "arrives " + late + " late";
    case Shape::kLastFirst:
      return "has its last " + pieces + " " + late + " before the others";
    case Shape::kBackward:
      return "arrives in thirds, the last one " + late + " before the first";
    case Shape::kScattered:
      return "arrives in pieces of " + pieces + " in any order, over " + late;
  }
  return "";
}

PlacementPlan draw_placement(Draw& draw) {
  constexpr std::array<Shape, 8> kShapes = {Shape::kTogether,  Shape::kTogether,  Shape::kLastFirst,
                                            Shape::kLastFirst, Shape::kLastFirst, Shape::kBackward,
                                            Shape::kScattered, Shape::kScattered};
  // The sizes, in bytes, of a word and a cache line, and about the size of a packet.
  constexpr std::array<uint32_t, 3> kGranules = {8, 64, 1024};
  const uint32_t kind = draw.below(kShapes.size());
  PlacementPlan plan;
  plan.shape = kShapes[kind];
  plan.salt = draw.bits();
  const uint32_t granule = kGranules[draw.below(kGranules.size())];
  if (plan.shape != Shape::kLastFirst) plan.granule = granule;
  const Duration delay = draw.delay();
  if (kind != 0) plan.delay = delay;
  return plan;
}

}  // namespace rocemu::engine::adversarial
