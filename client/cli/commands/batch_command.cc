// batch.
#include <unistd.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "client/cli/commands/commands.h"
#include "client/cli/flags.h"
#include "client/cli/ui/command_result.h"
#include "client/cli/ui/line_reader.h"
#include "timecache/batch.h"
#include "timecache/status.h"

namespace timecache::cli {
namespace {

struct BatchArguments {
  std::vector<std::string> operations;
  bool atomic = false;
};

// One operation, as it is written and as it is sent.
struct NamedOperation {
  std::string name;
  std::string key;
  Operation operation = Operation::Get("");
};

// Reads an operation as the command of its name has it on its line.
class OperationParser {
 public:
  explicit OperationParser(const Context& context) : context_(context) {}

  absl::StatusOr<NamedOperation> Parse(const std::string& line) {
    CLI::App app;
    app.require_subcommand(1);
    app.set_help_flag();
    AddPut(app);
    AddGet(app);
    AddRemove(app);
    AddContains(app);
    AddTouch(app);
    AddAppend(app);
    AddCombine(app);
    try {
      app.parse(line, /*program_name_included=*/false);
    } catch (const CLI::ParseError& error) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", line, "\": ", error.what()));
    }
    absl::StatusOr<std::string> key = context_.Key(key_);
    if (!key.ok()) return key.status();
    const absl::StatusOr<std::string> value = context_.Value(value_);
    if (!value.ok()) return value.status();
    return NamedOperation{app.get_subcommands().front()->get_name(), *key,
                          make_(*key, *value)};
  }

 private:
  CLI::App* Add(CLI::App& app, const std::string& name) {
    CLI::App* const added = app.add_subcommand(name);
    added->set_help_flag();
    added->add_option("key", key_)->required();
    return added;
  }
  // `make` is called once the options are parsed.
  template <typename Options, typename Make>
  void OnParsed(CLI::App* app, const std::shared_ptr<Options>& options,
                Make make) {
    app->callback([this, options, make] {
      make_ = [options, make](const std::string& key,
                              const std::string& value) {
        return make(key, value, *options);
      };
    });
  }

  void AddPut(CLI::App& app) {
    const auto options = std::make_shared<PutOptions>();
    CLI::App* const put = Add(app, "put");
    put->add_option("value", value_)->required();
    AddDuration(*put, "--ttl", options->ttl, "");
    AddExpireAt(*put, *options);
    put->add_flag("--keep-deadline", options->keep_deadline);
    AddId(*put, *options);
    AddPreconditions(*put, *options);
    OnParsed(put, options, Operation::Put);
  }
  void AddGet(CLI::App& app) {
    const auto options = std::make_shared<GetOptions>();
    CLI::App* const get = Add(app, "get");
    get->add_flag("--touch", options->touch);
    OnParsed(get, options, [](const auto& key, const auto&, const auto& with) {
      return Operation::Get(key, with);
    });
  }
  void AddRemove(CLI::App& app) {
    const auto options = std::make_shared<RemoveOptions>();
    CLI::App* const rm = Add(app, "rm");
    AddCount(*rm, "--if-version", options->if_version, "");
    AddId(*rm, *options);
    OnParsed(rm, options, [](const auto& key, const auto&, const auto& with) {
      return Operation::Remove(key, with);
    });
  }
  void AddContains(CLI::App& app) {
    const auto options = std::make_shared<ContainsOptions>();
    CLI::App* const contains = Add(app, "contains");
    AddPreconditions(*contains, *options);
    OnParsed(contains, options,
             [](const auto& key, const auto&, const auto& with) {
               return Operation::Contains(key, with);
             });
  }
  void AddTouch(CLI::App& app) {
    const auto options = std::make_shared<TouchOptions>();
    CLI::App* const touch = Add(app, "touch");
    AddDuration(*touch, "--ttl", options->ttl, "");
    AddExpireAt(*touch, *options);
    AddCount(*touch, "--if-version", options->if_version, "");
    OnParsed(touch, options,
             [](const auto& key, const auto&, const auto& with) {
               return Operation::Touch(key, with);
             });
  }
  void AddAppend(CLI::App& app) {
    const auto options = std::make_shared<AppendOptions>();
    CLI::App* const append = Add(app, "append");
    append->add_option("value", value_)->required();
    AddDuration(*append, "--ttl", options->ttl, "");
    append->add_flag("--touch", options->touch);
    AddId(*append, *options);
    AddPreconditions(*append, *options);
    OnParsed(append, options, Operation::Append);
  }
  void AddCombine(CLI::App& app) {
    struct Combining {
      int64_t operand = 0;
      bool is_xor = false;
      CombineOptions with;
    };
    const auto options = std::make_shared<Combining>();
    CLI::App* const combine = Add(app, "combine");
    combine->add_option("number", options->operand)->required();
    combine->add_flag("--xor", options->is_xor);
    combine->add_option("--initial", options->with.initial);
    combine->add_flag("--remove-if-zero", options->with.remove_if_zero);
    combine->add_flag("--touch", options->with.touch);
    AddDuration(*combine, "--ttl", options->with.ttl, "");
    AddId(*combine, options->with);
    AddCount(*combine, "--if-version", options->with.if_version, "");
    OnParsed(combine, options,
             [](const auto& key, const auto&, const auto& from) {
               return Operation::Combine(
                   key, from.is_xor ? Combination::kXor : Combination::kAdd,
                   from.operand, from.with);
             });
  }

  const Context& context_;
  std::string key_;
  std::string value_;
  std::function<Operation(const std::string& key, const std::string& value)>
      make_;
};

