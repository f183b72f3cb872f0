// A call of any method, whatever it is, as bytes.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <optional>
#include <string>

namespace timecache::test {

// Calls "/package.Service/Method" with one encoded request or with none, reads
// what it answers, and returns how it ended. `authorization` is that metadata,
// unless it is empty.
grpc::Status RawCall(const std::shared_ptr<grpc::Channel>& channel,
                     const std::string& path,
                     const std::optional<std::string>& request,
                     const std::string& authorization);

}  // namespace timecache::test
