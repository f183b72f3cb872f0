// The update mask of a request. Internal to the client.

#ifndef TIMECACHED_CLIENT_CPP_SRC_ADMIN_UPDATE_MASK_H_
#define TIMECACHED_CLIENT_CPP_SRC_ADMIN_UPDATE_MASK_H_

#include <algorithm>
#include <string>
#include <vector>

#include "google/protobuf/field_mask.pb.h"
#include "google/protobuf/message.h"

namespace timecache {

// Makes the request change the options that are set, and reset those that
// `to_default` names to their defaults, unless they are set. A request that
// names none needs no mask.
template <typename Request>
void SetUpdateMask(const google::protobuf::Message& options,
                   const std::vector<std::string>& to_default,
                   Request& request) {
  if (to_default.empty()) return;
  std::vector<const google::protobuf::FieldDescriptor*> set;
  options.GetReflection()->ListFields(options, &set);
  std::vector<std::string> names = to_default;
  for (const auto* field : set) names.push_back(field->name());
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  for (const std::string& name : names) {
    request.mutable_update_mask()->add_paths("options." + name);
  }
}

}  // namespace timecache

#endif  // TIMECACHED_CLIENT_CPP_SRC_ADMIN_UPDATE_MASK_H_
