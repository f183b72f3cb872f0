// One call, from its admission to its status.

#ifndef TIMECACHED_SERVER_SERVICE_CALL_CALL_H_
#define TIMECACHED_SERVER_SERVICE_CALL_CALL_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/status.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/service/call/access.h"
#include "server/service/call/call_gate.h"
#include "server/service/call/call_observer.h"
#include "server/service/call/method.h"

namespace timecache::server {

// Made first thing in every handler. It knows who calls, says what they may do,
// and ends with the call's status, of which the gate's observers are told:
//
//   Call call(gate, methods::kSize, context);
//   absl::Status status =
//       call.Authorize(config::v1::VERB_READ, request->namespace_());
//   if (status.ok()) ...
//   reactor->Finish(call.End(status));
//
// A call that ends well without anybody having asked what its caller may do is
// turned into INTERNAL: a handler without a check does not go unnoticed.
//
// The metadata x-request-id of the client, 1 to 128 graphic ASCII characters,
// is the call's request id; without it, it gets one of 32 hexadecimal digits. A
// call that fails says it in its trailing metadata, under the same name.
//
// Thread-compatible; what is const is thread-safe. Does not touch `context`
// after End. Costs, without rules, a branch for each question and no
// allocation; with observers two looks at the clock. With rules a token costs
// its SHA-256, less than a microsecond.
class Call final : public CallDetails {
 public:
  using FieldPath = std::string (*)(const std::string&);

  // None is owned; gate and context must outlive End. `account`: the
  // connection's, which may have been ended; may be null.
  Call(const CallGate& gate, const Method& method,
       grpc::ServerContextBase* context,
       const ResponseAccount* account = nullptr);
  // A call that nobody ended counts as UNKNOWN.
  ~Call() override;
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // Each of these is one question to the rules: OK, UNAUTHENTICATED (with
  // Access's reasons), or PERMISSION_DENIED (ACCESS_DENIED), of which the
  // observers are told.

  // Whether the caller may do all of `verbs` in the namespace, kWholeServer for
  // the server. No verbs: anything at all there.
  absl::Status Authorize(Verbs verbs, absl::string_view name) {
    Note(name);
    return AuthorizeAlso(verbs, name);
  }
  // The same for a namespace that the call needs beside its own: Namespace()
  // stays as it is.
  absl::Status AuthorizeAlso(Verbs verbs, absl::string_view name) {
    checked_ = true;
    if (refused()) return Refusal();
    if (gate_.access() == nullptr) return absl::OkStatus();
    return CountRefusal(Check(verbs, name), verbs, name);
  }
  // What the caller may do in the namespace; an error if that is nothing.
  absl::StatusOr<Verbs> VerbsIn(absl::string_view name);
  // Whether the caller may do anything anywhere.
  absl::Status AuthorizeAnywhere();
  // Only who it is. What is answered is then up to MaySee.
  absl::Status Identify();
  // Before a request of so many bytes is looked at: as Identify if the call is
  // refused, or the request large and its caller not known, against whom its
  // bytes then count. OK otherwise.
  absl::Status BeginRequest(size_t bytes);
  // Whether the caller, who is known, may do all of `verbs` in the namespace:
  // nobody is told if not.
  bool May(Verbs verbs, absl::string_view name) const {
    return gate_.access() == nullptr || Check(verbs, name).ok();
  }
  // Whether the caller may do anything at all in the namespace.
  bool MaySee(absl::string_view name) const;
  // The error for what VerbsIn lacks: the part of a batch that is not done.
  absl::Status Deny(Verbs verbs, absl::string_view name);

  // Whether it is not served, whatever it asks for: the server drains, or the
  // call's connection is gone. Each of the questions above then says so.
  bool refused() const { return refused_ != Refused::kNot; }

  // For streams. Whether the rules have changed since the caller was looked up.
  bool stale() const {
    return gate_.access() != nullptr &&
           gate_.access()->generation() != generation_;
  }
  // Looks the caller up again if so: UNAUTHENTICATED if there is none any more.
  // Authorize and VerbsIn then go by the new rules.
  absl::Status Renew();
  void CountReceived() const;
  void CountSent() const;

  // Operations of a batch that a limit refused, with this error. The call's own
  // error counts by itself.
  void CountRefused(const absl::Status& status, uint64_t operations) const;
  // Events that a watch is told it has lost in the namespace.
  void CountLost(absl::string_view name, uint64_t events) const;

  // The end: what the handler finishes with. Once.
  grpc::Status End(const absl::Status& status, FieldPath field_path = nullptr);

  std::string RequestId() const override;
  std::string TraceParent() const override;
  std::string Peer() const override;
  std::string Principal() const override;
  absl::string_view Namespace() const override {
    return {name_.data(), name_size_};
  }

 private:
  void Note(absl::string_view name);
  void Authenticate();
  // Why the call is not served, whoever makes it.
  enum class Refused : uint8_t { kNot, kDraining, kGone };
  static Refused WhyRefused(const CallGate& gate,
                            const grpc::ServerContextBase& context,
                            const ResponseAccount* account);
  absl::Status Refusal() const;
  absl::Status Check(Verbs verbs, absl::string_view name) const;
  absl::Status Denial(Verbs verbs, absl::string_view name) const;
  absl::Status CountRefusal(absl::Status status, Verbs verbs,
                            absl::string_view name);
  absl::string_view Metadata(absl::string_view key) const;

  const CallGate& gate_;
  const Method& method_;
  grpc::ServerContextBase* const context_;
  // Half of the id, if the client gave none; the other half is the process's.
  const uint64_t number_;
  int64_t start_ns_ = 0;
  // Null without rules, and while admission_ is an error.
  std::shared_ptr<const Caller> caller_;
  absl::Status admission_;
  uint64_t generation_ = 0;
  const Refused refused_;
  bool checked_ = false;
  bool ended_ = false;
  // The beginning of the namespace that Authorize or VerbsIn was last called
  // with; a valid name has room.
  uint8_t name_size_ = 0;
  std::array<char, 64> name_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_SERVICE_CALL_CALL_H_
