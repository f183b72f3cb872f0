#include "server/api/enum_names.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/strip.h"

namespace timecache::server {
namespace {

using google::protobuf::EnumDescriptor;
using google::protobuf::EnumValueDescriptor;

constexpr char kUnspecified[] = "UNSPECIFIED";

bool IsUnspecified(const EnumValueDescriptor& value) {
  return value.number() == 0 && absl::EndsWith(value.name(), kUnspecified);
}

}  // namespace

std::vector<std::string> EnumNames(const EnumDescriptor& type) {
  std::vector<std::string> names;
  for (int i = 0; i < type.value_count(); ++i) {
    if (!IsUnspecified(*type.value(i))) {
      names.push_back(EnumName(*type.value(i)));
    }
  }
  return names;
}

std::string EnumName(const EnumValueDescriptor& value) {
  // LIMIT_POLICY_UNSPECIFIED shows what all names begin with.
  absl::string_view prefix;
  const EnumValueDescriptor* zero = value.type()->FindValueByNumber(0);
  if (zero != nullptr && IsUnspecified(*zero)) {
    prefix = absl::StripSuffix(zero->name(), kUnspecified);
  }
  return absl::AsciiStrToLower(absl::StripPrefix(value.name(), prefix));
}

const EnumValueDescriptor* FindEnumValue(const EnumDescriptor& type,
                                         absl::string_view name) {
  for (int i = 0; i < type.value_count(); ++i) {
    const EnumValueDescriptor& value = *type.value(i);
    if (!IsUnspecified(value) && EnumName(value) == name) return &value;
  }
  return nullptr;
}

}  // namespace timecache::server
