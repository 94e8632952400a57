#compdef oshrun
# SPDX-License-Identifier: BSD-3-Clause
# zsh completion for oshrun. The options come from the program's own help, so this file has no list to keep up to date.

local line switch placeholder sentence action
local -a specs
integer colon=${words[(I):]}

# Behind a colon options begin again.
if ((colon > 1 && colon < CURRENT)); then
    words=("$words[1]" "${(@)words[colon + 1,-1]}")
    ((CURRENT -= colon - 1))
fi

# "  --hosts H                      number of hosts"
for line in ${(f)"$(_call_program options ${(q)words[1]} --help 2>/dev/null)"}; do
    [[ $line == '  -'* ]] || continue
    switch=${${=line}[1]}
    [[ $switch == -- ]] && continue
    placeholder=${${(s:  :)line[3,-1]}[1]#$switch}
    placeholder=${placeholder# }
    sentence=${line#*[^ ]  }
    sentence=${${sentence##[ ]##}//(#m)[\[\]:\\]/\\$MATCH}
    case $placeholder in
    '') action='' ;;
    *'|'*) action=":value:(${placeholder//|/ })" ;;
    FILE) action=':file:_files' ;;
    DIR) action=':folder:_files -/' ;;
    LEVEL) action=':level:(error warn info debug)' ;;
    *) action=":${placeholder//:/\\:}: " ;;
    esac
    specs+=("*${switch}[$sentence]$action")
done

_arguments -S "${specs[@]}" '(-):program:_command_names -e' '*::argument:_normal'
