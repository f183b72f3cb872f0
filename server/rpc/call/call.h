// One call, from its admission to its status.

#ifndef TIMECACHED_SERVER_RPC_CALL_CALL_H_
#define TIMECACHED_SERVER_RPC_CALL_CALL_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/status.h"
#include "server/api/access.h"
#include "server/api/call_observer.h"
#include "server/api/method.h"
#include "server/rpc/call/call_gate.h"

namespace timecache::server {

// Whether a client may call a request so: 1 to 128 graphic ASCII characters.
bool IsRequestId(absl::string_view text);
// As https://www.w3.org/TR/trace-context/#traceparent-header has version 00:
// version, trace, span and flags in hexadecimal digits, no id all zeros.
bool IsTraceParent(absl::string_view text);

// Created first in every handler. It identifies the caller, checks its
// permissions, and ends with the call's status, which it reports to the gate's
// observers:
//
//   Call call(gate, methods::kSize, context);
//   absl::Status status =
//       call.Authorize(config::v1::VERB_READ, request->namespace_());
//   if (status.ok()) ...
//   reactor->Finish(call.End(status));
//
// A call that ends with OK without a permission check ends with INTERNAL
// instead: a handler without a check is detected.
//
// The metadata x-request-id of the client, 1 to 128 graphic ASCII characters,
// is the call's request id; without it, it gets one of 32 hexadecimal digits. A
// call that fails has it in its trailing metadata, under the same name.
//
// Thread-compatible; what is const is thread-safe. Does not touch `context`
// after End. Costs, without rules, a branch for each check and no allocation;
// with observers two reads of the clock. With rules a token costs its SHA-256,
// less than a microsecond.
class Call final : public CallDetails {
 public:
  using FieldPath = std::string (*)(const std::string&);

  // None is owned; gate and context must outlive End. `account`: the
  // connection's, which may have been ended; may be null.
  Call(const CallGate& gate, const Method& method,
       grpc::ServerContextBase* context,
       const ResponseAccount* account = nullptr);
  // A call without End counts as UNKNOWN.
  ~Call() override;
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // Each of these is one check of the rules: OK, UNAUTHENTICATED (with Access's
  // reasons), or PERMISSION_DENIED (ACCESS_DENIED), which are reported to the
  // observers.

  // Whether the caller may do all of `verbs` in the namespace, kWholeServer for
  // the server. No verbs: any permission there.
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
  // The caller's permissions in the namespace; an error if there are none.
  absl::StatusOr<Verbs> VerbsIn(absl::string_view name);
  // Whether the caller has any permission anywhere.
  absl::Status AuthorizeAnywhere();
  // Only identifies the caller. MaySee then decides what is answered.
  absl::Status Identify();
  // Called before a request of this many bytes is parsed: as Identify if the
  // call is refused, or if the request is large and its caller unknown, whose
  // address is then charged with its bytes. OK otherwise.
  absl::Status BeginRequest(size_t bytes);
  // Whether the caller, who is known, may do all of `verbs` in the namespace: a
  // denial is not reported.
  bool May(Verbs verbs, absl::string_view name) const {
    return gate_.access() == nullptr || Check(verbs, name).ok();
  }
  // Whether the caller has any permission in the namespace.
  bool MaySee(absl::string_view name) const;
  // The error for permissions that VerbsIn lacks: for the denied part of a
  // batch.
  absl::Status Deny(Verbs verbs, absl::string_view name);

  // Why it is not served at all: the server drains, the call's connection is
  // gone, or, to known callers, another node of the cluster serves. Each of the
  // checks above then returns this.
  bool refused() const { return refused_ != Refused::kNot; }
  // Whether its client has given it up, its deadline has passed, its connection
  // is gone or the server has stopped waiting for it.
  bool cancelled() const { return context_->IsCancelled(); }

  // For streams. As CallGate's: whether the node still serves.
  absl::Status CheckService() const { return gate_.CheckService(); }
  // Whether the rules have changed since the caller was looked up.
  bool stale() const {
    return gate_.access() != nullptr &&
           gate_.access()->generation() != generation_;
  }
  // Looks the caller up again if so: UNAUTHENTICATED if there is none any more.
  // Authorize and VerbsIn then go by the new rules.
  absl::Status Renew();
  void CountReceived() const;
  void CountSent() const;

  // Reports operations of a batch that a limit refused, with this error. The
  // call's own error is counted anyway.
  void CountRefused(const absl::Status& status, uint64_t operations) const {
    CountRefused(status, operations, *this);
  }
  void CountRefused(const absl::Status& status, uint64_t operations,
                    const CallDetails& batch) const;
  // Reports events that a watch has lost in the namespace.
  void CountLost(absl::string_view name, uint64_t events) const;

  // What the rules let the caller do; empty without rules, and for a caller
  // that is not known.
  std::vector<PatternVerbs> Permissions() const {
    return caller_ == nullptr ? std::vector<PatternVerbs>()
                              : caller_->Permissions();
  }
  bool has_rules() const { return gate_.access() != nullptr; }

  const std::vector<CallObserver*>& observers() const {
    return gate_.observers();
  }

  // Whether PERMISSION_DENIED is reported, as it is by default: not where each
  // operation reports its own.
  void set_reports_denials(bool reports) { reports_denials_ = reports; }

  // The part of a namespace's name that errors and logs repeat: all of a valid
  // one. Does not split a UTF-8 character.
  static absl::string_view Shown(absl::string_view name);

  // What calls are timed by: the steady clock.
  static int64_t NowNs();

  // Operations on keys that it has, for the observers. Default: none.
  void set_operations(size_t operations) {
    operations_ = static_cast<uint32_t>(operations);
  }

  // Ends the call; returns the status for the handler to finish with. Once.
  grpc::Status End(const absl::Status& status, FieldPath field_path = nullptr);

  uint64_t Operations() const override { return operations_; }
  std::string RequestId() const override;
  std::string TraceParent() const override;
  std::string Peer() const override;
  std::string Principal() const override;
  absl::string_view Namespace() const override {
    return {name_.data(), name_size_};
  }

 private:
  void Note(absl::string_view name);
  void NoteCaller(ConnectionUse* use) const;
  void Authenticate();
  // Why the call is not served, whatever its caller.
  enum class Refused : uint8_t { kNot, kDraining, kGone, kNotOwner };
  static Refused WhyRefused(const CallGate& gate, const Method& method,
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
  // Of kNotOwner: its error.
  absl::Status admission_;
  uint64_t generation_ = 0;
  Refused refused_;
  bool reports_denials_ = true;
  bool checked_ = false;
  bool ended_ = false;
  uint32_t operations_ = 0;
  // The beginning of the namespace that Authorize or VerbsIn was last called
  // with; a valid name has room.
  uint8_t name_size_ = 0;
  std::array<char, 64> name_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_RPC_CALL_CALL_H_
