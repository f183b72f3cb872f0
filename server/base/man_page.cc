#include "server/base/man_page.h"

#include <cctype>
#include <sstream>
#include <vector>

namespace timecache {
namespace {

// Escapes a backslash and a line's first dot or quote, which are special in
// troff, and a hyphen, which is not a minus.
std::string Escape(const std::string& text) {
  std::string escaped;
  bool line_start = true;
  for (const char c : text) {
    if (line_start && (c == '.' || c == '\'')) escaped += "\\&";
    if (c == '\\') {
      escaped += "\\e";
    } else if (c == '-') {
      escaped += "\\-";
    } else {
      escaped += c;
    }
    line_start = c == '\n';
  }
  return escaped;
}

std::string UpperCase(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(c));
  return text;
}

std::vector<std::string> LinesOf(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// What a line is that is not indented and ends with a colon.
bool IsHeading(const std::string& line) {
  return line.size() > 1 && line.back() == ':' && line.find(' ') == line.npos;
}

// Verbatim text: indented lines are examples or tables.
void WriteText(const std::string& text, bool headings_are_sections,
               std::ostream& out) {
  bool indented = false;
  for (const std::string& line : LinesOf(text)) {
    const bool now = !line.empty() && line[0] == ' ';
    if (indented && !now) out << ".fi\n.RE\n";
    if (now && !indented) out << ".RS 4\n.nf\n";
    indented = now;
    if (headings_are_sections && IsHeading(line)) {
      out << ".SH " << UpperCase(line.substr(0, line.size() - 1)) << '\n';
    } else if (line.empty()) {
      out << ".PP\n";
    } else {
      out << Escape(now ? line.substr(line.find_first_not_of(' ')) : line)
          << '\n';
    }
  }
  if (indented) out << ".fi\n.RE\n";
}

// Hidden ones are in no group.
std::vector<const CLI::Option*> OptionsOf(const CLI::App& app,
                                          bool positional) {
  return app.get_options([positional](const CLI::Option* option) {
    return !option->get_group().empty() &&
           option->get_positional() == positional;
  });
}

void WriteOption(const CLI::Option& option, std::ostream& out) {
  out << ".TP\n.B " << Escape(option.get_name(option.get_positional(), true));
  if (option.get_items_expected_max() > 0 && !option.get_type_name().empty()) {
    out << " \\fI" << Escape(option.get_type_name()) << "\\fR";
  }
  out << '\n' << Escape(option.get_description()) << '\n';
  if (!option.get_envname().empty()) {
    out << ".br\nEnvironment: \\fB" << Escape(option.get_envname()) << "\\fR\n";
  }
}

void WriteOptions(const CLI::App& app, std::ostream& out) {
  for (const bool positional : {true, false}) {
    for (const CLI::Option* option : OptionsOf(app, positional)) {
      WriteOption(*option, out);
    }
  }
}

void WriteCommand(const CLI::App& command, const std::string& path,
                  std::ostream& out) {
  const auto commands = command.get_subcommands(
      [](const CLI::App* each) { return !each->get_group().empty(); });
  const std::string name =
      path.empty() ? command.get_name() : path + " " + command.get_name();
  if (commands.empty()) {
    out << ".SS " << Escape(name);
    for (const CLI::Option* option : OptionsOf(command, true)) {
      const std::string& type = option->get_name(true);
      out << ' '
          << Escape(option->get_required() ? UpperCase(type)
                                           : "[" + UpperCase(type) + "]");
    }
    out << '\n' << Escape(command.get_description()) << ".\n";
    WriteOptions(command, out);
    if (!command.get_footer().empty()) out << ".PP\n";
    WriteText(command.get_footer(), false, out);
  }
  for (const CLI::App* each : commands) WriteCommand(*each, name, out);
}

}  // namespace

std::string WriteManPage(const ManPage& page, const CLI::App& app) {
  std::ostringstream out;
  out << ".TH " << UpperCase(page.name) << ' ' << page.section << " \"\" \""
      << "timecached " << page.version << "\" \"timecached\"\n"
      << ".SH NAME\n"
      << page.name << " \\- " << Escape(page.summary) << '\n'
      << ".SH SYNOPSIS\n.B " << page.name << "\n[\\fIflags\\fR]";
  const auto commands = app.get_subcommands(
      [](const CLI::App* each) { return !each->get_group().empty(); });
  if (!commands.empty()) out << " \\fIcommand\\fR [\\fIarguments\\fR]";
  out << "\n.SH DESCRIPTION\n";
  WriteText(app.get_description(), false, out);
  out << ".SH FLAGS\n";
  WriteOptions(app, out);
  if (!commands.empty()) out << ".SH COMMANDS\n";
  for (const CLI::App* command : commands) WriteCommand(*command, "", out);
  out << ".SH NOTES\n";
  WriteText(app.get_footer(), true, out);
  out << ".SH SEE ALSO\n" << Escape(page.see_also) << '\n';
  return out.str();
}

}  // namespace timecache
