# SPDX-License-Identifier: BSD-3-Clause
# bash completion for quoit. Commands, options and the names behind --workload, --fault, --canary and --model come from the
# program itself, so this file has no list to keep up to date.

# The first words of the help's indented lines, all or those below a heading.
_quoit_words()
{
    "${COMP_WORDS[@]:0:$1}" --help 2>/dev/null | awk -v heading="$2" '
        /^[^ ]/ {is_below = index($0, heading) == 1}
        /^  [^ ]/ && (heading == "" || is_below) {print $1}'
}

_quoit()
{
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} offered=
    if ((COMP_CWORD == 1)); then
        offered=$(_quoit_words 1 commands:)
    else
        case $before in
        --workload | --fault | --canary) offered=$(_quoit_words 2 "$(sed 's/y$/ie/' <<<"${before#--}")s:") ;;
        --model)
            [[ ${COMP_WORDS[1]} == predict ]] && offered=$("${COMP_WORDS[0]}" model list 2>/dev/null | sed 's/ .*//')
            ;;
        --html | --json | --compare | --trace-text | --cc) ;;
        *)
            [[ $word == -* ]] && offered=$(_quoit_words 2 "" | grep '^-')
            [[ ${COMP_WORDS[1]} == @(info|perf) && $word == -* ]] &&
                offered+=" $("$(dirname "$(type -P "${COMP_WORDS[0]}")")/oshrun" --options 2>/dev/null | awk '$1 ~ /^-./ {print $1}')"
            [[ ${COMP_WORDS[1]} == figures && $word != -* ]] && offered=$(_quoit_words 2 figures:)
            [[ ${COMP_WORDS[1]} == explain && $word != -* ]] && offered=$("${COMP_WORDS[0]}" explain 2>/dev/null | sed 's/ .*//')
            [[ ${COMP_WORDS[1]} == info && $word != -* ]] && offered="paths schedules networks"
            ;;
        esac
    fi
    if [[ $offered ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$offered" -- "$word")
    else
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
    fi
}
complete -o filenames -F _quoit quoit
