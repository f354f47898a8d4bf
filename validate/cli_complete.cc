// Completions of deltagauge for bash, zsh and fish. Names of backends, checks and the like are asked of the binary itself
// when a word is completed, so that they are those of the build at hand.
#include <algorithm>
#include <functional>

#include "validate/cli_manual.h"

namespace deltagauge::validate::cli {
namespace {

// Values of a type that deltagauge lists: the list, and what sed makes of it (the first line is the heading).
struct Listed {
  std::string_view type, list, edit;
};
constexpr std::string_view kFirstWord = "1d;s/ .*//";
constexpr Listed kListed[] = {{"BACKENDS", "backends", kFirstWord},
                              {"BACKEND", "backends", kFirstWord},
                              {"CHECK", "checks", kFirstWord},
                              {"OP", "ops", kFirstWord},
                              {"STAGING", "stagings", kFirstWord},
                              {"AXIS=VALUE", "axes", "1d;s/ .*/=/"},
                              {"AXIS=VALUE", "regimes", "1d;s/  */=/;s/ .*//;s/=[A-Z]$/=/"}};

// "deltagauge list A | sed ...; deltagauge list B | sed ...", the program spelled as given; empty for other types.
std::string listing(const std::string& type, const std::string& program) {
  std::string text;
  for (const Listed& l : kListed)
    if (l.type == type)
      text += (text.empty() ? "" : "; ") + program + " list " + std::string(l.list) + " 2>/dev/null | sed '" +
              std::string(l.edit) + "'";
  return text;
}

bool is_choice(const std::string& type) { return type.starts_with('{'); }
std::string choices(std::string type) {  // {a,b} as "a b"
  std::erase_if(type, [](char c) { return c == '{' || c == '}'; });
  std::replace(type.begin(), type.end(), ',', ' ');
  return type;
}

void every(const Command& command, const std::function<void(const Command&)>& visit) {
  visit(command);
  for (const Command& inner : command.commands) every(inner, visit);
}

std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}
std::string fish_quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return out + "'";
}

std::string last_word(const Command& command) { return command.path.substr(command.path.rfind(' ') + 1); }

std::string positional_type(const Command& command) {
  for (const Flag& flag : command.flags)
    if (flag.positional) return flag.type;
  return "";
}

constexpr std::string_view kBash = R"sh(
# Fills COMPREPLY: words from stdin that begin with $1.
_deltagauge_matching() {
  local word
  while IFS= read -r word; do
    [[ $word == "$1"* ]] && COMPREPLY+=("$word")
  done
}

