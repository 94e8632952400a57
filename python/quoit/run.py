# SPDX-License-Identifier: BSD-3-Clause
"""python -m quoit.run [OPTIONS OF oshrun] program.py [ARGUMENTS]: a Python program on the PEs of a job.

Imported, this module is the function quoit.run, so that `import quoit.run` does not hide it."""
import os
import sys

USAGE = """usage: python -m quoit.run [OPTION]... PROGRAM.py [ARGUMENT]...
       python -m quoit.run [OPTION]... -m MODULE [ARGUMENT]...

Runs a Python program on the PEs of a job. Options are those of oshrun, such as -n 4, --hosts 3 or --check; oshrun --help
and man oshrun list them.
"""


def main(words):
    from quoit._launch import child_environment, find_oshrun
    program = next((i for i, word in enumerate(words) if word.endswith(".py") or word == "-m"), None)
    if program is None:
        if words[:1] in (["-h"], ["--help"]):
            sys.stdout.write(USAGE)
            return 0
        sys.stderr.write(USAGE)
        return 2
    if words[program] != "-m" and not os.path.exists(words[program]):
        sys.stderr.write(f"quoit.run: there is no file {words[program]}\n")
        return 127
    oshrun = find_oshrun()
    os.execve(oshrun, [oshrun, *words[:program], sys.executable, *words[program:]], child_environment())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
else:
    from quoit._launch import run
    sys.modules[__name__] = run
