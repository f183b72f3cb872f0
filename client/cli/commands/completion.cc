#include "client/cli/commands/completion.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "client/cli/commands/commands.h"
#include "client/cli/ui/suggest.h"

namespace timecache::cli {
namespace {

constexpr char kBash[] =
    R"(# timecachectl completion for bash: source it, or put it into
# /usr/share/bash-completion/completions/timecachectl
_timecachectl() {
  local words line
  # As typed: readline would take an address apart at its colon.
  read -ra words <<<"${COMP_LINE:0:COMP_POINT}"
  [[ ${COMP_LINE:0:COMP_POINT} == *' ' ]] && words+=('')
  COMPREPLY=()
  while IFS= read -r line; do
    if [[ $line == :files ]]; then
      compopt -o default
    else
      COMPREPLY+=("${line%%$'\t'*}")
    fi
  done < <("${words[0]}" __complete "${words[@]:1}" 2>/dev/null)
}
complete -F _timecachectl timecachectl
)";

constexpr char kZsh[] = R"(#compdef timecachectl
# timecachectl completion for zsh: source it, or put it as _timecachectl into a
# directory of $fpath
_timecachectl() {
  local -a lines candidates
  local line
  lines=("${(@f)$("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  for line in "${lines[@]}"; do
    if [[ $line == :files ]]; then
      _files
    elif [[ -n $line ]]; then
      candidates+=("${line/$'\t'/:}")
    fi
  done
  (( ${#candidates} )) && _describe timecachectl candidates
}
if [[ ${funcstack[1]} == _timecachectl ]]; then
  _timecachectl "$@"
else
  compdef _timecachectl timecachectl
fi
)";

constexpr char kFish[] = R"(# timecachectl completion for fish: put it into
# ~/.config/fish/completions/timecachectl.fish
function __timecachectl_complete
  set -l words (commandline -opc) (commandline -ct)
  for line in ($words[1] __complete $words[2..-1] 2>/dev/null)
    if test "$line" = :files
      __fish_complete_path (commandline -ct)
    else
      echo $line
    end
  end
end
complete -c timecachectl -f -a '(__timecachectl_complete)'
)";

// Where the words lead to.
struct Place {
  // The commands from the program on; all their flags may follow.
  std::vector<const CLI::App*> path;
  // Positional arguments of the last of them that are there.
  size_t positionals = 0;
  // Namespaces among them, and among the values of its own flags.
  std::vector<std::string> namespaces;
  // The flag whose value comes next.
  const CLI::Option* open_flag = nullptr;
  // The program's own flags, with values.
  std::vector<std::string> flags;
};

bool TakesValue(const CLI::Option& option) {
  return option.get_items_expected_max() > 0;
}

bool IsNamespace(const CLI::Option& option) {
  return option.check_lname("namespace") ||
         option.get_type_name() == "NAMESPACE" ||
         absl::StartsWith(option.get_description(), "The namespace");
}

bool IsContext(const CLI::Option& option) {
  return absl::StartsWith(option.get_description(), "The context");
}

bool IsGroup(const CLI::Option& option) {
  return option.get_type_name() == "GROUP" ||
         absl::StartsWith(option.get_description(), "The group");
}

// The argument that a word would be now; null: there is none left.
const CLI::Option* NextPositional(const Place& place) {
  const auto all = place.path.back()->get_options(
      [](const CLI::Option* option) { return option->get_positional(); });
  if (place.positionals < all.size()) return all[place.positionals];
  // The last may take many.
  return !all.empty() && all.back()->get_items_expected_max() > 1 ? all.back()
                                                                  : nullptr;
}

void Step(const std::string& word, Place* place) {
  if (place->open_flag != nullptr) {
    // A command's own flag does not say which server it is.
    const std::string name = place->open_flag->get_name();
    if (place->path[0]->get_option_no_throw(name) == place->open_flag) {
      place->flags.insert(place->flags.end(), {name, word});
    } else if (IsNamespace(*place->open_flag)) {
      place->namespaces.push_back(word);
    }
    place->open_flag = nullptr;
    return;
  }
  if (absl::StartsWith(word, "-")) {
    const std::vector<std::string> parts =
        absl::StrSplit(word, absl::MaxSplits('=', 1));
    const CLI::Option* option = FindFlag(place->path, parts[0]);
    if (option == nullptr) return;
    if (TakesValue(*option) && parts.size() == 1) {
      place->open_flag = option;
    } else if (place->path[0]->get_option_no_throw(parts[0]) == option) {
      place->flags.push_back(word);
    }
    return;
  }
  if (const CLI::App* const next = FindCommand(*place->path.back(), word)) {
    place->path.push_back(next);
    place->positionals = 0;
    place->namespaces.clear();
  } else {
    const CLI::Option* const option = NextPositional(*place);
    if (option != nullptr && IsNamespace(*option)) {
      place->namespaces.push_back(word);
    }
    ++place->positionals;
  }
}

void Offer(const std::string& word, const std::string& help,
           const std::string& prefix, Completion* completion) {
  if (!absl::StartsWith(word, prefix)) return;
  completion->candidates.push_back({word, help});
}

void OfferFlags(const Place& place, const std::string& prefix,
                Completion* completion) {
  for (const CLI::App* app : place.path) {
    for (const CLI::Option* option : app->get_options()) {
      if (option->get_group().empty()) continue;
      for (const std::string& name : option->get_lnames()) {
        Offer("--" + name, option->get_description(), prefix, completion);
      }
    }
  }
}

// What the value of a flag or an argument may be.
void OfferValues(const CLI::Option& option, const Place& place,
                 const std::string& prefix, const ServerNames& names,
                 Completion* completion) {
  const std::string type = option.get_type_name();
  const size_t open = type.find('{');
  if (open != type.npos) {
    const std::string all = type.substr(open + 1, type.find('}') - open - 1);
    for (const absl::string_view name : absl::StrSplit(all, ',')) {
      Offer(std::string(name), "", prefix, completion);
    }
  } else if (IsContext(option)) {
    if (names.contexts == nullptr) return;
    for (const std::string& name : names.contexts()) {
      Offer(name, "context", prefix, completion);
    }
  } else if (IsNamespace(option)) {
    for (const std::string& name : names.namespaces(place.flags)) {
      Offer(name, "namespace", prefix, completion);
    }
  } else if (IsGroup(option)) {
    for (const std::string& name :
         names.groups(place.flags, place.namespaces)) {
      Offer(name, "group", prefix, completion);
    }
  } else if (absl::StrContains(type, "FILE") || type == "DIR") {
    completion->files = true;
  }
}

}  // namespace

Completion Complete(const CLI::App& app, const std::vector<std::string>& words,
                    const ServerNames& names) {
  Place place;
  place.path.push_back(&app);
  for (size_t i = 0; i + 1 < words.size(); ++i) Step(words[i], &place);
  const std::string prefix = words.empty() ? "" : words.back();
  Completion completion;
  if (place.open_flag != nullptr) {
    OfferValues(*place.open_flag, place, prefix, names, &completion);
    return completion;
  }
  if (absl::StartsWith(prefix, "-")) {
    OfferFlags(place, prefix, &completion);
    return completion;
  }
  for (const CLI::App* each : Commands(*place.path.back())) {
    Offer(each->get_name(), each->get_description(), prefix, &completion);
  }
  if (const CLI::Option* const option = NextPositional(place)) {
    OfferValues(*option, place, prefix, names, &completion);
  }
  return completion;
}

std::string CompletionScript(const std::string& shell) {
  if (shell == "bash") return kBash;
  if (shell == "zsh") return kZsh;
  return shell == "fish" ? kFish : "";
}

}  // namespace timecache::cli
