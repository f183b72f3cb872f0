// A client of a timecached server.
//
//   timecache::Client client("127.0.0.1:7171");
//   client.Put("session:7", "basket=3", {.ttl = absl::Minutes(30)});
//   absl::StatusOr<std::optional<timecache::Entry>> entry =
//       client.Get("session:7");
//
// See also watcher.h and group_worker.h for expired entries, and batch.h and
// pipeline.h for many operations at once.

#ifndef TIMECACHE_CLIENT_H_
#define TIMECACHE_CLIENT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "timecache/call_options.h"
#include "timecache/channel.h"
#include "timecache/cluster_types.h"
#include "timecache/export.h"
#include "timecache/group_position.h"
#include "timecache/group_types.h"
#include "timecache/namespace_types.h"
#include "timecache/operator_types.h"
#include "timecache/server_types.h"
#include "timecache/settle.h"
#include "timecache/types.h"
#include "timecache/watch_types.h"

namespace timecache {

class Batch;             // timecache/batch.h
struct OperationResult;  // timecache/operation.h

// A client of one server, or of the nodes of one cluster, and of one of its
// namespaces at a time.
//
// With several addresses calls go to one of them, the first at the beginning.
// Where that node is not the owner they go on to the owner, which it names,
// whatever they do, as nothing was applied; where it cannot be reached, or its
// connection breaks, to the next address. Streams that resume do the same. A
// call that meets no owner waits for one within its timeout.
//
// Thread-safe. Cheap to copy: copies share one connection. Every call is one
// round trip and blocks until its response arrives; timecache/async_client.h
// has calls that do not block. Calls on keys that several threads make at the
// same time go together (ClientOptions::batching): of 16 threads each takes a
// fifth of the client's CPU that an RPC of its own does.
//
// CallOptions set a call's own timeout, cancel it, or send metadata with it;
// ClientOptions::retry controls the retries of calls that are safe to repeat.
// Without a connection a call waits for one for up to 250 ms; while the server
// is unreachable, one call a second does so and the others fail at once.
//
// Errors: UNAVAILABLE (the server is unreachable or draining: retry), NOT_FOUND
// with reason NAMESPACE_NOT_FOUND, INVALID_ARGUMENT (see FieldViolations), and
// the errors that the calls below name. HasReason in timecache/status.h
// distinguishes them.
class TIMECACHED_EXPORT Client final {
 public:
  // For the server at `address`: "host:port" or "unix:/path", plain text; for a
  // cluster the addresses of its nodes, "a:7171,b:7171", at most kMaxAddresses.
  // Does not connect yet: the first call fails if the server is unreachable,
  // each with INVALID_ARGUMENT if one of several addresses is none.
  explicit Client(const std::string& address, ClientOptions options = {});
  // The same, with each address by itself.
  explicit Client(const std::vector<std::string>& addresses,
                  ClientOptions options = {});
  // The same, secured: each node in the same way. Errors: those of MakeChannel,
  // and addresses that are none.
  static absl::StatusOr<Client> Make(const std::string& address,
                                     const ChannelOptions& channel,
                                     ClientOptions options = {});
  static absl::StatusOr<Client> Make(const std::vector<std::string>& addresses,
                                     const ChannelOptions& channel,
                                     ClientOptions options = {});
  // Over a channel that the caller created, with its credentials and settings.
  // Its receive limit must be large enough for the namespaces' values:
  // otherwise calls end with RESOURCE_EXHAUSTED (IsMessageTooLarge), and
  // watches and scans that know the limit leave larger values out.
  explicit Client(std::shared_ptr<grpc::Channel> channel,
                  ClientOptions options = {});

  // The same client for another namespace.
  Client In(std::string_view ns) const;

  // The server to which calls go now; of several, another may be next. The
  // address is empty over a channel that the caller created.
  const std::shared_ptr<grpc::Channel>& channel() const;
  const std::string& address() const;
  const ClientOptions& options() const { return options_; }

  // Stores a value under a key, with a fresh time to live. A condition that
  // does not hold is FAILED_PRECONDITION; a limit that would be exceeded is
  // RESOURCE_EXHAUSTED.
  absl::StatusOr<PutResult> Put(std::string_view key, std::string_view value,
                                const PutOptions& options = {},
                                const CallOptions& call = {}) const;

