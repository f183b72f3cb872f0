// Calls in tests: bounded, and their errors taken apart.

#ifndef TIMECACHED_TESTS_SUPPORT_RPC_H_
#define TIMECACHED_TESTS_SUPPORT_RPC_H_

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "google/protobuf/text_format.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "timecache/v1/errors.pb.h"

namespace timecache::test {

// No call of a test takes longer: one that would, fails.
inline constexpr std::chrono::seconds kCallTimeout{60};

inline void SetDeadline(grpc::ClientContext* context) {
  context->set_deadline(std::chrono::system_clock::now() + kCallTimeout);
}

// Waits for the connection. A connect that is under way is, very rarely, a
// failed one to gRPC 1.51, which reads errno too late: it tries again, but a
// call that was made meanwhile fails.
inline std::shared_ptr<grpc::Channel> Connected(
    std::shared_ptr<grpc::Channel> channel) {
  EXPECT_TRUE(channel->WaitForConnected(std::chrono::system_clock::now() +
                                        kCallTimeout));
  return channel;
}

// A message from its text form.
template <typename Message>
Message Proto(const std::string& text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message))
      << text;
  return message;
}

// The request of an update, from its text form, that changes the fields in
// `mask`; those that are set, if it is empty.
template <typename Request>
Request UpdateOf(const std::string& text,
                 const std::vector<std::string>& mask) {
  auto request = Proto<Request>(text);
  for (const std::string& path : mask) {
    request.mutable_update_mask()->add_paths(path);
  }
  return request;
}

template <typename Response>
struct Reply {
  grpc::Status status;
  Response response;
};

// Calls `method` of `stub`.
template <typename Stub, typename Request, typename Response>
Reply<Response> Call(Stub* stub,
                     grpc::Status (Stub::*method)(grpc::ClientContext*,
                                                  const Request&, Response*),
                     const Request& request) {
  grpc::ClientContext context;
  SetDeadline(&context);
  Reply<Response> reply;
  reply.status = (stub->*method)(&context, request, &reply.response);
  return reply;
}

// The response of a call that must succeed.
template <typename Response>
Response Must(Reply<Response> reply) {
  EXPECT_TRUE(reply.status.ok())
      << reply.status.error_code() << ": " << reply.status.error_message();
  return std::move(reply.response);
}

// What a program reads in an error.
struct ErrorParts {
  grpc::StatusCode code = grpc::StatusCode::OK;
  std::string message;
  // Of google.rpc.ErrorInfo; empty if there is none. A reason that errors.proto
  // does not have fails the test.
  std::string domain;
  v1::ErrorReason reason = v1::ERROR_REASON_UNSPECIFIED;
  std::map<std::string, std::string> metadata;
  // Of google.rpc.BadRequest's only violation; empty if there is none.
  std::string field;
  std::string description;
  // Of google.rpc.RetryInfo; 0 if there is none.
  absl::Duration retry_after = absl::ZeroDuration();
};

ErrorParts PartsOf(const grpc::Status& status);

// `status` is this error, in full: the details repeat its code and message.
void ExpectError(const grpc::Status& status, grpc::StatusCode code,
                 v1::ErrorReason reason,
                 const std::string& part_of_message = "");

// The same for INVALID_ARGUMENT about `field`, whose message names `limit`.
void ExpectInvalid(const grpc::Status& status, const std::string& field,
                   const std::string& limit);

// A call with one request of a service whose generated code Debian does not
// have. Messages are encoded. Not thread-safe.
class RawStream {
 public:
  RawStream(const std::shared_ptr<grpc::Channel>& channel,
            const std::string& method, const std::string& request);
  // Cancels it.
  ~RawStream();
  RawStream(const RawStream&) = delete;
  RawStream& operator=(const RawStream&) = delete;

  // The next message, or nothing at the end.
  std::optional<std::string> Next();

 private:
  bool Await();

  grpc::CompletionQueue queue_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
};

// The first message of such a call; an error becomes "".
std::string CallRaw(const std::shared_ptr<grpc::Channel>& channel,
                    const std::string& method, const std::string& request);

// grpc.health.v1: 1 is SERVING, 2 is NOT_SERVING; -1 if there is no answer.
int HealthOf(const std::shared_ptr<grpc::Channel>& channel);

}  // namespace timecache::test

#endif  // TIMECACHED_TESTS_SUPPORT_RPC_H_
