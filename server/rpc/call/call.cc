#include "server/rpc/call/call.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "absl/random/random.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "server/api/status.h"
#include "server/base/error.h"
#include "server/edge/connection/certificate_names.h"
#include "server/edge/response/open_streams.h"

namespace timecache::server {
namespace {

constexpr char kAnonymous[] = "anonymous";
constexpr char kRequestIdKey[] = "x-request-id";
constexpr char kTraceParentKey[] = "traceparent";
constexpr char kAuthorizationKey[] = "authorization";
constexpr char kUserAgentKey[] = "user-agent";
constexpr size_t kMaxUserAgentBytes = 256;
constexpr size_t kMaxShownNameBytes = 64;
constexpr size_t kMaxRequestIdBytes = 128;

// Different for each call of the process, at the cost of a multiplication.
uint64_t NextNumber() {
  thread_local uint64_t state = absl::Uniform<uint64_t>(absl::BitGen());
  // The steps of a linear congruential generator do not repeat for 2^64 calls.
  state = state * 6364136223846793005u + 1442695040888963407u;
  return state;
}

absl::string_view View(const grpc::string_ref& ref) {
  return {ref.data(), ref.size()};
}

bool IsLowerHex(absl::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isdigit(c) || (c >= 'a' && c <= 'f');
  });
}

bool IsZero(absl::string_view text) {
  return text.find_first_not_of('0') == absl::string_view::npos;
}

// Whether a node of a cluster serves it without being the owner.
bool IsServedByAllNodes(const Method& method) {
  return method.index == methods::kGetServer.index ||
         method.index == methods::kGetCluster.index ||
         method.index == methods::kHandOver.index ||
         method.index == methods::kWhoAmI.index ||
         method.index == methods::kListConnections.index ||
         method.index == methods::kCloseConnection.index ||
         method.index == methods::kListSlowCalls.index ||
         // It answers each of its calls.
         method.index == methods::kExchange.index;
}

// Whether a limit is the cause.
bool IsRefusal(const absl::Status& status) {
  return absl::IsResourceExhausted(status) ||
         (absl::IsOutOfRange(status) &&
          ReasonOf(status) == Reason::kResumePointTrimmed);
}

}  // namespace

bool IsRequestId(absl::string_view text) {
  return !text.empty() && text.size() <= kMaxRequestIdBytes &&
         std::all_of(text.begin(), text.end(), absl::ascii_isgraph);
}

bool IsTraceParent(absl::string_view text) {
  constexpr size_t kBytes = 55;
  if (text.size() != kBytes || text[2] != '-' || text[35] != '-' ||
      text[52] != '-') {
    return false;
  }
  const absl::string_view trace = text.substr(3, 32);
  const absl::string_view span = text.substr(36, 16);
  return text.substr(0, 2) == "00" && IsLowerHex(trace) && !IsZero(trace) &&
         IsLowerHex(span) && !IsZero(span) && IsLowerHex(text.substr(53));
}

Call::Call(const CallGate& gate, const Method& method,
           grpc::ServerContextBase* context, const ResponseAccount* account)
    : gate_(gate),
      method_(method),
      context_(context),
      number_(NextNumber()),
      refused_(WhyRefused(gate, method, *context, account)) {
  if (!gate_.observers().empty()) {
    start_ns_ = NowNs();
    for (CallObserver* observer : gate_.observers()) {
      observer->OnStarted(method_);
    }
  }
  if (refused()) return;
  if (gate_.access() != nullptr) {
    Authenticate();
  } else if (gate_.guard() != nullptr) {
    gate_.guard()->CountKnown(*context_, /*has_credentials=*/false);
  }
  if (account != nullptr && account->use().wants_caller() && admission_.ok()) {
    NoteCaller(&account->use());
  }
  if (!gate_.checks_service() || IsServedByAllNodes(method_)) return;
  // Last, as only known callers learn who owns.
  if (!admission_.ok()) return;
  admission_ = gate_.CheckService();
  if (!admission_.ok()) refused_ = Refused::kNotOwner;
}

absl::string_view Call::Shown(absl::string_view name) {
  if (name.size() <= kMaxShownNameBytes) return name;
  size_t size = kMaxShownNameBytes;
  while (size > 0 && (static_cast<uint8_t>(name[size]) & 0xc0) == 0x80) --size;
  return name.substr(0, size);
}

int64_t Call::NowNs() {
  return std::chrono::steady_clock::now().time_since_epoch().count();
}

Call::~Call() {
  if (!ended_) End(absl::UnknownError("the call's handler is gone"));
}