  // Reads an entry. A miss is OK with nullopt.
  absl::StatusOr<std::optional<Entry>> Get(std::string_view key,
                                           const GetOptions& options = {},
                                           const CallOptions& call = {}) const;

  // Removes an entry, without an expiry event. A miss is OK with removed =
  // false, but FAILED_PRECONDITION with if_version.
  absl::StatusOr<RemoveResult> Remove(std::string_view key,
                                      const RemoveOptions& options = {},
                                      const CallOptions& call = {}) const;

  // Whether an entry exists. Never renews its time to live. A condition that
  // does not hold is FAILED_PRECONDITION.
  absl::StatusOr<bool> Contains(std::string_view key,
                                const ContainsOptions& options = {},
                                const CallOptions& call = {}) const;

  // The exact number of live entries and bytes of the namespace.
  absl::StatusOr<SizeResult> Size(const CallOptions& call = {}) const;

  // Gives an entry a fresh time to live. Returns its version, which does not
  // change. A miss is OK with nullopt, but FAILED_PRECONDITION with if_version.
  absl::StatusOr<std::optional<uint64_t>> Touch(
      std::string_view key, const TouchOptions& options = {},
      const CallOptions& call = {}) const;

  // Appends to a value, or creates an entry with these bytes. An existing entry
  // keeps its deadline. FAILED_PRECONDITION: a condition that does not hold, a
  // value that would be too large (reason VALUE_TOO_LARGE), a key that collects
  // parts (VALUE_KIND_MISMATCH). This call and the next two are retried only on
  // request, because they might be applied twice.
  absl::StatusOr<AppendResult> Append(std::string_view key,
                                      std::string_view value,
                                      const AppendOptions& options = {},
                                      const CallOptions& call = {}) const;

  // Adds a number to a value, or xors it with one. The value is a decimal
  // number of 64 bits, as Put("key", "10") stores it. An existing entry keeps
  // its deadline. FAILED_PRECONDITION: a value that is not a number (reason
  // NOT_A_NUMBER), a sum beyond 64 bits (NUMBER_OVERFLOW), an if_version that
  // does not match, a key that collects parts.
  absl::StatusOr<CombineResult> Combine(std::string_view key,
                                        Combination combination,
                                        int64_t operand,
                                        const CombineOptions& options = {},
                                        const CallOptions& call = {}) const;

  // Adds one of the parts that are collected under a key. The call that adds
  // the last part gets all parts and removes the key: exactly one call does. A
  // key that is not complete in time expires with the parts collected so far
  // (ExpiredEvent::parts). An existing entry keeps its deadline. The same part
  // again is OK; ALREADY_EXISTS (reason PART_EXISTS): with another value;
  // (GATHER_COMPLETE): the key is remembered as complete.
  // FAILED_PRECONDITION: other parts are expected under this key
  // (GATHER_MISMATCH), it has a value, or the parts would be too large.
  absl::StatusOr<GatherResult> Gather(std::string_view key,
                                      std::string_view part,
                                      std::string_view value,
                                      const GatherOptions& options,
                                      const CallOptions& call = {}) const;

  // Applies many operations in one round trip: a result for each, in their
  // order, and none for an empty batch. On an error no operation was applied,
  // or, as with any call, the effect is unknown (UNAVAILABLE,
  // DEADLINE_EXCEEDED). A batch above its limits is INVALID_ARGUMENT.
  absl::StatusOr<std::vector<OperationResult>> Execute(
      const Batch& batch, const CallOptions& call = {}) const;

  // Calls `visit` for each live entry, in no particular order, on this thread.
  // An entry that is live during the whole scan is visited exactly once, any
  // other at most once. `visit` returns false to end the scan, which then
  // returns OK. Holds one page (1,000 entries, about 1 MiB) at a time. After a
  // broken connection it goes on behind the last page, on another one; only a
  // restart of the server ends it (INVALID_ARGUMENT, field position).
  absl::Status Scan(const ScanOptions& options,
                    absl::FunctionRef<bool(Entry entry)> visit,
                    const CallOptions& call = {}) const;

  // At most `entries_max` entries of such a scan, and whether there were more.
  absl::StatusOr<ScanResult> ScanUpTo(size_t entries_max,
                                      const ScanOptions& options = {},
                                      const CallOptions& call = {}) const;

