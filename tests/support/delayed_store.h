// A store that answers later, as one with a journal or on another machine does.

#ifndef TIMECACHED_TESTS_SUPPORT_DELAYED_STORE_H_
#define TIMECACHED_TESTS_SUPPORT_DELAYED_STORE_H_

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"
#include "server/engine/store/store.h"

namespace timecache::test {

// Another store's calls, made one after the other on a thread of its own, so
// that no call completes before it returns, or on the caller's thread. While it
// is held calls wait. Thread-safe.
class DelayedStore final : public server::Store {
 public:
  // `store` completes inline; not owned.
  explicit DelayedStore(server::Store* store)
      : store_(*store), thread_([this] { Run(); }) {}
  // Makes what waits.
  ~DelayedStore() override {
    {
      absl::MutexLock lock(&mu_);
      stopping_ = true;
      held_ = false;
    }
    thread_.join();
  }

  // Lets what comes wait until Release.
  void Hold() ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    held_ = true;
  }
  void Release() ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    held_ = false;
  }
  // Lets the answers to turns of Execute that come wait until ReleaseAnswers,
  // applied as they are.
  void HoldAnswers() ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    holds_answers_ = true;
  }
  void ReleaseAnswers() ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    holds_answers_ = false;
    for (Call& answer : answers_) calls_.push_back(std::move(answer));
    answers_.clear();
  }
  // Waits until so many answers wait.
  void AwaitAnswers(size_t count) ABSL_LOCKS_EXCLUDED(mu_) {
    const auto has_answers = [this, count]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
      return answers_.size() >= count;
    };
    absl::MutexLock lock(&mu_);
    mu_.Await(absl::Condition(&has_answers));
  }
  // Waits until a call waits.
  void AwaitCall() ABSL_LOCKS_EXCLUDED(mu_) {
    const auto has_call = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
      return !calls_.empty();
    };
    absl::MutexLock lock(&mu_);
    mu_.Await(absl::Condition(&has_call));
  }

  void Execute(absl::string_view name,
               absl::Span<const server::Operation> operations,
               absl::Span<server::Result> results,
               server::BatchProgress* progress, Done done) override {
    Later([=, this, done = std::move(done)]() mutable {
      Done answer = [this, progress,
                     done = std::move(done)](absl::Status status) mutable {
        Answer(progress, std::move(status), std::move(done));
      };
      store_.Execute(name, operations, results, progress, std::move(answer));
    });
  }
  void ExecuteAtomic(absl::string_view name,
                     absl::Span<const server::Operation> operations,
                     absl::Span<server::Result> results, Done done) override {
    Later([=, this, done = std::move(done)]() mutable {
      store_.ExecuteAtomic(name, operations, results, std::move(done));
    });
  }
  void GetSize(absl::string_view name,
               DoneWith<server::NamespaceSize> done) override {
    Later([=, this, done = std::move(done)]() mutable {
      store_.GetSize(name, std::move(done));
    });
  }
  void Scan(absl::string_view name, absl::string_view prefix, int max_entries,
            int64_t max_bytes, server::ScanPosition* position, bool* more,
            server::EntryVisitor visit, Done done) override {
    Later([=, this, done = std::move(done)]() mutable {
      store_.Scan(name, prefix, max_entries, max_bytes, position, more, visit,
                  std::move(done));
    });
  }

  void CreateNamespace(absl::string_view name, server::NamespaceOptions options,
                       DoneWith<server::NamespaceInfo> done) override {
    Later([=, this, done = std::move(done)]() mutable {
      store_.CreateNamespace(name, options, std::move(done));
    });
  }
  void GetNamespace(absl::string_view name, bool include_statistics,
                    DoneWith<server::NamespaceInfo> done) override {
    Later([=, this, done = std::move(done)]() mutable {
      store_.GetNamespace(name, include_statistics, std::move(done));
    });
  }
  void ListNamespaces(
      server::ListQuery query,
      DoneWith<server::Page<server::NamespaceInfo>> done) override {
    Later([=, this, done = std::move(done)]() mutable {
      store_.ListNamespaces(query, std::move(done));
    });
  }
  void UpdateNamespace(absl::string_view name,
                       server::OptionsChange<server::NamespaceOptions> change,
                       DoneWith<server::NamespaceInfo> done) override {
    Later([=, this, done = std::move(done)]() mutable {
      store_.UpdateNamespace(name, change, std::move(done));
    });
  }
  void DeleteNamespace(absl::string_view name, Done done) override {
    Later([=, this, done = std::move(done)]() mutable {
      store_.DeleteNamespace(name, std::move(done));
    });
  }
  void RotateNamespace(absl::string_view name,
                       DoneWith<int64_t> done) override {
    Later([=, this, done = std::move(done)]() mutable {
      store_.RotateNamespace(name, std::move(done));
    });
  }
  void GetDeaths(absl::string_view name, server::DeathsQuery query,
                 DoneWith<server::DeathsAhead> done) override {
    Later([=, this, done = std::move(done)]() mutable {
      store_.GetDeaths(name, query, std::move(done));
    });
  }
  void GetHotKeys(absl::string_view name, size_t max_keys,
                  DoneWith<server::HotKeys> done) override {
    Later([=, this, done = std::move(done)]() mutable {
      store_.GetHotKeys(name, max_keys, std::move(done));
    });
  }

  void CreateGroup(server::GroupName name, server::NewGroup group,
                   DoneWith<server::GroupInfo> done) override {
    Later([=, this, done = std::move(done)]() mutable {
      store_.CreateGroup(name, group, std::move(done));
    });
  }
  void GetGroup(server::GroupName name, bool include_statistics,
                DoneWith<server::GroupInfo> done) override {
    Later([=, this, done = std::move(done)]() mutable {
      store_.GetGroup(name, include_statistics, std::move(done));
    });
  }
  void ListGroups(absl::string_view namespace_name, server::ListQuery query,
                  DoneWith<server::Page<server::GroupInfo>> done) override {
    Later([=, this, done = std::move(done)]() mutable {
      store_.ListGroups(namespace_name, query, std::move(done));
    });
  }
  void UpdateGroup(server::GroupName name,
                   server::OptionsChange<server::GroupOptions> change,
                   DoneWith<server::GroupInfo> done) override {
    Later([=, this, done = std::move(done)]() mutable {
      store_.UpdateGroup(name, change, std::move(done));
    });
  }
  void DeleteGroup(server::GroupName name, Done done) override {
    Later([=, this, done = std::move(done)]() mutable {
      store_.DeleteGroup(name, std::move(done));
    });
  }
  void ListMembers(server::GroupName name,
                   DoneWith<std::vector<server::MemberInfo>> done) override {
    Later([=, this, done = std::move(done)]() mutable {
      store_.ListMembers(name, std::move(done));
    });
  }
  void SeekGroup(server::GroupName name, server::LogPosition position,
                 bool drop, DoneWith<server::SeekResult> done) override {
    Later([=, this, done = std::move(done)]() mutable {
      store_.SeekGroup(name, position, drop, std::move(done));
    });
  }
  void ListUnsettled(server::GroupName name, server::UnsettledQuery query,
                     DoneWith<server::UnsettledPage> done) override {
    Later([=, this, done = std::move(done)]() mutable {
      store_.ListUnsettled(name, query, std::move(done));
    });
  }
  void Settle(server::GroupName name,
              absl::Span<const server::Settlement> settlements,
              absl::Span<server::SettleResult> results, Done done) override {
    Later([=, this, done = std::move(done)]() mutable {
      store_.Settle(name, settlements, results, std::move(done));
    });
  }

  void OpenLogs(absl::Span<const std::string> names, server::LogStart start,
                const server::LogPoints& points, Wake wake,
                DoneWith<Readers> done) override {
    Later([=, this, &points, done = std::move(done)]() mutable {
      store_.OpenLogs(names, start, points, wake, std::move(done));
    });
  }
  void OpenChanges(absl::Span<const std::string> names, server::LogStart start,
                   const server::LogPoints& points, Wake wake,
                   DoneWith<Readers> done) override {
    Later([=, this, &points, done = std::move(done)]() mutable {
      store_.OpenChanges(names, start, points, wake, std::move(done));
    });
  }
  void JoinGroups(absl::Span<const std::string> names,
                  server::Membership membership, Wake wake,
                  DoneWith<Readers> done) override {
    Later([=, this, done = std::move(done)]() mutable {
      store_.JoinGroups(names, membership, wake, std::move(done));
    });
  }
  void OpenExpiring(absl::Span<const std::string> names,
                    server::ExpiringOptions options, Wake wake,
                    DoneWith<Readers> done) override {
    Later([=, this, done = std::move(done)]() mutable {
      store_.OpenExpiring(names, options, wake, std::move(done));
    });
  }

  server::StoreUsage GetUsage() const override { return store_.GetUsage(); }
  void SetDeadLetterRight(DeadLetterRight right) override {
    store_.SetDeadLetterRight(std::move(right));
  }

 private:
  using Call = absl::AnyInvocable<void()>;

  void Later(Call call) ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    calls_.push_back(std::move(call));
  }

  void Answer(server::BatchProgress* progress, absl::Status status, Done done)
      ABSL_LOCKS_EXCLUDED(mu_) {
    if (progress == nullptr || !progress->done || !HoldsAnswers()) {
      return done(std::move(status));
    }
    if (progress->on_applied) progress->on_applied();
    absl::MutexLock lock(&mu_);
    answers_.push_back([status, done = std::move(done)]() mutable {
      done(std::move(status));
    });
  }
  bool HoldsAnswers() ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    return holds_answers_;
  }

  void Run() ABSL_LOCKS_EXCLUDED(mu_) {
    const auto ready = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
      return stopping_ || (!held_ && !calls_.empty());
    };
    for (;;) {
      Call call;
      {
        absl::MutexLock lock(&mu_);
        mu_.Await(absl::Condition(&ready));
        if (calls_.empty()) return;
        call = std::move(calls_.front());
        calls_.pop_front();
      }
      call();
    }
  }

  server::Store& store_;
  absl::Mutex mu_;
  std::deque<Call> calls_ ABSL_GUARDED_BY(mu_);
  std::deque<Call> answers_ ABSL_GUARDED_BY(mu_);
  bool held_ ABSL_GUARDED_BY(mu_) = false;
  bool holds_answers_ ABSL_GUARDED_BY(mu_) = false;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace timecache::test

#endif  // TIMECACHED_TESTS_SUPPORT_DELAYED_STORE_H_
