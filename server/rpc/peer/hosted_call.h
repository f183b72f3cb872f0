// One call of another node.

#ifndef TIMECACHED_SERVER_RPC_PEER_HOSTED_CALL_H_
#define TIMECACHED_SERVER_RPC_PEER_HOSTED_CALL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/engine/store/store.h"
#include "server/peer/field_coder.h"
#include "server/peer/frame_queue.h"
#include "server/peer/peer_answer.h"
#include "server/peer/peer_call.h"
#include "server/peer/store_fields.h"
#include "server/rpc/call/fair_executor.h"
#include "server/rpc/data/batch_buffers.h"
#include "server/rpc/peer/hosted_reader.h"
#include "timecache/peer/v1/peer.pb.h"

namespace timecache::server {

class PeerStream;

// Reads a call's arguments, makes it at this node's own store, or at that of whole
// namespaces if it is about one (kWholeNamespace), and answers, unless another node
// owns: then the answer is NOT_OWNER. Keeps
// itself, and the stream, until it has answered. A batch takes turns on the stream's
// executor.
class HostedCall final : public std::enable_shared_from_this<HostedCall>,
                         public FairExecutor::Task {
 public:
  static void Start(std::shared_ptr<PeerStream> stream, uint64_t id,
                    std::string body);

  HostedCall(std::shared_ptr<PeerStream> stream, uint64_t id, std::string body);
  ~HostedCall() override;
  bool TakeTurn() override;

 private:
  using Buffers = BatchBuffers<ReadOperations>;

  void Make();
  void MakeEntryCall();
  void MakeNamespaceCall();
  void MakeGroupCall();
  void MakeReaderCall();

  void ExecuteBatch();
  void Execute();
  void ExecuteAtomic();
  void Scan();
  void Settle();
  void Join(Membership membership);
  // At its readers' store: opens them, all of a kind, and answers.
  Store::DoneWith<Store::Readers> WhenOpen(HostedReader::Of all);
  template <typename Info, typename Options, typename Name>
  void Update(Name name, void (Store::*update)(Name, OptionsChange<Options>,
                                               Store::DoneWith<Info>));

  // Whether the arguments could be read: otherwise it has answered.
  bool Understood();
  template <typename Answer>
  Store::DoneWith<Answer> WhenDone();
  Store::Done WhenTold();
  void Refuse(const absl::Status& status);
  PeerFrame AnswerOf(FieldWriter* body) const;
  // Sends that, and is done.
  void Answer(FieldWriter* body);
  bool opens() const { return call_ >= PeerCall::kOpenLogs; }

  const std::shared_ptr<PeerStream> stream_;
  Store* store_;
  const uint64_t id_;
  // What the arguments are views of.
  const std::string body_;
  FieldReader arguments_;
  PeerCall call_ = PeerCall::kNone;

  // The arguments and results of some of them.
  absl::string_view name_;
  GroupName group_;
  std::unique_ptr<Buffers> batch_;
  BatchProgress progress_;
  ScanPosition position_;
  bool more_ = false;
  FieldWriter entries_;
  std::vector<Settlement> settlements_;
  std::vector<SettleResult> settled_;
  std::vector<std::string> names_;
  LogPoints points_;
  std::shared_ptr<HostedWake> wake_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_RPC_PEER_HOSTED_CALL_H_
