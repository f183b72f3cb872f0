#include "client/cli/bench/bench_sender.h"

#include "absl/strings/str_cat.h"
#include "client/cpp/src/rpc/rpc_status.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/wire_format_lite.h"
#include "grpcpp/impl/codegen/proto_utils.h"
#include "timecache/v1/data.pb.h"

namespace timecache::cli {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

// Passes over the results without parsing them, which would take longer than
// sending the message did: each has one field, its response, and a response
// without content is a miss. False if it is not of this form.
bool Count(grpc::ByteBuffer& response, BenchCounts& counts) {
  using Result = v1::OperationResult;
  grpc::ProtoBufferReader bytes(&response);
  if (!bytes.status().ok()) return false;
  CodedInputStream in(&bytes);
  while (in.ReadTag() != 0) {
    int result_bytes = 0;
    int content_bytes = 0;
    if (!in.ReadVarintSizeAsInt(&result_bytes)) return false;
    const int end = in.CurrentPosition() + result_bytes;
    const int field = WireFormatLite::GetTagFieldNumber(in.ReadTag());
    if (!in.ReadVarintSizeAsInt(&content_bytes) || !in.Skip(content_bytes) ||
        in.CurrentPosition() != end) {
      return false;
    }
    ++counts.results;
    if (field == Result::kErrorFieldNumber) {
      ++counts.errors;
    } else if (field >= Result::kGetFieldNumber &&
               field <= Result::kTouchFieldNumber) {
      ++(content_bytes > 0 ? counts.hits : counts.misses);
    }
  }
  return in.ConsumedEntireMessage();
}

}  // namespace

bool IsOfOperation(const absl::Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsResourceExhausted(status) ||
         absl::IsFailedPrecondition(status);
}

absl::StatusOr<BenchCounts> ReadResults(grpc::ByteBuffer& response,
                                        size_t operations,
                                        BenchListener& listener) {
  BenchCounts counts;
  if (!Count(response, counts) || counts.results != operations) {
    return absl::InternalError(
        absl::StrCat("the server's answer to ", operations, " operations has ",
                     counts.results, " results: is it of this version?"));
  }
  if (counts.errors == 0) return counts;
  v1::ExecuteResponse parsed;
  const grpc::Status status =
      grpc::SerializationTraits<v1::ExecuteResponse>::Deserialize(&response,
                                                                  &parsed);
  if (!status.ok()) return FromGrpcStatus(status);
  for (const v1::OperationResult& result : parsed.results()) {
    if (result.has_error()) {
      listener.OperationFailed(FromRpcStatus(result.error()));
    }
  }
  return counts;
}

}  // namespace timecache::cli
