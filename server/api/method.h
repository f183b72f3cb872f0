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

using enum MethodType;

inline constexpr Method kPut{0, kData, "Put", kUnary};
inline constexpr Method kGet{1, kData, "Get", kUnary};
inline constexpr Method kRemove{2, kData, "Remove", kUnary};
inline constexpr Method kContains{3, kData, "Contains", kUnary};
inline constexpr Method kSize{4, kData, "Size", kUnary};
inline constexpr Method kTouch{5, kData, "Touch", kUnary};
inline constexpr Method kExecute{6, kData, "Execute", kUnary};
inline constexpr Method kPipeline{7, kData, "Pipeline", kBidiStream};
inline constexpr Method kScan{8, kData, "Scan", kServerStream};
inline constexpr Method kWatchExpired{9, kData, "WatchExpired", kServerStream};
inline constexpr Method kConsumeExpired{10, kData, "ConsumeExpired",
                                        kServerStream};
inline constexpr Method kWatchExpiring{11, kData, "WatchExpiring",
                                       kServerStream};
inline constexpr Method kSettleExpired{12, kData, "SettleExpired", kUnary};
inline constexpr Method kCreateNamespace{13, kNames, "CreateNamespace", kUnary};
inline constexpr Method kGetNamespace{14, kNames, "GetNamespace", kUnary};
inline constexpr Method kListNamespaces{15, kNames, "ListNamespaces", kUnary};
inline constexpr Method kUpdateNamespace{16, kNames, "UpdateNamespace", kUnary};
inline constexpr Method kDeleteNamespace{17, kNames, "DeleteNamespace", kUnary};
inline constexpr Method kRotateNamespace{18, kNames, "RotateNamespace", kUnary};
inline constexpr Method kCreateGroup{19, kGroups, "CreateGroup", kUnary};
inline constexpr Method kGetGroup{20, kGroups, "GetGroup", kUnary};
inline constexpr Method kListGroups{21, kGroups, "ListGroups", kUnary};
inline constexpr Method kUpdateGroup{22, kGroups, "UpdateGroup", kUnary};
inline constexpr Method kDeleteGroup{23, kGroups, "DeleteGroup", kUnary};
inline constexpr Method kGetServer{24, kServer, "GetServer", kUnary};
inline constexpr Method kBackupJournal{25, kServer, "BackupJournal",
                                       kServerStream};
inline constexpr Method kAdvance{26, kTime, "Advance", kUnary};
inline constexpr Method kNow{27, kTime, "Now", kUnary};
inline constexpr Method kAppend{28, kData, "Append", kUnary};
inline constexpr Method kCombine{29, kData, "Combine", kUnary};
inline constexpr Method kGather{30, kData, "Gather", kUnary};

}  // namespace methods

// In the order of their index.
inline constexpr std::array kMethods = {
    methods::kPut,
    methods::kGet,
    methods::kRemove,
    methods::kContains,
    methods::kSize,
    methods::kTouch,
    methods::kExecute,
    methods::kPipeline,
    methods::kScan,
    methods::kWatchExpired,
    methods::kConsumeExpired,
    methods::kWatchExpiring,
    methods::kSettleExpired,
    methods::kCreateNamespace,
    methods::kGetNamespace,
    methods::kListNamespaces,
    methods::kUpdateNamespace,
    methods::kDeleteNamespace,
    methods::kRotateNamespace,
    methods::kCreateGroup,
    methods::kGetGroup,
    methods::kListGroups,
    methods::kUpdateGroup,
    methods::kDeleteGroup,
    methods::kGetServer,
    methods::kBackupJournal,
    methods::kAdvance,
    methods::kNow,
    methods::kAppend,
    methods::kCombine,
    methods::kGather,
};
static_assert([] {
  for (size_t i = 0; i < kMethods.size(); ++i) {
    if (kMethods[i].index != i) return false;
  }
  return true;
}());

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_API_METHOD_H_
