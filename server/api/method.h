// The methods that are served.

#ifndef TIMECACHED_SERVER_API_METHOD_H_
#define TIMECACHED_SERVER_API_METHOD_H_

#include <array>
#include <cstddef>

#include "absl/strings/string_view.h"

namespace timecache::server {

enum class MethodType { kUnary, kServerStream, kBidiStream };

// The label grpc_type of metrics: "unary", "server_stream", "bidi_stream".
constexpr absl::string_view MethodTypeName(MethodType type) {
  switch (type) {
    case MethodType::kUnary:
      return "unary";
    case MethodType::kServerStream:
      return "server_stream";
    case MethodType::kBidiStream:
      break;
  }
  return "bidi_stream";
}

// A method of a service. Those in kMethods are all that there are: `index`
// counts them, for tables by method.
struct Method {
  size_t index;
  // "timecache.v1.TimeCacheService", "Put"
  absl::string_view service;
  absl::string_view name;
  MethodType type;
};

namespace methods {

inline constexpr absl::string_view kData = "timecache.v1.TimeCacheService";
inline constexpr absl::string_view kNames = "timecache.v1.NamespaceService";
inline constexpr absl::string_view kGroups = "timecache.v1.GroupService";
inline constexpr absl::string_view kServer = "timecache.v1.ServerService";
inline constexpr absl::string_view kTime =
    "timecache.testing.v1.VirtualClockService";
inline constexpr absl::string_view kPeers = "timecache.peer.v1.PeerService";

using enum MethodType;

// The methods: identifier, service, name, type.
#define TIMECACHED_METHODS(METHOD)                                \
  METHOD(kPut, kData, "Put", kUnary)                              \
  METHOD(kGet, kData, "Get", kUnary)                              \
  METHOD(kRemove, kData, "Remove", kUnary)                        \
  METHOD(kContains, kData, "Contains", kUnary)                    \
  METHOD(kSize, kData, "Size", kUnary)                            \
  METHOD(kTouch, kData, "Touch", kUnary)                          \
  METHOD(kExecute, kData, "Execute", kUnary)                      \
  METHOD(kPipeline, kData, "Pipeline", kBidiStream)               \
  METHOD(kScan, kData, "Scan", kServerStream)                     \
  METHOD(kWatchExpired, kData, "WatchExpired", kServerStream)     \
  METHOD(kConsumeExpired, kData, "ConsumeExpired", kServerStream) \
  METHOD(kWatchExpiring, kData, "WatchExpiring", kServerStream)   \
  METHOD(kSettleExpired, kData, "SettleExpired", kUnary)          \
  METHOD(kCreateNamespace, kNames, "CreateNamespace", kUnary)     \
  METHOD(kGetNamespace, kNames, "GetNamespace", kUnary)           \
  METHOD(kListNamespaces, kNames, "ListNamespaces", kUnary)       \
  METHOD(kUpdateNamespace, kNames, "UpdateNamespace", kUnary)     \
  METHOD(kDeleteNamespace, kNames, "DeleteNamespace", kUnary)     \
  METHOD(kRotateNamespace, kNames, "RotateNamespace", kUnary)     \
  METHOD(kCreateGroup, kGroups, "CreateGroup", kUnary)            \
  METHOD(kGetGroup, kGroups, "GetGroup", kUnary)                  \
  METHOD(kListGroups, kGroups, "ListGroups", kUnary)              \
  METHOD(kUpdateGroup, kGroups, "UpdateGroup", kUnary)            \
  METHOD(kDeleteGroup, kGroups, "DeleteGroup", kUnary)            \
  METHOD(kGetServer, kServer, "GetServer", kUnary)                \
  METHOD(kBackupJournal, kServer, "BackupJournal", kServerStream) \
  METHOD(kGetCluster, kServer, "GetCluster", kUnary)              \
  METHOD(kHandOver, kServer, "HandOver", kUnary)                  \
  METHOD(kAdvance, kTime, "Advance", kUnary)                      \
  METHOD(kNow, kTime, "Now", kUnary)                              \
  METHOD(kAppend, kData, "Append", kUnary)                        \
  METHOD(kCombine, kData, "Combine", kUnary)                      \
  METHOD(kGather, kData, "Gather", kUnary)                        \
  METHOD(kGetDeaths, kNames, "GetDeaths", kUnary)                 \
  METHOD(kWatchChanges, kData, "WatchChanges", kServerStream)     \
  METHOD(kFetchExpired, kData, "FetchExpired", kUnary)            \
  METHOD(kListMembers, kGroups, "ListMembers", kUnary)            \
  METHOD(kSeekGroup, kGroups, "SeekGroup", kUnary)                \
  METHOD(kListUnsettled, kGroups, "ListUnsettled", kUnary)        \
  METHOD(kGetHotKeys, kNames, "GetHotKeys", kUnary)               \
  METHOD(kGetOwners, kNames, "GetOwners", kUnary)                 \
  METHOD(kWhoAmI, kServer, "WhoAmI", kUnary)                      \
  METHOD(kListConnections, kServer, "ListConnections", kUnary)    \
  METHOD(kCloseConnection, kServer, "CloseConnection", kUnary)    \
  METHOD(kListSlowCalls, kServer, "ListSlowCalls", kUnary)        \
  METHOD(kTailCalls, kServer, "TailCalls", kServerStream)         \
  METHOD(kExchange, kPeers, "Exchange", kBidiStream)

enum class Index : size_t {
#define TIMECACHED_INDEX(id, service, name, type) id,
  TIMECACHED_METHODS(TIMECACHED_INDEX)
#undef TIMECACHED_INDEX
};

#define TIMECACHED_METHOD(id, service, name, type)                          \
  inline constexpr Method id{static_cast<size_t>(Index::id), service, name, \
                             type};
TIMECACHED_METHODS(TIMECACHED_METHOD)
#undef TIMECACHED_METHOD

}  // namespace methods

// In the order of their index.
inline constexpr std::array kMethods = {
#define TIMECACHED_METHOD(id, service, name, type) methods::id,
    TIMECACHED_METHODS(TIMECACHED_METHOD)
#undef TIMECACHED_METHOD
};
#undef TIMECACHED_METHODS

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_API_METHOD_H_
