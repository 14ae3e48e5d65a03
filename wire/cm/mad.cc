#include "wire/cm/mad.h"

#include "wire/big_endian.h"
#include "wire/layout.h"

namespace rocemu::wire {
namespace {

struct Layout {
  uint8_t base_version;
  uint8_t mgmt_class;
  uint8_t class_version;
  uint8_t method;
  Be16 status;
  Be16 class_specific;
  Be64 transaction_id;
  Be16 attribute_id;
  Be16 reserved;
  Be32 attribute_modifier;
};
static_assert(sizeof(Layout) == MadHeader::kSize && alignof(Layout) == 1);

}  // namespace

std::string_view name(MadError error) {
  switch (error) {
    case MadError::kTruncated:
      return "mad_truncated";
    case MadError::kTooLong:
      return "mad_too_long";
    case MadError::kBadBaseVersion:
      return "mad_bad_base_version";
    case MadError::kNotCm:
      return "mad_not_cm";
    case MadError::kBadClassVersion:
      return "mad_bad_class_version";
    case MadError::kBadMethod:
      return "mad_bad_method";
    case MadError::kUnknownAttribute:
      return "mad_unknown_attribute";
    case MadError::kReservedValue:
      return "mad_reserved_value";
    case MadError::kBadLength:
      return "mad_bad_length";
  }
  return "invalid_mad_error";
}

MadHeader parse_mad_header(std::span<const uint8_t, MadHeader::kSize> bytes) {
  const auto layout = load<Layout>(bytes);
  return {.base_version = layout.base_version,
          .mgmt_class = layout.mgmt_class,
          .class_version = layout.class_version,
          .method = layout.method,
          .status = layout.status.get(),
          .class_specific = layout.class_specific.get(),
          .transaction_id = layout.transaction_id.get(),
          .attribute_id = layout.attribute_id.get(),
          .attribute_modifier = layout.attribute_modifier.get()};
}

void emit(const MadHeader& header, std::span<uint8_t, MadHeader::kSize> bytes) {
  store(Layout{.base_version = header.base_version,
               .mgmt_class = header.mgmt_class,
               .class_version = header.class_version,
               .method = header.method,
               .status = Be16(header.status),
               .class_specific = Be16(header.class_specific),
               .transaction_id = Be64(header.transaction_id),
               .attribute_id = Be16(header.attribute_id),
               .reserved = Be16(),
               .attribute_modifier = Be32(header.attribute_modifier)},
        bytes);
}

}  // namespace rocemu::wire
