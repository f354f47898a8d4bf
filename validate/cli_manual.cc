#include "validate/cli_manual.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <sstream>

#include "core/error.h"
#include "reports/build_info.h"
#include "validate/cli_flags.h"
#include "validate/cli_output.h"

namespace deltagauge::validate::cli {
namespace {

constexpr int kColumn = 26;      // where the text of a flag starts
constexpr int kWidest = 125;     // lines longer than this are hard to read
constexpr int kUnlimited = 100;  // width when stdout is no terminal

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, at);) parts.push_back(part);
  return parts;
}

// Words in lines of at most width, the lines after the first indented; end closes every line but the last.
std::string wrapped(const std::string& text, int width, int indent, const std::string& end = "") {
  std::string out;
  int column = indent;
  for (const std::string& word : split(text, ' ')) {
    const int size = static_cast<int>(word.size());
    if (column > indent && column + 1 + size + static_cast<int>(end.size()) > width) {
      out += end + "\n" + std::string(static_cast<std::size_t>(indent), ' ');
      column = indent;
    }
    out += (column > indent ? " " : "") + word;
    column += (column > indent) + size;
  }
  return out;
}

std::string row(const std::string& left, const std::string& text, int width) {
  std::string line = "  " + left;
  const bool fits = line.size() + 2 <= kColumn;
  line += fits ? std::string(kColumn - line.size(), ' ') : "\n" + std::string(kColumn, ' ');
  return line + wrapped(text, width, kColumn) + "\n";
}

std::string last_word(const Command& command) { return command.path.substr(command.path.rfind(' ') + 1); }

class HelpFormatter : public CLI::FormatterBase {
 public:
  std::string make_help(const CLI::App* app, std::string, CLI::AppFormatMode) const override {
    const int width = stdout_style().width;
    return help(describe(*app), width ? std::min(width, kWidest) : kUnlimited);
  }
};

std::string path_of(const CLI::App& app) {
  const CLI::App* parent = app.get_parent();
  if (!parent) return "";
  const std::string before = path_of(*parent);
  return before + (before.empty() ? "" : " ") + app.get_name();
}

Flag flag_of(const CLI::Option& option) {
  Flag flag;
  flag.text = option.get_description();
  flag.heading = option.get_group();
  flag.positional = option.get_positional();
  flag.required = option.get_required();
  const std::string type = option.get_type_name();  // CLI11 adds ":" and the names of checks
  if (option.get_items_expected_max() > 0) flag.type = type.substr(0, type.find(':'));
  flag.repeated = option.get_items_expected_max() > 1;
  if (flag.positional) flag.names = {option.get_name(true)};
  for (const std::string& name : option.get_snames()) flag.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) flag.names.push_back("--" + name);
  return flag;
}

// Text of a man page: escaped, and no line that groff would take for a request.
std::string roff(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else if (c == '\'')
      out += "\\(aq";
    else if (c == '^')
      out += "\\(ha";
    else if (c == '~')
      out += "\\(ti";
    else if (c == '`')
      out += "\\(ga";
    else
      out += c;
  }
  return out.starts_with('.') ? "\\&" + out : out;
}

std::string man_entry(const std::string& name, const std::string& text) {
  return ".TP\n\\fB" + roff(name) + "\\fR\n" + roff(text) + "\n";
}

std::string man_command(const Command& command) {
  std::string text = ".SS " + roff("deltagauge " + command.path) + "\n" + roff(command.text) + ".\n";
  text += ".PP\n" + roff(usage(command)) + "\n";
  for (const std::string& heading : headings(command)) {
    text += ".PP\n" + roff(heading) + ":\n";
    for (const Flag& flag : command.flags)
      if (flag.heading == heading) text += man_entry(shown(flag), flag.text);
  }
  for (const std::string& example : command.examples) text += ".PP\n.EX\n" + roff(example) + "\n.EE\n";
  for (const Command& inner : command.commands) text += man_command(inner);
  return text;
}

}  // namespace

Command describe(const CLI::App& app) {
  Command command{path_of(app), app.get_description(), split(app.get_footer(), '\n'), {}, {}};
  for (const CLI::Option* option : app.get_options())
    if (!option->get_group().empty()) command.flags.push_back(flag_of(*option));
  for (const CLI::App* inner : app.get_subcommands({}))
    if (!inner->get_group().empty()) command.commands.push_back(describe(*inner));
  return command;
}

