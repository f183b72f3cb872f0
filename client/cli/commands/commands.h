// The families of commands. Each adds its commands to `app`; the one that is
// named on the command line sets context.command. Both must outlive the run.

#ifndef TIMECACHED_CLIENT_CLI_COMMANDS_COMMANDS_H_
#define TIMECACHED_CLIENT_CLI_COMMANDS_COMMANDS_H_

#include <optional>
#include <string>

#include "CLI/CLI.hpp"
#include "client/cli/context.h"
#include "timecache/group_position.h"

namespace timecache::cli {

void AddPutCommand(CLI::App& app, Context& context);
void AddGetCommand(CLI::App& app, Context& context);
void AddRemoveCommand(CLI::App& app, Context& context);
void AddBatchCommand(CLI::App& app, Context& context);
// append, combine, gather
void AddChangeCommands(CLI::App& app, Context& context);
// All of these, and contains, size, touch.
void AddDataCommands(CLI::App& app, Context& context);
void AddScanCommand(CLI::App& app, Context& context);
void AddDumpCommand(CLI::App& app, Context& context);
void AddWatchCommand(CLI::App& app, Context& context);
void AddFetchCommand(CLI::App& app, Context& context);
void AddLoadCommand(CLI::App& app, Context& context);
void AddBenchCommand(CLI::App& app, Context& context);
// help, version
void AddHelpCommands(CLI::App& app, Context& context);
void AddCompletionCommand(CLI::App& app, Context& context);
// Does what the first argument names and no user calls; else nothing.
std::optional<int> RunHiddenCommand(CLI::App& app, Context& context, int argc,
                                    const char* const* argv);
void AddHealthCommand(CLI::App& app, Context& context);
// status, top
void AddStatusCommands(CLI::App& app, Context& context);
void AddTokenCommand(CLI::App& app, Context& context);
void AddBackupCommand(CLI::App& app, Context& context);
// journal check, salvage, restore
void AddJournalCommand(CLI::App& app, Context& context);
// ns create, get, list, update, delete, rotate
void AddNamespaceCommands(CLI::App& app, Context& context);
// ns groups, group-create, group-get, group-update, group-members, group-delete:
// below `ns`.
void AddGroupCommands(CLI::App& ns, Context& context);
// group-seek, group-unsettled, group-settle: below `ns`, too.
void AddGroupEventCommands(CLI::App& ns, Context& context);
// --earliest, --time, --token, with `from` behind the dashes.
void AddPositionFlags(CLI::App& app, GroupPosition& position,
                      const std::string& from);

// whoami, clients, slow, tail
void AddOperatorCommands(CLI::App& app, Context& context);
// contexts add, use, remove, list
void AddContextsCommands(CLI::App& app, Context& context);
// shell
void AddInteractiveCommand(CLI::App& app, Context& context);
void AddBigCommand(CLI::App& app, Context& context);
void AddDeathsCommand(CLI::App& app, Context& context);
void AddHotCommand(CLI::App& app, Context& context);
// dead list, show, return, drop
void AddDeadCommands(CLI::App& app, Context& context);
// cluster status, handover
void AddClusterCommands(CLI::App& app, Context& context);
void AddConsoleCommand(CLI::App& app, Context& context);
// clock now, advance
void AddClockCommands(CLI::App& app, Context& context);

}  // namespace timecache::cli

#endif  // TIMECACHED_CLIENT_CLI_COMMANDS_COMMANDS_H_
