// Learns of each namespace of a cluster how many partitions it has, before it is used.

#ifndef TIMECACHED_SERVER_PEER_LEARNING_STORE_H_
#define TIMECACHED_SERVER_PEER_LEARNING_STORE_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/engine/store/store.h"
#include "server/peer/learned_directory.h"
#include "server/peer/passing_store.h"

namespace timecache::server {

// Passes calls on to a PartitionedStore, once its directory knows the namespaces that
// they are about: what it does not know is asked of `maps`, by GetNamespace. An answer
// that says that it is old (stale_names.h) makes it forget, and the call is made once
// more. A namespace that is not there is asked for each time.
//
// What must come one after the other for all partitions of a namespace that has several
// goes to `homes`. Where dead letters go is checked here, and warned of, as no slot knows
// all namespaces: dead_letter_walk.h.
//
// Thread-safe. A call costs a lookup in the directory and an allocation.
class LearningStore final : public PassingStore {
 public:
  struct Parts {
    LearnedDirectory* directory;
    // A SlotRouter.
    Store* maps;
    // A PartitionedStore over these two.
    Store* namespaces;
    // A HomeRouter; null: this store is what it has do such calls at the home.
    Store* homes;
  };
  // Nothing of it is owned; all must outlive the store.
  explicit LearningStore(const Parts& parts) : parts_(parts) {}

  using Store::Execute;
  void Execute(absl::string_view name, absl::Span<const Operation> operations,
               absl::Span<Result> results, BatchProgress* progress,
               Done done) override;
  void CreateNamespace(absl::string_view name, NamespaceOptions options,
                       DoneWith<NamespaceInfo> done) override;
  void GetNamespace(absl::string_view name, bool include_statistics,
                    DoneWith<NamespaceInfo> done) override;
  void UpdateNamespace(absl::string_view name,
                       OptionsChange<NamespaceOptions> change,
                       DoneWith<NamespaceInfo> done) override;
  void ListNamespaces(ListQuery query,
                      DoneWith<Page<NamespaceInfo>> done) override {
    parts_.namespaces->ListNamespaces(std::move(query), std::move(done));
  }
  void DeleteNamespace(absl::string_view name, Done done) override;
  void JoinGroups(absl::Span<const std::string> names, Membership membership,
                  Wake wake, DoneWith<Readers> done) override;

  StoreUsage GetUsage() const override { return parts_.maps->GetUsage(); }
  void SetDeadLetterRight(DeadLetterRight right) override {
    parts_.maps->SetDeadLetterRight(std::move(right));
  }

 private:
  using Known = LearnedDirectory::Known;

  Choice AtOnce(const About& about) override;
  void Next(std::shared_ptr<Call> call) override;
  bool Again(const std::shared_ptr<Call>& call,
             const absl::Status& error) override;
  // The first name of which nothing is known; empty: none.
  absl::string_view Unknown(const About& about) const;
  Store* StoreFor(const About& about) const;
  DoneWith<NamespaceInfo> WithWarnings(DoneWith<NamespaceInfo> done);
  void CreateChecked(absl::string_view name, NamespaceOptions options,
                     DoneWith<NamespaceInfo> done);
  // What its home says of a namespace, which is remembered.
  void Ask(absl::string_view name, DoneWith<NamespaceInfo> done);

  const Parts parts_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_PEER_LEARNING_STORE_H_