  // Settles events of a consumer group of the namespace: a result for each, in
  // their order. On an error no event was settled (NOT_FOUND, reason
  // GROUP_NOT_FOUND; INVALID_ARGUMENT above kMaxSettlements), or the effect is
  // unknown: then settle again. With batching (CallOptions), calls for one group
  // that come while a request of it is under way go together with the next.
  absl::StatusOr<std::vector<SettleResult>> Settle(
      std::string_view group, const std::vector<Settlement>& settlements,
      const CallOptions& call = {}) const;

  // Events of a consumer group, for a caller that does not stay: those that are
  // ready, or the first that come within the wait, or none. Settle each within
  // the group's ack_timeout; else it is delivered again. Creates the group if there
  // is none. Never retried: another call gets other events.
  // FAILED_PRECONDITION (SINGLE_ACTIVE); RESOURCE_EXHAUSTED (MAX_WATCHERS): too
  // many calls wait.
  absl::StatusOr<FetchedEvents> FetchExpired(
      std::string_view group, const FetchOptions& options = {},
      const CallOptions& call = {}) const;

  // Creates a consumer group of the namespace, which starts at a position of its
  // log; the first member of a group creates it, too. ALREADY_EXISTS (reason
  // GROUP_EXISTS).
  absl::StatusOr<Group> CreateGroup(std::string_view name,
                                    const GroupOptions& options = {},
                                    const GroupPosition& start = {},
                                    const CallOptions& call = {}) const;
  // Moves a group to a position: it delivers the retained events from there on,
  // as first attempts, also those that it has settled. Members keep their
  // streams; what they hold comes back. FAILED_PRECONDITION (LOG_CHANGED),
  // OUT_OF_RANGE (RESUME_POINT_AHEAD): a token of another log, or of one that
  // went on differently.
  absl::StatusOr<SeekResult> SeekGroup(std::string_view name,
                                       const GroupPosition& position,
                                       const SeekOptions& options = {},
                                       const CallOptions& call = {}) const;
  // Calls `visit` for each event that the group has not settled, the oldest
  // first, on this thread, until it returns false. What is settled meanwhile may
  // be left out.
  absl::Status ListUnsettled(
      std::string_view name, const ListUnsettledOptions& options,
      absl::FunctionRef<bool(UnsettledEvent event)> visit,
      const CallOptions& call = {}) const;
  // NOT_FOUND (reason GROUP_NOT_FOUND) if there is none of that name.
  absl::StatusOr<Group> GetGroup(std::string_view name,
                                 const DescribeOptions& describe = {},
                                 const CallOptions& call = {}) const;
  // All, ordered by name.
  absl::StatusOr<std::vector<Group>> ListGroups(
      const DescribeOptions& describe = {}, const CallOptions& call = {}) const;
  // Changes the options that are set, and sets those that `to_default` names
  // ("max_attempts") to their defaults; the others stay.
  absl::StatusOr<Group> UpdateGroup(
      std::string_view name, const GroupOptions& options,
      const std::vector<std::string>& to_default = {},
      const CallOptions& call = {}) const;
  // The streams that are its members, the oldest first.
  absl::StatusOr<std::vector<GroupMember>> ListMembers(
      std::string_view name, const CallOptions& call = {}) const;
  // Deletes it with its unsettled events.
  absl::Status DeleteGroup(std::string_view name,
                           const CallOptions& call = {}) const;

  // Administration of namespaces. See proto/timecache/v1/namespaces.proto for
  // every option: its range, its default, and what unset means.

