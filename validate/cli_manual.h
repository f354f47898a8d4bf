// The command line described: --help, the man page and the completions of shells, written from the tree that parses.
#pragma once
#include <memory>
#include <string>
#include <vector>

namespace CLI {
class App;
class FormatterBase;
}  // namespace CLI

namespace deltagauge::validate::cli {

// One subcommand, as a reader sees it.
struct Flag {
  std::vector<std::string> names;  // -h --help; of a positional its one name
  std::string type, text;          // type: of the value, empty when there is none
  std::string heading;
  bool positional = false, required = false, repeated = false;
};
struct Command {
  std::string path;  // the words after deltagauge, empty at the top
  std::string text;
  std::vector<std::string> examples;
  std::vector<Flag> flags;
  std::vector<Command> commands;
};
Command describe(const CLI::App& app);
std::string usage(const Command& command);  // deltagauge report diff [OPTIONS] FILES...

// Headings of a command's flags in the order they first appear; that of --help comes last.
std::vector<std::string> headings(const Command& command);
std::string shown(const Flag& flag);  // "-h, --help", "--json FILE", "CONFIG..."

std::string help(const Command& command, int width);
std::string man_page(const Command& top);
std::string bash_completion(const Command& top);
std::string zsh_completion(const Command& top);
std::string fish_completion(const Command& top);

std::shared_ptr<CLI::FormatterBase> help_formatter();
// The hidden subcommand: deltagauge manual man|bash|zsh|fish.
void add_manual(CLI::App& top, int& status);

}  // namespace deltagauge::validate::cli
