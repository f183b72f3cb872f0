// Measures the C++ client beside hiredis, for bench/clients/run.py, which says
// what the rows are.
//
//   client_bench ADDRESS REDIS_PORT SECONDS
#include <hiredis/hiredis.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "timecache/batch.h"
#include "timecache/client.h"
#include "timecache/pipeline.h"

namespace timecache {
namespace {

constexpr size_t kKeys = 100'000;
constexpr size_t kDepth = 100;
constexpr absl::Duration kTtl = absl::Minutes(10);
constexpr char kTtlSeconds[] = "600";

std::string KeyOf(size_t i) { return absl::StrFormat("key-%012d", i % kKeys); }
const std::string& Value() {
  static const std::string value(64, 'v');
  return value;
}

// One thread's calls: so many operations from the key of this number on. False
// if one has failed.
using DoCalls = std::function<bool(size_t i)>;
using MakeCalls = std::function<DoCalls()>;

Operation MakeOperation(bool is_put, size_t i) {
  return is_put ? Operation::Put(KeyOf(i), Value(), {.ttl = kTtl})
                : Operation::Get(KeyOf(i));
}

MakeCalls Plain(const Client& client, bool is_put) {
  return [&client, is_put]() -> DoCalls {
    if (is_put) {
      return [&client](size_t i) {
        return client.Put(KeyOf(i), Value(), {.ttl = kTtl}).ok();
      };
    }
    return [&client](size_t i) { return client.Get(KeyOf(i)).ok(); };
  };
}

MakeCalls Batched(const Client& client, bool is_put) {
  return [&client, is_put]() -> DoCalls {
    return [&client, is_put](size_t i) {
      Batch batch;
      for (size_t j = 0; j < kDepth; ++j) {
        batch.Add(MakeOperation(is_put, i + j));
      }
      const auto results = client.Execute(batch);
      if (!results.ok()) return false;
      for (const auto& result : *results) {
        if (!result.status.ok()) return false;
      }
      return true;
    };
  };
}

MakeCalls Piped(const Client& client, bool is_put) {
  return [&client, is_put]() -> DoCalls {
    auto pipeline = std::make_shared<Pipeline>(client);
    return [pipeline, is_put](size_t i) {
      bool ok = true;
      for (size_t j = 0; j < kDepth; ++j) {
        const auto done = [&ok](const OperationResult& result) {
          ok = ok && result.status.ok();
        };
        if (!pipeline->Add(MakeOperation(is_put, i + j), done).ok()) {
          return false;
        }
      }
      return pipeline->Wait().ok() && ok;
    };
  };
}

// A connection for each thread, as hiredis is used; `depth` commands at a time.
MakeCalls Redis(int port, bool is_put, size_t depth) {
  return [port, is_put, depth]() -> DoCalls {
    const std::shared_ptr<redisContext> redis(redisConnect("127.0.0.1", port),
                                              redisFree);
    return [redis, is_put, depth](size_t i) {
      for (size_t j = 0; j < depth; ++j) {
        const std::string key = KeyOf(i + j);
        if (is_put) {
          redisAppendCommand(redis.get(), "SET %b %b EX %s", key.data(),
                             key.size(), Value().data(), Value().size(),
                             kTtlSeconds);
        } else {
          redisAppendCommand(redis.get(), "GET %b", key.data(), key.size());
        }
      }
      for (size_t j = 0; j < depth; ++j) {
        void* reply = nullptr;
        if (redisGetReply(redis.get(), &reply) != REDIS_OK) return false;
        freeReplyObject(reply);
      }
      return true;
    };
  };
}

double ProcessSeconds() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return absl::ToDoubleSeconds(absl::DurationFromTimeval(usage.ru_utime) +
                               absl::DurationFromTimeval(usage.ru_stime));
}

struct Figures {
  double per_second;
  double cpu_us;
};

Figures Measure(const MakeCalls& make, size_t threads, size_t depth,
                double seconds) {
  std::atomic<size_t> done = 0;
  std::atomic<bool> is_over = false;
  std::vector<std::thread> running;
  const double cpu_before = ProcessSeconds();
  const auto begin = std::chrono::steady_clock::now();
  for (size_t t = 0; t < threads; ++t) {
    running.emplace_back([&, t] {
      const DoCalls calls = make();
      size_t mine = 0;
      for (size_t i = t * kKeys / threads; !is_over; i += depth) {
        if (!calls(i)) {
          std::fprintf(stderr, "client_bench: a call has failed\n");
          std::exit(1);
        }
        mine += depth;
      }
      done += mine;
    });
  }
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  is_over = true;
  for (std::thread& thread : running) thread.join();
  const double elapsed =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
          .count();
  const double count = static_cast<double>(done.load());
  return {count / elapsed, (ProcessSeconds() - cpu_before) * 1e6 / count};
}

int Run(const std::string& address, int port, double seconds) {
  const Client client(address);
  const Client unary(address, {.batching = false});
  struct Row {
    std::string name;
    size_t threads;
    size_t depth;
    MakeCalls ours;
  };
  for (const bool is_put : {true, false}) {
    std::vector<Row> rows;
    for (const size_t threads : {1, 16, 64, 256}) {
      rows.push_back(
          {std::to_string(threads), threads, 1, Plain(client, is_put)});
    }
    rows.push_back({"unary", 16, 1, Plain(unary, is_put)});
    rows.push_back({"batch", 1, kDepth, Batched(client, is_put)});
    rows.push_back({"pipeline", 1, kDepth, Piped(client, is_put)});
    for (const Row& row : rows) {
      std::printf("%s %s", is_put ? "put" : "get", row.name.c_str());
      const MakeCalls redis = Redis(port, is_put, row.depth);
      for (const MakeCalls* calls : {&row.ours, &redis}) {
        Measure(*calls, row.threads, row.depth, seconds / 4);
      }
      for (const MakeCalls* calls : {&row.ours, &redis}) {
        const Figures figures =
            Measure(*calls, row.threads, row.depth, seconds);
        std::printf("\t%.3f\t%.3f", figures.per_second, figures.cpu_us);
      }
      std::printf("\n");
      std::fflush(stdout);
    }
  }
  return 0;
}

}  // namespace
}  // namespace timecache

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: client_bench ADDRESS REDIS_PORT SECONDS\n");
    return 2;
  }
  return timecache::Run(argv[1], std::atoi(argv[2]), std::atof(argv[3]));
}