std::string usage(const Command& command) {
  std::string text = "deltagauge" + (command.path.empty() ? "" : " " + command.path) + " [OPTIONS]";
  for (const Flag& flag : command.flags)
    if (flag.positional) text += flag.required ? " " + shown(flag) : " [" + shown(flag) + "]";
  for (const Flag& flag : command.flags)
    if (!flag.positional && flag.required) text += " " + shown(flag);
  return text + (command.commands.empty() ? "" : " SUBCOMMAND");
}

std::vector<std::string> headings(const Command& command) {
  std::vector<std::string> all;
  for (const Flag& flag : command.flags)
    if (std::find(all.begin(), all.end(), flag.heading) == all.end()) all.push_back(flag.heading);
  if (!all.empty()) std::rotate(all.begin(), all.begin() + 1, all.end());  // CLI11 puts --help first
  return all;
}

std::string shown(const Flag& flag) {
  std::string text;
  for (const std::string& name : flag.names) text += (text.empty() ? "" : ", ") + name;
  if (flag.positional) return text + (flag.repeated ? "..." : "");
  return text + (flag.type.empty() ? "" : " " + flag.type);
}

std::string help(const Command& command, int width) {
  std::string text = wrapped(command.text, width, 0) + "\n\nUsage: " + wrapped(usage(command), width, 7) + "\n";
  if (!command.commands.empty()) {
    text += "\nSubcommands:\n";
    for (const Command& inner : command.commands) text += row(last_word(inner), inner.text, width);
  }
  for (const std::string& heading : headings(command)) {
    text += "\n" + heading + ":\n";
    for (const Flag& flag : command.flags)
      if (flag.heading == heading) text += row(shown(flag), flag.text, width);
  }
  text += "\nExamples:\n";
  for (const std::string& example : command.examples) text += "  " + wrapped(example, width, 4, " \\") + "\n";
  if (!command.path.empty()) return text;
  text += "\nExit status:\n";
  for (const Meaning& status : exit_statuses()) text += row(std::string(status.name), std::string(status.text), width);
  text += "\nEnvironment:\n";
  for (const Meaning& name : environment()) text += row(std::string(name.name), std::string(name.text), width);
  return text + "\ndeltagauge SUBCOMMAND --help says more.\n";
}

std::string man_page(const Command& top) {
  const std::string version = reports::this_tool().version;
  std::string text =
      ".\\\" Written by: deltagauge manual man\n.TH DELTAGAUGE 1 \"\" \"deltagauge " + roff(version) +
      "\" \"User Commands\"\n.SH NAME\ndeltagauge \\- judge and time delta\\-rule linear attention kernels\n" +
      ".SH SYNOPSIS\n";
  for (const Command& command : top.commands) text += roff(usage(command)) + "\n.br\n";
  text += "deltagauge \\-\\-version\n.SH DESCRIPTION\n" + roff(top.text) + ".\n.SH OPTIONS\n";
  for (const Flag& flag : top.flags) text += man_entry(shown(flag), flag.text);
  text += ".SH SUBCOMMANDS\n";
  for (const Command& command : top.commands) text += man_command(command);
  text += ".SH EXIT STATUS\n";
  for (const Meaning& status : exit_statuses()) text += man_entry(std::string(status.name), std::string(status.text));
  text += ".SH ENVIRONMENT\n";
  for (const Meaning& name : environment()) text += man_entry(std::string(name.name), std::string(name.text));
  text += ".SH EXAMPLES\n";
  for (const std::string& example : top.examples) text += ".PP\n.EX\n" + roff(example) + "\n.EE\n";
  return text;
}

std::shared_ptr<CLI::FormatterBase> help_formatter() { return std::make_shared<HelpFormatter>(); }

void add_manual(CLI::App& top, int& status) {
  CLI::App& app = *top.add_subcommand("manual", "the man page, or a shell's completions, on stdout")->group("");
  app.footer("deltagauge manual man\ndeltagauge manual bash");
  const auto add = [&](const char* name, const char* text, std::string (*write)(const Command&)) {
    CLI::App* inner = app.add_subcommand(name, text)->group("Subcommands");
    inner->footer("deltagauge manual " + std::string(name));
    inner->callback([&top, &status, write] {
      std::cout << write(describe(top));
      status = 0;
    });
  };
  app.require_subcommand(1);
  add("man", "the man page", man_page);
  add("bash", "completion for bash", bash_completion);
  add("zsh", "completion for zsh", zsh_completion);
  add("fish", "completion for fish", fish_completion);
}

}  // namespace deltagauge::validate::cli
