// The methods that a console with --read-only calls.

#ifndef TIMECACHED_CLIENT_CLI_CONSOLE_READ_ONLY_H_
#define TIMECACHED_CLIENT_CLI_CONSOLE_READ_ONLY_H_

#include <string>

#include "google/protobuf/descriptor.h"

namespace timecache::cli {

// Whether a call changes nothing on the server. A Get does not if its request,
// in the binary form, says that it renews nothing.
bool ChangesNothing(const google::protobuf::MethodDescriptor& method,
                    const std::string& request);

}  // namespace timecache::cli

#endif  // TIMECACHED_CLIENT_CLI_CONSOLE_READ_ONLY_H_
