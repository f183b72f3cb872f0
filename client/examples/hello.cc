// Puts an entry, reads it, and waits until it has expired.
//
//   hello [ADDRESS]      # 127.0.0.1:7171
#include <iostream>
#include <optional>

#include "timecache/client.h"
#include "timecache/watcher.h"

int main(int argc, char** argv) {
  const timecache::Client client(argc > 1 ? argv[1] : "127.0.0.1:7171");

  // A watch stands once its first batch is in: it misses nothing after that.
  timecache::Watcher watcher(client);
  absl::StatusOr<timecache::WatchBatch> batch = watcher.Next();
  if (!batch.ok()) {
    std::cerr << "hello: " << batch.status() << "\n";
    return 1;
  }

  const auto put =
      client.Put("hello", "world", {.ttl = absl::Milliseconds(200)});
  const auto entry = client.Get("hello");
  if (!put.ok() || !entry.ok()) {
    std::cerr << "hello: " << put.status() << ", " << entry.status() << "\n";
    return 1;
  }
  std::cout << "got " << (*entry ? (*entry)->value : "nothing") << "\n";

  while ((batch = watcher.Next(absl::Seconds(30))).ok()) {
    for (const timecache::ExpiredEvent& event : batch->events) {
      if (event.version != put->version) continue;
      std::cout << event.key << " expired, its value was " << event.value
                << "\n";
      return 0;
    }
  }
  std::cerr << "hello: " << batch.status() << "\n";
  return 1;
}
