// The methods that are served.

#ifndef TIMECACHED_SERVER_SERVICE_CALL_METHOD_H_
#define TIMECACHED_SERVER_SERVICE_CALL_METHOD_H_

#include <array>
#include <cstddef>

#include "absl/strings/string_view.h"

namespace timecache {

enum class MethodType { kUnary, kServerStream, kBidiStream };

// As the label grpc_type of metrics has it: "unary", "server_stream",
// "bidi_stream".
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
inline constexpr absl::string_view kAdmin = "timecache.v1.NamespaceService";
inline constexpr absl::string_view kTime = "timecache.testing.v1.VirtualClock";
inline constexpr absl::string_view kLook =
    "grpc.reflection.v1.ServerReflection";
// The same by its older name.
inline constexpr absl::string_view kLookAlpha =
    "grpc.reflection.v1alpha.ServerReflection";

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
inline constexpr Method kSettleExpired{10, kData, "SettleExpired", kUnary};
inline constexpr Method kCreateNamespace{11, kAdmin, "CreateNamespace", kUnary};
inline constexpr Method kGetNamespace{12, kAdmin, "GetNamespace", kUnary};
inline constexpr Method kListNamespaces{13, kAdmin, "ListNamespaces", kUnary};
inline constexpr Method kUpdateNamespace{14, kAdmin, "UpdateNamespace", kUnary};
inline constexpr Method kDeleteNamespace{15, kAdmin, "DeleteNamespace", kUnary};
inline constexpr Method kRotateNamespace{16, kAdmin, "RotateNamespace", kUnary};
inline constexpr Method kCreateGroup{17, kAdmin, "CreateGroup", kUnary};
inline constexpr Method kListGroups{18, kAdmin, "ListGroups", kUnary};
inline constexpr Method kUpdateGroup{19, kAdmin, "UpdateGroup", kUnary};
inline constexpr Method kDeleteGroup{20, kAdmin, "DeleteGroup", kUnary};
inline constexpr Method kGetServer{21, kAdmin, "GetServer", kUnary};
inline constexpr Method kAdvance{22, kTime, "Advance", kUnary};
inline constexpr Method kNow{23, kTime, "Now", kUnary};
inline constexpr Method kReflection{24, kLook, "ServerReflectionInfo",
                                    kBidiStream};
inline constexpr Method kReflectionAlpha{25, kLookAlpha, "ServerReflectionInfo",
                                         kBidiStream};

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
    methods::kSettleExpired,
    methods::kCreateNamespace,
    methods::kGetNamespace,
    methods::kListNamespaces,
    methods::kUpdateNamespace,
    methods::kDeleteNamespace,
    methods::kRotateNamespace,
    methods::kCreateGroup,
    methods::kListGroups,
    methods::kUpdateGroup,
    methods::kDeleteGroup,
    methods::kGetServer,
    methods::kAdvance,
    methods::kNow,
    methods::kReflection,
    methods::kReflectionAlpha,
};

}  // namespace timecache

#endif  // TIMECACHED_SERVER_SERVICE_CALL_METHOD_H_
