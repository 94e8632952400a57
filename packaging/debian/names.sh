# SPDX-License-Identifier: BSD-3-Clause
# The start of scripts of the packages that have programs whose names Open MPI has too. Its files are links, which
# update-alternatives would take for its own, and replace or remove.
names="@NAMES@"

withdraw() {
    update-alternatives --query "$1" >/dev/null 2>&1 || return 0
    for link in "/usr/bin/$1" "/usr/share/man/man1/$1.1.gz"; do
        case $(readlink "$link") in
        /etc/alternatives/* | "") ;;
        *) mv "$link" "$link.quoit-kept" ;;
        esac
    done
    update-alternatives --quiet --remove "$1" "/usr/bin/$1.quoit"
    for link in "/usr/bin/$1" "/usr/share/man/man1/$1.1.gz"; do
        [ ! -L "$link.quoit-kept" ] || mv "$link.quoit-kept" "$link"
    done
}
