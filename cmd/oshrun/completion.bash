# SPDX-License-Identifier: BSD-3-Clause
# bash completion for oshrun. The options come from the program itself, so this file has no list to keep up to date.
_oshrun()
{
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} i at_option=1
    # After the program's name its own arguments follow: files, as far as is known.
    for ((i = 1; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
        :) at_option=1 ;;
        -n | -np | -x | --hosts | --wdir | --bind-to | --output | --stats-json | --profile | --trace* | --timeout | --symmetric-size | \
            --lanes | --slots | --chunk | --link-* | --debugger | --window-memory | --*-latency | --fault | --debug) ((i++)) ;;
        -*) ;;
        *) at_option=0 ;;
        esac
    done
    case $before in
    --bind-to) mapfile -t COMPREPLY < <(compgen -W "core none" -- "$word") && return ;;
    --debug) mapfile -t COMPREPLY < <(compgen -W "error warn info debug" -- "$word") && return ;;
    --wdir | --output) mapfile -t COMPREPLY < <(compgen -d -- "$word") && return ;;
    esac
    if ((at_option)) && [[ $word == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$("${COMP_WORDS[0]}" --options 2>/dev/null | awk '$1 ~ /^-./ {print $1}')" \
            -- "$word")
    elif ((at_option)); then
        mapfile -t COMPREPLY < <(compgen -c -- "$word"; compgen -f -- "$word")
    else
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
    fi
}
complete -o filenames -F _oshrun oshrun
