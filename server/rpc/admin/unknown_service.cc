#include "server/rpc/admin/unknown_service.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "server/api/status.h"
#include "server/base/error.h"

namespace timecache::server {
namespace {

// The longest part of a path that the response repeats: longer than any
// method's.
constexpr size_t kMaxShownMethodBytes = 128;

class Refusal final : public grpc::ServerGenericBidiReactor {
 public:
  explicit Refusal(const std::string& path) {
    const std::string shown = absl::CHexEscape(
        absl::string_view(path).substr(0, kMaxShownMethodBytes));
    Finish(ToGrpcStatus(ErrorWithReason(
        absl::StatusCode::kUnimplemented, Reason::kUnknownMethod,
        absl::StrCat("this server has no method ", shown),
        {{"method", shown}})));
  }

  void OnDone() override { delete this; }
};

}  // namespace

grpc::ServerGenericBidiReactor* UnknownService::CreateReactor(
    grpc::GenericCallbackServerContext* context) {
  if (!guard_->IsGone(*context)) guard_->CountAnonymous(*context);
  return new Refusal(context->method());
}

}  // namespace timecache::server