  // ALREADY_EXISTS (reason NAMESPACE_EXISTS) if there is one of that name.
  absl::StatusOr<Namespace> CreateNamespace(
      std::string_view name, const NamespaceOptions& options = {},
      const CallOptions& call = {}) const;
  absl::StatusOr<Namespace> GetNamespace(std::string_view name,
                                         const DescribeOptions& describe = {},
                                         const CallOptions& call = {}) const;
  // All, ordered by name: a round trip for each thousand.
  absl::StatusOr<std::vector<Namespace>> ListNamespaces(
      const DescribeOptions& describe = {}, const CallOptions& call = {}) const;
  // Changes the options that are set, and sets those that `to_default` names
  // ("max_entries") to their defaults; the others stay.
  absl::StatusOr<Namespace> UpdateNamespace(
      std::string_view name, const NamespaceOptions& options,
      const std::vector<std::string>& to_default = {},
      const CallOptions& call = {}) const;
  // Deletes it with everything in it; its entries have no expiry events.
  absl::Status DeleteNamespace(std::string_view name,
                               const CallOptions& call = {}) const;
  // Kills the oldest bucket now, and returns how many entries died with it.
  absl::StatusOr<uint64_t> RotateNamespace(std::string_view name,
                                           const CallOptions& call = {}) const;
  // Counts the live entries by the time of their death. Costs the server
  // O(live buckets) in each shard, whatever the number of entries.
  absl::StatusOr<DeathsAhead> GetDeaths(std::string_view name,
                                        const DeathsOptions& options = {},
                                        const CallOptions& call = {}) const;
  // The keys that are used most, by a sample of the operations of about the last
  // minute; 1 to 64 of them, 0: 10.
  absl::StatusOr<HotKeys> GetHotKeys(std::string_view name,
                                     uint32_t max_keys = 0,
                                     const CallOptions& call = {}) const;

  // The server itself: version, start time, limits and their use. For callers
  // that may not read all namespaces, limits are unset.
  absl::StatusOr<ServerInfo> GetServer(const CallOptions& call = {}) const;
  // Reads a backup of the server's journal, a tar archive, and calls `visit`
  // for each piece of it, in order, on this thread; the server waits for a slow
  // reader, and ends the call if the client reads nothing for 30 s (the
  // server's limits.response_timeout). `visit` returns false to end it:
  // CANCELLED. The backup is complete only if the call returns OK.
  // FAILED_PRECONDITION (reason NO_JOURNAL); RESOURCE_EXHAUSTED (MAX_BACKUPS).
  // Has no time-out except that of `call`; is never retried.
  absl::Status BackupJournal(absl::FunctionRef<bool(BackupPiece piece)> visit,
                             const CallOptions& call = {}) const;
  // The cluster as this node sees it; any node answers. FAILED_PRECONDITION
  // (reason NO_CLUSTER) from a server that is in none.
  absl::StatusOr<ClusterInfo> GetCluster(const CallOptions& call = {}) const;
  // Makes the owner release its ownership to the node of this name, or, empty,
  // to the standby that has replayed most; returns the node's name once it has,
  // a moment before that node serves. FAILED_PRECONDITION (NO_SUCCESSOR): none
  // can take over, and nothing has changed; UNAVAILABLE (NOT_OWNER): this node
  // is not the owner. Never retried.
  absl::StatusOr<std::string> HandOver(const std::string& to = "",
                                       const CallOptions& call = {}) const;
  // Who the caller is to the server, and what it may do.
  absl::StatusOr<CallerInfo> WhoAmI(const CallOptions& call = {}) const;
  // The connections of all clients, the oldest first. This and the next two
  // need ADMIN on all namespaces.
  absl::StatusOr<std::vector<ClientConnection>> ListConnections(
      const CallOptions& call = {}) const;
  // Ends one of them; its client may connect again. Of the caller's own the
  // answer may be lost: UNAVAILABLE. NOT_FOUND (reason CONNECTION_NOT_FOUND).
  // Retried only on request.
  absl::Status CloseConnection(uint64_t id, const CallOptions& call = {}) const;
  // The last calls that took longer than the server's log.slow_call.
  absl::StatusOr<SlowCallList> ListSlowCalls(
      const CallOptions& call = {}) const;
  // Calls `visit`, on this thread, for each message of a sample of the
  // operations on the namespace; the first one comes at once, without any. Needs
  // ADMIN on it. `visit` returns false to end it, with OK; OK also when the
  // server stops. RESOURCE_EXHAUSTED (MAX_TAILS). Has no time-out except that of
  // `call`; is never retried.
  absl::Status TailCalls(const TailOptions& options,
                         absl::FunctionRef<bool(TailedCalls sample)> visit,
                         const CallOptions& call = {}) const;
  // Whether the server is serving; needs no permission.
  absl::StatusOr<ServingStatus> CheckHealth(const CallOptions& call = {}) const;

  // Internal to the library: the state that calls share.
  struct Core;

 private:
  Client(std::shared_ptr<Core> core, ClientOptions options);

  ClientOptions options_;
  // Never null. Thread-safe.
  std::shared_ptr<Core> core_;
};

}  // namespace timecache

#endif  // TIMECACHE_CLIENT_H_