absl::StatusOr<Verbs> Call::VerbsIn(absl::string_view name) {
  Note(name);
  if (refused()) return Refusal();
  if (gate_.access() == nullptr) return Verbs::All();
  absl::Status status = CountRefusal(Check(Verbs(), name), Verbs(), name);
  if (!status.ok()) return status;
  return caller_->VerbsIn(name);
}

Call::Refused Call::WhyRefused(const CallGate& gate, const Method& method,
                               const grpc::ServerContextBase& context,
                               const ResponseAccount* account) {
  // Its client is gone and cannot read a response.
  if (account != nullptr && account->ended()) return Refused::kGone;
  if (gate.guard() != nullptr && gate.guard()->IsGone(context)) {
    return Refused::kGone;
  }
  // A node of a cluster that has ended its service refuses calls as before: its
  // clients repeat them at the owner.
  const bool drains =
      gate.closed() && (IsServedByAllNodes(method) || gate.CheckService().ok());
  return drains ? Refused::kDraining : Refused::kNot;
}

absl::Status Call::Refusal() const {
  switch (refused_) {
    case Refused::kGone:
      return PeerGuard::GoneError();
    case Refused::kNotOwner:
      return admission_;
    default:
      return OpenStreams::DrainingError();
  }
}

absl::Status Call::AuthorizeAnywhere() {
  checked_ = true;
  if (refused()) return Refusal();
  if (gate_.access() == nullptr) return absl::OkStatus();
  absl::Status status = admission_;
  if (status.ok() && !caller_->MayAnything()) {
    status = ErrorWithReason(absl::StatusCode::kPermissionDenied,
                             Reason::kAccessDenied,
                             absl::StrCat("no access rule lets principal \"",
                                          caller_->name(), "\" do anything"),
                             {{"principal", caller_->name()}});
  }
  return CountRefusal(std::move(status), Verbs(), "");
}

absl::Status Call::Identify() {
  checked_ = true;
  if (refused()) return Refusal();
  return CountRefusal(admission_, Verbs(), "");
}

absl::Status Call::BeginRequest(size_t bytes) {
  if (!refused()) {
    if (admission_.ok()) {
      // As the call began, its connection may not have been looked at: it may
      // have been open for long, and silent.
      if (gate_.guard() != nullptr && bytes > PeerGuard::kMaxFreeRequestBytes) {
        gate_.guard()->CountKnown(*context_, gate_.access() != nullptr);
      }
      return absl::OkStatus();
    }
    if (gate_.guard() != nullptr) {
      gate_.guard()->CountAnonymousBytes(*context_, bytes);
    }
    if (bytes <= PeerGuard::kMaxFreeRequestBytes) return absl::OkStatus();
  }
  return Identify();
}

bool Call::MaySee(absl::string_view name) const {
  if (gate_.access() == nullptr) return true;
  return caller_ != nullptr && !caller_->VerbsIn(name).empty();
}

absl::Status Call::Deny(Verbs verbs, absl::string_view name) {
  return CountRefusal(Denial(verbs, name), verbs, name);
}

absl::Status Call::Renew() {
  if (stale()) Authenticate();
  return CountRefusal(admission_, Verbs(), Namespace());
}

void Call::CountReceived() const {
  for (CallObserver* observer : gate_.observers()) {
    observer->OnReceived(method_);
  }
}

void Call::CountSent() const {
  for (CallObserver* observer : gate_.observers()) observer->OnSent(method_);
}

void Call::CountRefused(const absl::Status& status, uint64_t operations,
                        const CallDetails& batch) const {
  for (CallObserver* observer : gate_.observers()) {
    observer->OnRefused({method_, status, operations, batch});
  }
}

void Call::CountLost(absl::string_view name, uint64_t events) const {
  for (CallObserver* observer : gate_.observers()) {
    observer->OnLost({method_, Shown(name), events, *this});
  }
}

grpc::Status Call::End(const absl::Status& status, FieldPath field_path) {
  ended_ = true;
  if (IsRefusal(status)) CountRefused(status, 1);
  grpc::Status answer =
      status.ok() && !checked_
          ? ToGrpcStatus(absl::InternalError(absl::StrCat(
                "a bug: the handler did not check permissions for ",
                method_.name)))
          : ToGrpcStatus(status, field_path);
  if (!answer.ok()) {
    context_->AddTrailingMetadata(kRequestIdKey, RequestId());
  }
  if (!gate_.observers().empty()) {
    const CallRecord record = {method_, answer.error_code(), status.message(),
                               (NowNs() - start_ns_) / 1000, *this};
    for (CallObserver* observer : gate_.observers()) {
      observer->OnHandled(record);
    }
  }
  return answer;
}

