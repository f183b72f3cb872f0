// Marks the symbols that the shared library exports; all others are hidden.

#ifndef TIMECACHE_EXPORT_H_
#define TIMECACHE_EXPORT_H_

#define TIMECACHED_EXPORT __attribute__((visibility("default")))

#endif  // TIMECACHE_EXPORT_H_
