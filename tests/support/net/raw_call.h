// A call of any method, whatever it is, as bytes.

#ifndef TIMECACHED_TESTS_SUPPORT_NET_RAW_CALL_H_
#define TIMECACHED_TESTS_SUPPORT_NET_RAW_CALL_H_

#include <memory>
#include <optional>
#include <string>

#include "grpcpp/grpcpp.h"

namespace timecache::test {

// Calls "/package.Service/Method" with one encoded request or with none, reads
// what it answers, and returns how it ended. `authorization` is that metadata,
// unless it is empty.
grpc::Status RawCall(const std::shared_ptr<grpc::Channel>& channel,
                     const std::string& path,
                     const std::optional<std::string>& request,
                     const std::string& authorization);

}  // namespace timecache::test

#endif  // TIMECACHED_TESTS_SUPPORT_NET_RAW_CALL_H_
