#include "client/cli/ui/suggest.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/base/edit_distance.h"

namespace timecache::cli {
namespace {

// What Redis, etcd, memcached, kubectl and the shell say, and what it is here.
constexpr std::pair<const char*, const char*> kOtherNames[] = {
    {"set", "put"},         {"add", "put"},      {"add", "create"},
    {"new", "create"},      {"mget", "get"},     {"read", "get"},
    {"show", "get"},        {"describe", "get"}, {"ttl", "get"},
    {"del", "rm"},          {"delete", "rm"},    {"remove", "rm"},
    {"unlink", "rm"},       {"del", "delete"},   {"rm", "delete"},
    {"remove", "delete"},   {"keys", "scan"},    {"list", "scan"},
    {"ls", "scan"},         {"ls", "list"},      {"exists", "contains"},
    {"expire", "touch"},    {"renew", "touch"},  {"incr", "combine"},
    {"incrby", "combine"},  {"decr", "combine"}, {"join", "gather"},
    {"count", "size"},      {"dbsize", "size"},  {"export", "dump"},
    {"backup", "dump"},     {"import", "load"},  {"restore", "load"},
    {"subscribe", "watch"}, {"info", "status"},  {"ping", "health"},
    {"benchmark", "bench"}, {"namespace", "ns"}, {"namespaces", "ns"},
    {"fsck", "journal"},    {"verify", "check"}, {"repair", "salvage"},
    {"recover", "salvage"}, {"monitor", "tail"}, {"slowlog", "slow"},
    {"client", "clients"},  {"kill", "close"},   {"context", "contexts"}};

// Farther than this from all is near none.
size_t MostEdits(const std::string& word) {
  return word.size() <= 2 ? 1 : std::min<size_t>(2, word.size() - 1);
}

// The candidate with the fewest edits, the first of several; empty: none.
std::string Nearest(const std::string& word,
                    const std::vector<std::string>& candidates) {
  std::string nearest;
  size_t fewest = MostEdits(word) + 1;
  for (const std::string& candidate : candidates) {
    const size_t edits = EditDistance(word, candidate);
    if (edits < fewest && edits < candidate.size()) {
      fewest = edits;
      nearest = candidate;
    }
  }
  return nearest;
}

// "timecachectl ns", without the program's own name: "ns ".
std::string Prefix(const std::vector<const CLI::App*>& path) {
  std::string prefix;
  for (size_t i = 1; i < path.size(); ++i) {
    absl::StrAppend(&prefix, path[i]->get_name(), " ");
  }
  return prefix;
}

std::string UnknownCommand(const std::vector<const CLI::App*>& path,
                           const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::App* each : Commands(*path.back())) {
    names.push_back(each->get_name());
  }
  std::string meant;
  for (const auto& [other, name] : kOtherNames) {
    if (word == other && std::ranges::find(names, name) != names.end()) {
      meant = name;
      break;
    }
  }
  if (meant.empty()) meant = Nearest(word, names);
  const std::string prefix = Prefix(path);
  std::string text = absl::StrCat("unknown command \"", prefix, word, "\"");
  if (!meant.empty()) {
    return absl::StrCat(text, ": did you mean \"", prefix, meant, "\"?");
  }
  return absl::StrCat(text, ": see ", path[0]->get_name(), " ", prefix,
                      "--help");
}

std::string UnknownFlag(const std::vector<const CLI::App*>& path,
                        const std::string& flag) {
  std::string text = absl::StrCat("unknown flag \"", flag, "\"");
  if (!absl::StartsWith(flag, "--")) {
    return absl::StrCat(text,
                        ": an argument that begins with a dash goes after --");
  }
  std::vector<std::string> names;
  for (auto app = path.rbegin(); app != path.rend(); ++app) {
    for (const CLI::Option* option : (*app)->get_options()) {
      for (const std::string& name : option->get_lnames()) {
        names.push_back(name);
      }
    }
  }
  const std::string meant = Nearest(flag.substr(2), names);
  if (!meant.empty()) {
    return absl::StrCat(text, ": did you mean \"--", meant, "\"?");
  }
  return absl::StrCat(text, ": see ", path[0]->get_name(), " ", Prefix(path),
                      "--help");
}

}  // namespace

std::vector<const CLI::App*> Commands(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

const CLI::App* FindCommand(const CLI::App& app, const std::string& name) {
  for (const CLI::App* each : Commands(app)) {
    if (each->get_name() == name) return each;
  }
  return nullptr;
}

const CLI::Option* FindFlag(const std::vector<const CLI::App*>& path,
                            const std::string& name) {
  for (auto app = path.rbegin(); app != path.rend(); ++app) {
    const CLI::Option* option = (*app)->get_option_no_throw(name);
    if (option != nullptr) return option;
  }
  return nullptr;
}

std::optional<std::string> ExplainUnknownWord(
    const CLI::App& app, const std::vector<std::string>& words) {
  std::vector<const CLI::App*> path = {&app};
  bool value_comes = false;  // Of the flag before.
  for (const std::string& word : words) {
    if (word == "--") return std::nullopt;
    if (std::exchange(value_comes, false)) continue;
    // A negative number is an argument.
    if (word.size() > 1 && word[0] == '-' && !absl::ascii_isdigit(word[1])) {
      const bool is_long = word[1] == '-';
      const size_t equals = word.find('=');
      // -nNAME is -n NAME.
      const std::string name =
          is_long ? word.substr(0, equals) : word.substr(0, 2);
      const CLI::Option* flag = FindFlag(path, name);
      if (flag == nullptr) return UnknownFlag(path, is_long ? name : word);
      const bool value_is_in = is_long ? equals != word.npos : word.size() > 2;
      value_comes = flag->get_items_expected_max() > 0 && !value_is_in;
      continue;
    }
    if (Commands(*path.back()).empty()) continue;  // An argument.
    const CLI::App* const command = FindCommand(*path.back(), word);
    if (command == nullptr) return UnknownCommand(path, word);
    path.push_back(command);
  }
  return std::nullopt;
}

}  // namespace timecache::cli