_deltagauge() {
  local program=${1/#\~/$HOME} words=() word glue= i
  # Words as typed: readline also breaks them at = and :
  for ((i = 1; i <= COMP_CWORD; ++i)); do
    word=${COMP_WORDS[i]}
    if [[ ${#words[@]} -gt 0 && ($glue || $word == [=:]*) ]]; then words[-1]+=$word; else words+=("$word"); fi
    glue=
    [[ $word == *[=:] ]] && glue=1
  done
  local current=${words[-1]} path= flags= commands= plain= value=
  _deltagauge_at ''
  for word in "${words[@]::${#words[@]}-1}"; do
    [[ " $commands " == *" $word "* ]] && path+=${path:+ }$word && _deltagauge_at "$path"
  done

  COMPREPLY=()
  local kind=$plain before= part=$current
  if [[ ${#words[@]} -gt 1 ]]; then
    _deltagauge_value "$path" "${words[-2]}"
    kind=${value:-$plain}
  fi
  if [[ -z $value && $current == --*=* ]]; then
    _deltagauge_value "$path" "${current%%=*}"
    kind=$value before=${current%%=*}= part=${current#*=}
  elif [[ -z $value && $current == -* ]]; then
    _deltagauge_matching "$part" < <(printf '%s\n' $flags)
    return
  elif [[ -n $commands ]]; then
    _deltagauge_matching "$part" < <(printf '%s\n' $commands)
    return
  fi
  if [[ $kind == BACKENDS && $part == *,* ]]; then before+=${part%,*}, part=${part##*,}; fi
  case $kind in
    FILE) compopt -o filenames 2>/dev/null; _deltagauge_matching "" < <(compgen -f -- "$part") ;;
    CONFIG) compopt -o filenames 2>/dev/null
      _deltagauge_matching "" < <(compgen -d -- "$part"; compgen -f -X '!*.json' -- "$part") ;;
    DIR) compopt -o filenames 2>/dev/null; _deltagauge_matching "" < <(compgen -d -- "$part") ;;
    *) _deltagauge_matching "$part" < <(_deltagauge_words "$kind") ;;
  esac
  # readline keeps what stands before the last = or : where it breaks words
  local whole cut=
  [[ $COMP_WORDBREAKS == *=* && $current == *[=:]* ]] && cut=${current%"${current##*[=:]}"}
  for i in "${!COMPREPLY[@]}"; do
    whole=$before${COMPREPLY[i]}
    COMPREPLY[i]=${whole#"$cut"}
  done
  [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
  return 0
}
complete -F _deltagauge deltagauge
)sh";

constexpr std::string_view kZsh = R"sh(
# Completes a subcommand's name, then what belongs to it. usage: _deltagauge_inner PATH NAME:TEXT...
# The array flags and the scalar program are the caller's.
_deltagauge_inner() {
  local state line where=$1
  shift
  local -a commands=("$@")
  _arguments -C $flags '1: :->command' '*:: :->rest'
  case $state in
    command) _describe -t commands subcommand commands ;;
    rest) (( $+functions[_deltagauge_${where}${words[1]}] )) && _deltagauge_${where}${words[1]} ;;
  esac
}
# Words from stdin; the part after the last comma is completed, and a word that ends with = gets no blank.
_deltagauge_add() {
  local -a found=(${(f)"$(cat)"})
  compset -P '*,'
  compadd -S '' -- ${(M)found:#*=}
  compadd -- ${found:#*=}
}
)sh";

std::string zsh_text(std::string text) {
  std::string out;
  for (const char c : text) out += (c == '[' || c == ']' || c == ':' || c == '\\' ? "\\" : "") + std::string(1, c);
  return out;
}

std::string zsh_action(const std::string& type) {
  if (type == "FILE") return "_files";
  if (type == "CONFIG") return "_files -g \"*.json\"";
  if (type == "DIR") return "_directories";
  if (is_choice(type)) return "(" + choices(type) + ")";
  if (!listing(type, "").empty()) return "_deltagauge_" + type.substr(0, type.find('='));
  return " ";
}

std::string zsh_flag(const Flag& flag) {
  const std::string value = flag.type.empty() ? "" : ":" + zsh_text(flag.type) + ":" + zsh_action(flag.type);
  if (flag.positional)
    return quoted((flag.repeated ? "*" : "") + std::string(":") + zsh_text(flag.text) + ":" + zsh_action(flag.type));
  if (flag.names.size() == 2)
    return "'(" + flag.names[0] + " " + flag.names[1] + ")'{" + flag.names[0] + "," + flag.names[1] + "}" +
           quoted("[" + zsh_text(flag.text) + "]" + value);
  return quoted((flag.repeated ? "*" : "") + flag.names[0] + "[" + zsh_text(flag.text) + "]" + value);
}

constexpr std::string_view kFish = R"sh(
function __deltagauge_at -d 'whether the subcommands typed are these'
    set -l path
    for word in (commandline -opc)[2..-1]
        if contains -- (string trim -- "$path $word") $__deltagauge_paths
            set path (string trim -- "$path $word")
        end
    end
    test "$path" = "$argv"
end
complete -c deltagauge -f
)sh";

std::string fish_value(const std::string& type) {
  if (type == "FILE") return " -r -F";
  if (type == "CONFIG") return " -r -k -a '(__fish_complete_suffix .json)'";
  if (type == "DIR") return " -x -a '(__fish_complete_directories)'";
  if (is_choice(type)) return " -x -a " + fish_quoted(choices(type));
  const std::string list = listing(type, "");
  if (list.empty()) return " -x";
  const std::string function = "__deltagauge_" + type.substr(0, type.find('='));
  return " -x -a '(" + (type == "BACKENDS" ? "__fish_complete_list , " : std::string()) + function + ")'";
}

}  // namespace

std::string bash_completion(const Command& top) {
  std::string at, values, words;
  every(top, [&](const Command& command) {
    std::string flags, commands;
    for (const Flag& flag : command.flags)
      for (const std::string& name : flag.names) {
        if (flag.positional) continue;
        flags += (flags.empty() ? "" : " ") + name;
        if (!flag.type.empty())
          values += "    " + quoted(command.path + " " + name) + ") value=" + quoted(flag.type) + " ;;\n";
      }
    for (const Command& inner : command.commands) commands += (commands.empty() ? "" : " ") + last_word(inner);
    at += "    " + quoted(command.path) + ") flags=" + quoted(flags) + " commands=" + quoted(commands) +
          " plain=" + quoted(positional_type(command)) + " ;;\n";
  });
  for (const Listed& l : kListed) {
    const std::string label = "    " + quoted(std::string(l.type)) + ") ";
    if (words.find(label) == words.npos) words += label + listing(std::string(l.type), "\"$program\"") + " ;;\n";
  }
  return "# bash completion for deltagauge. Written by: deltagauge manual bash\n"
         "# What may stand after a subcommand: flags, subcommands, the type of words that are neither.\n"
         "_deltagauge_at() {\n  case $1 in\n" +
         at +
         "  esac\n}\n"
         "# The type of a flag's value; empty when it takes none.\n"
         "_deltagauge_value() {\n  value=\n  case \"$1 $2\" in\n" +
         values +
         "  esac\n}\n"
         "# The words of a type.\n_deltagauge_words() {\n  case $1 in\n" +
         words + "    '{'*) tr -d '{}' <<<\"$1\" | tr , '\\n' ;;\n  esac\n}\n" + std::string(kBash.substr(1));
}

std::string zsh_completion(const Command& top) {
  std::string text = "#compdef deltagauge\n# zsh completion for deltagauge. Written by: deltagauge manual zsh\n";
  text += kZsh;
  for (const Listed& l : kListed) {
    const std::string type(l.type), name = "_deltagauge_" + type.substr(0, type.find('=')) + "()";
    if (text.find("\n" + name) == text.npos) text += name + " { (" + listing(type, "$program") + ") | _deltagauge_add; }\n";
  }
  every(top, [&](const Command& command) {
    std::string name = command.path.empty() ? "" : "_" + command.path;
    std::replace(name.begin(), name.end(), ' ', '_');
    text += "\n_deltagauge" + name + "() {\n";
    if (command.commands.empty()) {
      text += "  _arguments";
      for (const Flag& flag : command.flags) text += " \\\n    " + zsh_flag(flag);
    } else {
      if (command.path.empty()) text += "  local program=$words[1]\n";
      text += "  local -a flags=(";
      for (const Flag& flag : command.flags) text += " " + zsh_flag(flag);
      text += ")\n  _deltagauge_inner '" + (name.empty() ? "" : name.substr(1) + "_") + "'";
      for (const Command& inner : command.commands)
        text += " \\\n    " + quoted(last_word(inner) + ":" + zsh_text(inner.text));
    }
    text += "\n}\n";
  });
  return text + "\n_deltagauge \"$@\"\n";
}

std::string fish_completion(const Command& top) {
  std::string paths, lines, lists;
  every(top, [&](const Command& command) {
    if (!command.path.empty()) paths += " " + fish_quoted(command.path);
    const std::string start =
        "complete -c deltagauge -n '__deltagauge_at" + (command.path.empty() ? "" : " " + command.path) + "'";
    for (const Command& inner : command.commands)
      lines += start + " -a " + last_word(inner) + " -d " + fish_quoted(inner.text) + "\n";
    for (const Flag& flag : command.flags) {
      lines += start;
      for (const std::string& name : flag.names)
        if (!flag.positional) lines += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      std::string value = flag.type.empty() ? "" : fish_value(flag.type);
      if (flag.positional && value.starts_with(" -r ")) value = value.substr(3);
      if (flag.positional && value.starts_with(" -x")) value = value.substr(3);
      lines += value + " -d " + fish_quoted(flag.text) + "\n";
    }
  });
  for (const Listed& l : kListed) {
    const std::string type(l.type), name = "function __deltagauge_" + type.substr(0, type.find('='));
    if (lists.find(name + "\n") == lists.npos)
      lists += name + "\n    set -l program (commandline -opc)[1]\n    " + listing(type, "$program") + "\nend\n";
  }
  return "# fish completion for deltagauge. Written by: deltagauge manual fish\nset -g __deltagauge_paths" + paths +
         std::string(kFish) + lists + lines;
}

}  // namespace deltagauge::validate::cli
