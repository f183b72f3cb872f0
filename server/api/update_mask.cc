#include "server/api/update_mask.h"

#include <cstddef>
#include <string>

#include "absl/algorithm/container.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/util/field_mask_util.h"
#include "server/base/error.h"

namespace timecache::server {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::util::FieldMaskUtil;

// The longest part of a path that an error repeats: longer than any valid path.
constexpr size_t kMaxShownPathBytes = 128;

bool IsSet(const Message& message, const FieldDescriptor* field) {
  const auto& reflection = *message.GetReflection();
  return field->is_repeated() ? reflection.FieldSize(message, field) > 0
                              : reflection.HasField(message, field);
}

// More than there are options.
constexpr int kMaxPaths = 64;

}  // namespace

absl::Status ApplyUpdateMask(const google::protobuf::FieldMask& mask,
                             const Message& options, const Message& defaults,
                             absl::Span<const absl::string_view> fixed,
                             Message* changes) {
  if (mask.paths().empty()) {
    changes->CopyFrom(options);
    return absl::OkStatus();
  }
  if (mask.paths_size() > kMaxPaths) {
    return InvalidField("update_mask",
                        absl::StrCat("must have at most ", kMaxPaths,
                                     " paths, not ", mask.paths_size()));
  }
  const auto* const descriptor = options.GetDescriptor();
  const auto change = [&](const FieldDescriptor* field) {
    google::protobuf::FieldMask one;
    one.add_paths(field->name());
    FieldMaskUtil::MergeOptions merge;
    merge.set_replace_repeated_fields(true);
    FieldMaskUtil::MergeMessageTo(IsSet(options, field) ? options : defaults,
                                  one, merge, changes);
  };
  for (const std::string& path : mask.paths()) {
    if (path == "*" || path == "options") {
      for (int i = 0; i < descriptor->field_count(); ++i) {
        const FieldDescriptor* const field = descriptor->field(i);
        if (IsSet(options, field) ||
            !absl::c_linear_search(fixed, field->name())) {
          change(field);
        }
      }
      continue;
    }
    absl::string_view name = path;
    const FieldDescriptor* const field =
        absl::ConsumePrefix(&name, "options.")
            ? descriptor->FindFieldByName(std::string(name))
            : nullptr;
    if (field == nullptr) {
      return InvalidField(
          "update_mask",
          absl::StrCat("must have paths such as options.",
                       descriptor->field(0)->name(), ", options or *, not \"",
                       absl::CHexEscape(absl::string_view(path).substr(
                           0, kMaxShownPathBytes)),
                       "\""));
    }
    change(field);
  }
  return absl::OkStatus();
}

}  // namespace timecache::server
