// Makes gRPC take connects that are under way for failed ones.

#ifndef TIMECACHED_TESTS_CLIENT_CPP_MISREAD_CONNECT_H_
#define TIMECACHED_TESTS_CLIENT_CPP_MISREAD_CONNECT_H_

namespace timecache {

// The next `count` sockets that are connecting get ENOENT into errno when they
// are added to an epoll set, although that succeeds: any successful call may
// leave it there. gRPC 1.51 adds a socket between connect() and its look at
// errno.
void MisreadConnects(int count);

}  // namespace timecache

#endif  // TIMECACHED_TESTS_CLIENT_CPP_MISREAD_CONNECT_H_
