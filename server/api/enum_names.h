#ifndef TIMECACHED_SERVER_API_ENUM_NAMES_H_
#define TIMECACHED_SERVER_API_ENUM_NAMES_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"

namespace timecache::server {

// The names that people write for an enum's values: in lower case and without
// the enum's own, LIMIT_POLICY_EVICT_OLDEST is "evict_oldest". Thread-safe.

// All names in the enum's order, the one for "unspecified" (number 0) left out.
std::vector<std::string> EnumNames(
    const google::protobuf::EnumDescriptor& type);

// The name of one value.
std::string EnumName(const google::protobuf::EnumValueDescriptor& value);

// The value of that name, or null. "unspecified" is not a valid name.
const google::protobuf::EnumValueDescriptor* FindEnumValue(
    const google::protobuf::EnumDescriptor& type, absl::string_view name);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_API_ENUM_NAMES_H_
