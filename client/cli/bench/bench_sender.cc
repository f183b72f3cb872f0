#include "client/cli/bench/bench_sender.h"

#include "absl/strings/str_cat.h"
#include "client/cpp/src/rpc/rpc_status.h"
#include "timecache/v1/data.pb.h"

namespace timecache::cli {

std::string_view BenchBytes::Of(const grpc::ByteBuffer& buffer) {
  if (buffer.TrySingleSlice(&slice_).ok()) {
    return {reinterpret_cast<const char*>(slice_.begin()), slice_.size()};
  }
  scratch_.clear();
  if (!buffer.Dump(&slices_).ok()) return {};
  for (const grpc::Slice& slice : slices_) {
    scratch_.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  slices_.clear();
  return scratch_;
}

absl::Status CheckExecuteResponse(std::string_view response, size_t operations,
                                  BenchListener& listener,
                                  BenchCounts& counts) {
  const std::optional<BenchCounts> scanned = ScanResults(response);
  if (scanned && scanned->results == operations) {
    counts = *scanned;
    if (counts.errors == 0) return absl::OkStatus();
  }
  v1::ExecuteResponse parsed;
  if (!parsed.ParseFromArray(response.data(),
                             static_cast<int>(response.size())) ||
      static_cast<size_t>(parsed.results_size()) != operations || !scanned) {
    return absl::InternalError(absl::StrCat(
        "the server's answer to ", operations, " operations has ",
        parsed.results_size(), " results: is it of this version?"));
  }
  for (const v1::OperationResult& result : parsed.results()) {
    if (result.has_error()) {
      listener.OperationFailed(FromRpcStatus(result.error()));
    }
  }
  return absl::OkStatus();
}

}  // namespace timecache::cli
