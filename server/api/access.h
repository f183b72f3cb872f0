// Callers and their permissions: the service's view of access rules, which
// server/security reads from a file.

#ifndef TIMECACHED_SERVER_API_ACCESS_H_
#define TIMECACHED_SERVER_API_ACCESS_H_

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/engine/store/operation.h"
#include "timecache/config/v1/config.pb.h"

namespace timecache::server {

// A set of verbs. A value; costs nothing.
class Verbs {
 public:
  constexpr Verbs() = default;
  constexpr Verbs(config::v1::Verb verb) : bits_(Bit(verb)) {}  // NOLINT
  constexpr Verbs(std::initializer_list<config::v1::Verb> verbs) {
    for (const config::v1::Verb verb : verbs) bits_ |= Bit(verb);
  }
  static constexpr Verbs All() {
    return {config::v1::VERB_READ, config::v1::VERB_WRITE,
            config::v1::VERB_WATCH, config::v1::VERB_SETTLE,
            config::v1::VERB_ADMIN};
  }

  constexpr bool empty() const { return bits_ == 0; }
  constexpr bool Contains(Verbs other) const {
    return (other.bits_ & ~bits_) == 0;
  }
  // The verbs of this that are not in `other`.
  constexpr Verbs Without(Verbs other) const {
    return FromBits(bits_ & static_cast<uint8_t>(~other.bits_));
  }
  constexpr Verbs operator|(Verbs other) const {
    return FromBits(bits_ | other.bits_);
  }
  constexpr bool operator==(const Verbs&) const = default;

  // "read, write", as in an access file.
  std::string ToString() const;

 private:
  static constexpr uint8_t Bit(config::v1::Verb verb) {
    return static_cast<uint8_t>(1u << verb);
  }
  static constexpr Verbs FromBits(unsigned bits) {
    Verbs verbs;
    verbs.bits_ = static_cast<uint8_t>(bits);
    return verbs;
  }

  uint8_t bits_ = 0;
};

// The verbs that an operation needs: WRITE for writes, and for a Get that
// touches; READ for operations that return an entry or whether there is one.
Verbs VerbsOf(const Operation& operation);

// Stands for the whole server in place of a namespace: no namespace has this
// name, and of all patterns only "*" matches it.
inline constexpr absl::string_view kWholeServer = "*";

// What a caller may do in the namespaces that a pattern of the rules matches.
struct PatternVerbs {
  std::string pattern;
  Verbs verbs;
};

// A caller, by the rules of one moment. Immutable, so thread-safe.
class Caller {
 public:
  virtual ~Caller() = default;
  // The principal's name.
  virtual const std::string& name() const = 0;
  // Its permissions in the namespace. Costs tens of nanoseconds for each rule
  // that names the principal.
  virtual Verbs VerbsIn(absl::string_view name) const = 0;
  // Whether it has any permission, in any namespace.
  virtual bool MayAnything() const = 0;
  // All of its permissions, by pattern, each pattern once.
  virtual std::vector<PatternVerbs> Permissions() const = 0;
};

// The credentials of a call. Views of the call's data.
struct Credentials {
  // Whether the peer has a certificate that the listener's roots signed.
  bool has_certificate = false;
  // Those of certificate_names.h.
  std::vector<absl::string_view> certificate_sans;
  // The value of each "authorization" in the call's metadata.
  std::vector<absl::string_view> authorizations;
};

// The rules in force. Thread-safe.
class Access {
 public:
  virtual ~Access() = default;

  // UNAUTHENTICATED, with one of the reasons NO_CREDENTIALS,
  // UNKNOWN_CERTIFICATE, UNKNOWN_TOKEN and MALFORMED_CREDENTIALS.
  virtual absl::StatusOr<std::shared_ptr<const Caller>> Authenticate(
      const Credentials& credentials) const = 0;

  // The principal of this name, by the current rules; null if there is none.
  // For work in its name outside of its calls.
  virtual std::shared_ptr<const Caller> FindPrincipal(
      absl::string_view name) const = 0;

  // Changes whenever the rules do. One atomic read.
  virtual uint64_t generation() const = 0;

  // Calls this after every change, on the thread that sees it; null ends that,
  // and waits for one that runs. It must not call SetListener.
  virtual void SetListener(std::function<void()> on_change) = 0;
};

// PERMISSION_DENIED (ACCESS_DENIED) unless the principal of this name may do
// all of `verbs` in the namespace now.
absl::Status CheckPrincipal(const Access& access, absl::string_view principal,
                            Verbs verbs, absl::string_view name);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_API_ACCESS_H_