std::string Call::RequestId() const {
  const absl::string_view given = Metadata(kRequestIdKey);
  if (IsRequestId(given)) return std::string(given);
  static const uint64_t process = absl::Uniform<uint64_t>(absl::BitGen());
  return absl::StrCat(absl::Hex(process, absl::kZeroPad16),
                      absl::Hex(number_, absl::kZeroPad16));
}

std::string Call::TraceParent() const {
  const absl::string_view given = Metadata(kTraceParentKey);
  return IsTraceParent(given) ? std::string(given) : std::string();
}

std::string Call::Peer() const { return context_->peer(); }

std::string Call::Principal() const {
  if (gate_.access() == nullptr) return kAnonymous;
  return caller_ == nullptr ? "" : caller_->name();
}

void Call::Note(absl::string_view name) {
  checked_ = true;
  name = Shown(name);
  name_size_ = static_cast<uint8_t>(name.size());
  if (name_size_ > 0) std::memcpy(name_.data(), name.data(), name_size_);
}

void Call::NoteCaller(ConnectionUse* use) const {
  use->Note(
      {Principal(),
       std::string(Metadata(kUserAgentKey).substr(0, kMaxUserAgentBytes))});
}

// Sets caller_ or admission_. A token decides even if there is a certificate: a
// proxy's certificate is the same for all its clients, while a token belongs to
// this call.
void Call::Authenticate() {
  // Before the rules are read: a change in between is checked once more.
  generation_ = gate_.access()->generation();
  Credentials credentials;
  const auto [begin, end] =
      context_->client_metadata().equal_range(kAuthorizationKey);
  for (auto it = begin; it != end; ++it) {
    credentials.authorizations.push_back(View(it->second));
  }
  std::shared_ptr<const grpc::AuthContext> peer;
  if (credentials.authorizations.empty()) {
    peer = context_->auth_context();
    if (peer != nullptr && peer->IsPeerAuthenticated()) {
      credentials.has_certificate = true;
      credentials.certificate_sans = CertificateNames(*peer);
    }
  }
  absl::StatusOr<std::shared_ptr<const Caller>> caller =
      gate_.access()->Authenticate(credentials);
  admission_ = caller.status();
  if (gate_.guard() != nullptr) {
    if (caller.ok()) {
      gate_.guard()->CountKnown(*context_, /*has_credentials=*/true);
    } else {
      gate_.guard()->CountAnonymous(*context_);
    }
  }
  caller_ = caller.ok() ? *std::move(caller) : nullptr;
}

absl::Status Call::Check(Verbs verbs, absl::string_view name) const {
  if (!admission_.ok()) return admission_;
  const Verbs has = caller_->VerbsIn(name);
  if (!has.empty() && has.Contains(verbs)) return absl::OkStatus();
  return Denial(verbs.empty() ? verbs : verbs.Without(has), name);
}

absl::Status Call::Denial(Verbs verbs, absl::string_view name) const {
  name = Shown(name);
  const std::string may = verbs.empty() ? "do anything" : verbs.ToString();
  const std::string where = name == kWholeServer
                                ? "on the whole server, in namespaces \"*\""
                                : absl::StrCat("in namespace \"", name, "\"");
  return ErrorWithReason(absl::StatusCode::kPermissionDenied,
                         Reason::kAccessDenied,
                         absl::StrCat("no access rule lets principal \"",
                                      caller_->name(), "\" ", may, " ", where),
                         {{"principal", caller_->name()},
                          {"namespace", std::string(name)},
                          {"verb", verbs.ToString()}});
}

// Returns `status`, and reports an error to the observers.
absl::Status Call::CountRefusal(absl::Status status, Verbs verbs,
                                absl::string_view name) {
  if (status.ok()) return status;
  if (!reports_denials_ && absl::IsPermissionDenied(status)) return status;
  for (CallObserver* observer : gate_.observers()) {
    observer->OnDenied({method_, status, Shown(name), verbs, *this});
  }
  return status;
}

// The value of the client's metadata, or nothing unless there is exactly one.
absl::string_view Call::Metadata(absl::string_view key) const {
  const auto& all = context_->client_metadata();
  const auto [begin, end] =
      all.equal_range(grpc::string_ref(key.data(), key.size()));
  if (begin == end || std::next(begin) != end) return {};
  return View(begin->second);
}

}  // namespace timecache::server
