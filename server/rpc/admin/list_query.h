// Pages of a list, as in AIP-158.

#ifndef TIMECACHED_SERVER_RPC_ADMIN_LIST_QUERY_H_
#define TIMECACHED_SERVER_RPC_ADMIN_LIST_QUERY_H_

#include <algorithm>
#include <cstddef>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/engine/store/namespace_options.h"
#include "server/engine/store/store_types.h"

namespace timecache::server {

// The page that a List request asks for: of `default_size` items if unset, and
// never more than `max_size`. The token is the name after which the page
// starts. INVALID_ARGUMENT about page_size or page_token.
template <typename Request>
absl::StatusOr<ListQuery> ToListQuery(const Request& request, int default_size,
                                      int max_size) {
  if (request.page_size() < 0) {
    return InvalidField("page_size", absl::StrCat("must not be negative, as ",
                                                  request.page_size(), " is"));
  }
  ListQuery query;
  query.after = request.page_token();
  if (!query.after.empty() && !ValidateNamespaceName(query.after).ok()) {
    return InvalidField("page_token",
                        "must be the next_page_token of a previous page");
  }
  const int size =
      request.page_size() == 0 ? default_size : request.page_size();
  query.most = static_cast<size_t>(std::min(size, max_size));
  query.include_statistics = request.include_statistics();
  return query;
}

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_RPC_ADMIN_LIST_QUERY_H_
