// Where the attempts of a call go. Internal to the client.

#ifndef TIMECACHED_CLIENT_CPP_SRC_OWNERS_ROUTE_H_
#define TIMECACHED_CLIENT_CPP_SRC_OWNERS_ROUTE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "client/cpp/src/owners/owner_finder.h"
#include "client/cpp/src/owners/owner_node.h"
#include "client/cpp/src/owners/owners.h"
#include "client/cpp/src/rpc/call.h"
#include "timecache/call_options.h"

namespace timecache {

// To the owner of a key, as long as it is known, is connected and has not failed
// this call, else to the default node. Of one call: not thread-safe. Costs nothing
// without a finder; else a lookup for each attempt.
class Route {
 public:
  // To the default node alone.
  explicit Route(Destination home) : home_(home) {}
  // `hash`: the key's PartitionHash. `finder` and `ns` outlive it.
  Route(Destination home, OwnerFinder& finder, const std::string& ns,
        uint32_t hash)
      : home_(home), finder_(&finder), ns_(&ns), hash_(hash) {}

  Endpoints& home() const { return *home_.endpoints; }

  // Where the next attempt is to go. Valid until the next call, and as long as
  // this.
  Destination Next();
  // To be called with the status of that attempt. True: it was at an owner, which
  // certainly has not done it, and so it goes on at the default node, at once and
  // as the same attempt.
  bool GoesOn(const absl::Status& status, const CallOptions& call);

 private:
  Destination home_;
  OwnerFinder* finder_ = nullptr;  // Null: to the default node.
  const std::string* ns_ = nullptr;
  uint32_t hash_ = 0;
  // Of the last attempt; they keep its node. Null: the default one.
  std::shared_ptr<const Owners> owners_;
  OwnerNode* node_ = nullptr;
};

// The attempts of a call by its route.
absl::Status AttemptEach(
    Route& route, const CallPlan& plan,
    absl::FunctionRef<Attempted(const Destination& to)> attempt);

}  // namespace timecache

#endif  // TIMECACHED_CLIENT_CPP_SRC_OWNERS_ROUTE_H_
