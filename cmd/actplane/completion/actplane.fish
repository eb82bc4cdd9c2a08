# SPDX-License-Identifier: Apache-2.0
#
# Completion of actplane for fish: actplane completion fish | source, or write it to
# ~/.config/fish/completions/actplane.fish.

function __actplane_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    # A path behind --flag= is completed with that before it.
    set -l before (string match -r -- '^--[^=]*=' $current)
    set -l path (string replace -r -- '^--[^=]*=' '' $current)
    for line in (command actplane complete-words $words[2..-1] $current 2>/dev/null)
        switch $line
            case :files
                printf "$before%s\n" (__fish_complete_path $path)
            case :directories
                printf "$before%s\n" (__fish_complete_directories $path '')
            case :commands
                __fish_complete_subcommand --commandline $current 2>/dev/null; or complete -C $current
            case '*'
                echo $line
        end
    end
end

complete -c actplane -f -a '(__actplane_complete)'
