#include "timecache/recipes/join.h"

#include <algorithm>
#include <utility>

#include "client/cpp/src/recipes/member_key.h"

namespace timecache {
namespace {

// In the order of the sources.
std::vector<std::optional<std::string>> Sorted(
    const std::vector<std::string>& sources, const GatheredParts& parts) {
  std::vector<std::optional<std::string>> tuples(sources.size());
  for (const GatheredPart& part : parts.parts) {
    const auto source = std::find(sources.begin(), sources.end(), part.name);
    if (source == sources.end()) continue;
    tuples[static_cast<size_t>(source - sources.begin())] = part.value;
  }
  return tuples;
}

}  // namespace

Join::Join(const Client& client, std::string_view name, JoinOptions options)
    : client_(client),
      key_prefix_(KeyPrefix(name)),
      sources_(std::move(options.sources)),
      options_({.expected_names = sources_, .ttl = options.ttl}) {}

// Each field behind its length, so that ("a", "bc") is not ("ab", "c").
std::string Join::Id(std::initializer_list<std::string_view> fields) {
  std::string id;
  for (const std::string_view field : fields) {
    id += std::to_string(field.size());
    id += ':';
    id += field;
  }
  return id;
}

absl::StatusOr<std::optional<Joined>> Join::Add(std::string_view id,
                                                std::string_view source,
                                                std::string_view tuple) const {
  const auto gathered =
      client_.Gather(MemberKey(key_prefix_, id), source, tuple, options_);
  if (!gathered.ok()) return gathered.status();
  return RowOf(id, gathered->parts);
}

Operation Join::MakeOperation(std::string_view id, std::string_view source,
                              std::string_view tuple) const {
  return Operation::Gather(MemberKey(key_prefix_, id), source, tuple, options_);
}

absl::StatusOr<std::optional<Joined>> Join::Row(
    std::string_view id, const OperationResult& result) const {
  if (!result.status.ok()) return result.status;
  return RowOf(id, result.parts);
}

std::optional<IncompleteJoin> Join::Incomplete(
    const ExpiredEvent& event) const {
  auto id = MemberOfKey(key_prefix_, event.key);
  if (event.cause == ExpiryCause::kExpiring || !event.parts || !id) {
    return std::nullopt;
  }
  return IncompleteJoin{.id = *std::move(id),
                        .tuples = Sorted(sources_, *event.parts)};
}

std::optional<Joined> Join::RowOf(
    std::string_view id, const std::optional<GatheredParts>& parts) const {
  if (!parts) return std::nullopt;
  Joined row = {.id = std::string(id), .tuples = {}};
  for (std::optional<std::string>& tuple : Sorted(sources_, *parts)) {
    row.tuples.push_back(tuple ? *std::move(tuple) : "");
  }
  return row;
}

}  // namespace timecache
