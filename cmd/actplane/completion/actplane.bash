# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Completion of actplane for bash: source <(actplane completion bash), or write it
# to /etc/bash_completion.d/actplane.

_actplane() {
  local current=${COMP_WORDS[COMP_CWORD]} line i words=()
  # bash takes --flag=value for three words.
  for ((i = 1; i <= COMP_CWORD; i++)); do
    if ((i > 1)) && [[ ${COMP_WORDS[i]} == = || ${COMP_WORDS[i - 1]} == = && ${words[-1]} == --*= ]]; then
      words[-1]+=${COMP_WORDS[i]}
    else
      words+=("${COMP_WORDS[i]}")
    fi
  done
  [[ $current != = ]] || current=
  COMPREPLY=()
  # Names of files are bash's own business, and only where they are wanted.
  compopt +o bashdefault +o default
  while IFS= read -r line; do
    case $line in
      :files) compopt -o bashdefault -o default ;;
      :directories) compopt -o dirnames ;;
      :commands) mapfile -t COMPREPLY < <(compgen -c -- "$current") ;;
      *)
        line=${line%%$'\t'*}
        [[ ${words[-1]} != --*=* ]] || line=${line#*=}
        COMPREPLY+=("$line")
        ;;
    esac
  done < <(command actplane complete-words "${words[@]}" 2> /dev/null)
}

complete -o bashdefault -o default -F _actplane actplane
