#include "client/cli/context.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "client/cli/ui/output.h"
#include "client/cli/ui/units.h"
#include "client/cpp/src/rpc/client_core.h"
#include "timecache/status.h"

namespace timecache::cli {
namespace {

absl::StatusOr<std::string> ReadStdin() {
  std::string bytes(kMaxStdinBytes + 1, '\0');
  bytes.resize(std::fread(bytes.data(), 1, bytes.size(), stdin));
  if (std::ferror(stdin)) {
    return absl::UnknownError(
        absl::StrCat("standard input: ", std::strerror(errno)));
  }
  if (bytes.size() > kMaxStdinBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("standard input is longer than the largest value, ",
                     SizeText(kMaxStdinBytes)));
  }
  return bytes;
}

absl::StatusOr<std::string> DecodeAs(std::string_view name,
                                     std::string_view text, Encoding encoding) {
  absl::StatusOr<std::string> bytes = Decode(text, encoding);
  if (bytes.ok()) return bytes;
  return absl::InvalidArgumentError(
      absl::StrCat(std::string(name), ": ", bytes.status().message()));
}

// Equal for contexts that one connection serves.
std::string ServerKey(const Context& context) {
  const ChannelOptions& channel = context.channel;
  return absl::StrJoin(
      {context.address, channel.ca_file, channel.certificate_file,
       channel.key_file, channel.server_name, channel.token_file,
       std::string(channel.tls ? "tls" : ""),
       std::string(channel.allow_plaintext_token ? "plain" : "")},
      std::string(1, '\0'));
}

// The typical error of a TLS server for a client without TLS, or without its
// trust.
bool IsClosedAtOnce(const std::string& message) {
  return absl::StrContains(message, "failed to connect") &&
         (absl::StrContains(message, "Socket closed") ||
          absl::StrContains(message, "onnection reset"));
}

}  // namespace

Client Context::MakeClient() const {
  const ClientOptions options = {.default_namespace = ns(),
                                 .timeout = timeout,
                                 // A command that fails says so at once.
                                 .retry = {.max_attempts = 1},
                                 // One call at a time needs no stream.
                                 .batching = false};
  const std::string server = shared_client == nullptr ? "" : ServerKey(*this);
  if (shared_client != nullptr && shared_client->server == server &&
      shared_client->client) {
    return Client::Core::With(*shared_client->client, options);
  }
  auto made = Client::Make(address, channel, options);
  // RunCommand reports what value() throws.
  if (shared_client == nullptr && !made.ok()) std::exit(Fail(made.status()));
  if (shared_client != nullptr) *shared_client = {server, made.value()};
  return *std::move(made);
}

absl::StatusOr<std::string> Context::Key(const std::string& argument) const {
  return DecodeAs("key", argument, encodings.key);
}

absl::StatusOr<std::string> Context::Value(const std::string& argument) const {
  const Encoding encoding = encodings.value;
  if (argument != "-") return DecodeAs("value", argument, encoding);
  const absl::StatusOr<std::string> input = ReadStdin();
  if (!input.ok() || encoding == Encoding::kText) return input;
  return DecodeAs("value", std::string(absl::StripAsciiWhitespace(*input)),
                  encoding);
}

std::string Context::Explain(const absl::Status& status) const {
  const std::string message(status.message());
  const bool has_reason = ReasonName(status).has_value();
  if (IsTlsError(status)) {
    return absl::StrCat("cannot connect to ", address, ": ", message,
                        ": see --ca, --cert, --key and --server-name");
  }
  if (absl::IsUnavailable(status) && !has_reason && IsClosedAtOnce(message)) {
    return absl::StrCat("the server at ", address,
                        " closes the connection at once: does it want ",
                        channel.wants_tls()
                            ? "another client's certificate (--cert, --key)"
                            : "TLS (--tls, --ca)",
                        "? (", message, ")");
  }
  if (absl::IsUnavailable(status) && !has_reason) {
    return absl::StrCat("no server at ", address,
                        ": is timecached running there? Name another server "
                        "with --address (",
                        message, ")");
  }
  if (absl::IsDeadlineExceeded(status) && !has_reason) {
    return absl::StrCat("no answer from ", address, " within ",
                        DurationText(timeout),
                        ": allow more time with --timeout");
  }
  if (manages_namespaces &&
      HasReason(status, ErrorReason::kNamespaceNotFound)) {
    return absl::StrCat(message,
                        ": list those that exist with: timecachectl ns list");
  }
  if (manages_namespaces && HasReason(status, ErrorReason::kGroupNotFound)) {
    return absl::StrCat(message,
                        ": list those that exist with: timecachectl ns groups ",
                        namespaces.size() == 1 ? ns() : "NAMESPACE");
  }
  if (HasReason(status, ErrorReason::kNamespaceNotFound)) {
    return absl::StrCat(message, ": create it with: timecachectl ns create ",
                        namespaces.size() == 1 ? ns() : "NAME");
  }
  if (HasReason(status, ErrorReason::kGroupNotFound)) {
    return absl::StrCat(message,
                        ": create it with: timecachectl ns group-create ",
                        namespaces.size() == 1 ? ns() : "NAMESPACE", " GROUP");
  }
  if (HasReason(status, ErrorReason::kLogChanged) ||
      HasReason(status, ErrorReason::kResumePointAhead)) {
    return absl::StrCat(ErrorMetadata(status, "namespace").value_or(""), ": ",
                        message,
                        ", or without --fail-on-loss: the watch then continues "
                        "with the oldest retained event");
  }
  if (absl::IsUnimplemented(status)) {
    return absl::StrCat("the server at ", address,
                        " does not know this call: is it timecached, and of "
                        "this version? (",
                        message, ")");
  }
  return message;
}

std::string Context::ExplainBreak(const absl::Status& why) const {
  // gRPC sometimes returns only the code.
  const std::string reason = why.ok() ? "the server stopped"
                             : why.message().empty()
                                 ? absl::StatusCodeToString(why.code())
                                 : std::string(why.message());
  return absl::StrCat("lost the connection to ", address, ": ", reason,
                      "; trying again");
}

int Context::Fail(const absl::Status& status) const {
  const std::string text = Explain(status);
  if (!json) {
    Warn(text);
    return kExitError;
  }
  Json error = {{"code", absl::StatusCodeToString(status.code())}};
  if (const auto reason = ReasonName(status)) error["reason"] = *reason;
  if (const auto retry_after = RetryAfter(status)) {
    error["retry_after_ms"] = absl::ToDoubleMilliseconds(*retry_after);
  }
  error["message"] = text;
  std::fprintf(stderr, "%s\n",
               Json({{"error", error}})
                   .dump(-1, ' ', false, Json::error_handler_t::replace)
                   .c_str());
  return kExitError;
}

int Context::FailToWrite() const {
  if (WriteError() == EPIPE) return kExitDone;
  Warn(absl::StrCat("standard output: ", std::strerror(WriteError())));
  return kExitError;
}

void Warn(std::string_view message) {
  std::fprintf(stderr, "timecachectl: %s\n", Escape(message).c_str());
}

}  // namespace timecache::cli