// The arguments, or the lines of standard input.
absl::StatusOr<std::vector<std::string>> TakeLines(
    const BatchArguments& arguments) {
  if (!arguments.operations.empty()) return arguments.operations;
  std::vector<std::string> lines;
  LineReader reader(STDIN_FILENO);
  std::string line;
  for (;;) {
    switch (reader.Next(line)) {
      case LineReader::Result::kLine:
        if (!absl::StripAsciiWhitespace(line).empty()) lines.push_back(line);
        break;
      case LineReader::Result::kEnd:
        return lines;
      default:
        return absl::InvalidArgumentError("standard input cannot be read");
    }
  }
}

Json ResultJson(const Context& context, const NamedOperation& of,
                OperationResult result) {
  Json object = {{"operation", of.name}};
  SetBytes(object, "key", of.key, context.encodings.key);
  if (!result.status.ok()) {
    Json error = {{"code", absl::StatusCodeToString(result.status.code())}};
    if (const auto reason = ReasonName(result.status)) {
      error["reason"] = *reason;
    }
    error["message"] = context.Explain(result.status);
    object["error"] = error;
    return object;
  }
  if (of.name == "put" || of.name == "append" || of.name == "touch") {
    object["version"] = result.version;
  }
  if (of.name != "put" && of.name != "append" && of.name != "combine") {
    object["found"] = result.found;
  }
  if (of.name == "append") object["value_bytes"] = result.number;
  if (of.name == "combine") object["result"] = result.number;
  if (result.entry) object["entry"] = ToJson(*result.entry, context.encodings);
  return object;
}

std::string ResultText(const Context& context, const NamedOperation& of,
                       const OperationResult& result) {
  if (!result.status.ok()) {
    return absl::StrCat("failed: ", context.Explain(result.status));
  }
  if (of.name == "put") return absl::StrCat("stored, version ", result.version);
  if (of.name == "append") {
    return absl::StrCat("appended, the value has ", result.number,
                        " bytes, version ", result.version);
  }
  if (of.name == "combine") return absl::StrCat(result.number);
  if (of.name == "contains") return result.found ? "yes" : "no";
  if (!result.found) return "not found";
  if (of.name == "rm") return "removed";
  if (result.entry) return ValueText(*result.entry, context.encodings.value);
  return absl::StrCat("touched, version ", result.version);
}

// Of a condition that does not hold, or of an operation beside such a one.
bool IsAnswer(const absl::Status& status) {
  return status.ok() || absl::IsFailedPrecondition(status) ||
         absl::IsAlreadyExists(status) ||
         HasReason(status, ErrorReason::kNotApplied);
}

int RunBatch(const Context& context, const BatchArguments& arguments) {
  const std::vector<std::string> lines = TakeLines(arguments).value();
  std::vector<NamedOperation> operations;
  Batch batch;
  batch.set_atomic(arguments.atomic);
  for (const std::string& line : lines) {
    operations.push_back(OperationParser(context).Parse(line).value());
    batch.Add(operations.back().operation);
  }
  const auto results = context.MakeClient().Execute(batch);
  if (!results.ok()) return context.Fail(results.status());
  int code = kExitDone;
  bool written = true;
  for (size_t i = 0; written && i < results->size(); ++i) {
    const OperationResult& result = (*results)[i];
    if (!IsAnswer(result.status)) {
      code = kExitError;
    } else if (!result.status.ok() && code == kExitDone) {
      code = kExitNotFound;
    }
    const std::string text =
        absl::StrCat(operations[i].name, " ",
                     Encode(operations[i].key, context.encodings.key), ": ",
                     ResultText(context, operations[i], result));
    written = context.json
                  ? WriteJson(ResultJson(context, operations[i], result))
                  : WriteLine(text);
  }
  return written && Flush() ? code : context.FailToWrite();
}

}  // namespace

void AddBatchCommand(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<BatchArguments>();
  CLI::App* batch = app.add_subcommand(
      "batch", "Apply many operations in one request, or all or none of them");
  batch->add_option(
      "operation", arguments->operations,
      "The operations, each one argument, as a command line of "
      "put, get, rm, contains, touch, append or combine; else the "
      "lines of standard input");
  batch->add_flag("--atomic", arguments->atomic,
                  "All or none: at most 128, each on a key of its own");
  batch->footer(
      R"(Prints a line for each operation, in order. contains takes --if-absent,
--if-present and --if-version here: with --atomic, conditions on keys that do
not change. Exits with 1 if a condition does not hold, and with 2 if an
operation fails for another reason.

Examples:
  timecachectl batch 'put a 1 --ttl 5m' 'get b' 'rm c'
  timecachectl batch --atomic 'combine from -- -5' 'combine to 5' \
      'contains closed --if-absent'
  timecachectl batch --atomic 'rm job:7' 'put done:7 ok --if-absent'
  timecachectl batch < operations.txt)");
  OnRun(batch, context, arguments, RunBatch);
}

}  // namespace timecache::cli
