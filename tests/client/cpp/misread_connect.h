// Makes gRPC take connects that are under way for failed ones.
#pragma once

namespace timecache {

// The next `count` sockets that are connecting get ENOENT into errno when they
// are added to an epoll set, although that succeeds: any successful call may
// leave it there. gRPC 1.51 adds a socket between connect() and its look at
// errno.
void MisreadConnects(int count);

}  // namespace timecache
