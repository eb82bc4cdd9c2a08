#compdef actplane
# SPDX-License-Identifier: Apache-2.0
#
# Completion of actplane for zsh: source <(actplane completion zsh) behind compinit,
# or write it to a folder of $fpath as _actplane.

_actplane() {
  local line
  local -a found
  for line in "${(@f)$(command actplane complete-words "${(@Q)words[2,CURRENT]}" 2> /dev/null)}"; do
    case $line in
      :files) [[ $PREFIX != --*=* ]] || compset -P '*='; _files ;;
      :directories) [[ $PREFIX != --*=* ]] || compset -P '*='; _files -/ ;;
      :commands) _command_names -e || _files ;;
      ?*) found+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}") ;;
    esac
  done
  ((! ${#found})) || _describe actplane found
}

if [[ ${funcstack[1]} == _actplane ]]; then
  _actplane "$@"
else
  compdef _actplane actplane
fi
