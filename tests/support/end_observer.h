// Calls as they end.

#ifndef TIMECACHED_TESTS_SUPPORT_END_OBSERVER_H_
#define TIMECACHED_TESTS_SUPPORT_END_OBSERVER_H_

#include <functional>
#include <utility>

#include "server/api/call_observer.h"

namespace timecache::test {

// Tells a function of each call that has ended, on the call's thread.
class EndObserver final : public server::CallObserver {
 public:
  explicit EndObserver(std::function<void(const server::CallRecord&)> on_end)
      : on_end_(std::move(on_end)) {}

  void OnHandled(const server::CallRecord& record) override { on_end_(record); }
  void OnStarted(const server::Method& /*method*/) override {}
  void OnDenied(const server::CallDenial& /*denial*/) override {}
  void OnReceived(const server::Method& /*method*/) override {}
  void OnSent(const server::Method& /*method*/) override {}

 private:
  const std::function<void(const server::CallRecord&)> on_end_;
};

}  // namespace timecache::test

#endif  // TIMECACHED_TESTS_SUPPORT_END_OBSERVER_H_
