# SPDX-License-Identifier: BSD-3-Clause
"""%%quoit: a notebook's cell on the PEs of a job. Loaded by %load_ext quoit."""
from __future__ import annotations

import argparse
import ast
import functools
import linecache
import shlex
import sys
import types
from typing import Any, Optional

from ._launch import run


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        from IPython.core.error import UsageError  # shown without a traceback
        raise UsageError(f"%%quoit: {message}\n{self.format_usage()}")


def _parse(line: str) -> argparse.Namespace:
    parser = _Parser(prog="%%quoit", add_help=False)
    parser.add_argument("-n", dest="pes", type=int, default=2, metavar="PES")
    parser.add_argument("--hosts", type=int, default=1)
    parser.add_argument("--network")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--live", action="store_true", help="output of all PEs as it comes")
    parser.add_argument("--timeout", type=float, metavar="SECONDS")
    parser.add_argument("--to", metavar="NAME", help="variable that gets the list")
    return parser.parse_args(shlex.split(line))


def function_of(cell: str, variables: dict) -> types.FunctionType:
    """The cell as a function that returns the value of its last line, if that is an expression. It knows quoit by itself."""
    name = f"<quoit cell {abs(hash(cell)):x}>"
    linecache.cache[name] = (len(cell), None, cell.splitlines(True), name)
    tree = ast.parse(cell, name)
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        tree.body[-1] = ast.copy_location(ast.Return(tree.body[-1].value), tree.body[-1])
    # Global, as in a cell: functions that the cell defines see its variables.
    made = ast.parse("def cell(): pass", name)
    assigned = sorted({node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)} |
                      {node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))} |
                      {alias.asname or alias.name.split(".")[0] for node in ast.walk(tree)
                       if isinstance(node, (ast.Import, ast.ImportFrom)) for alias in node.names})
    made.body[0].body = ([ast.Global(assigned)] if assigned else []) + (tree.body or [ast.Pass()])
    space = {"quoit": sys.modules[__package__], **variables, "__name__": "__main__"}
    exec(compile(ast.fix_missing_locations(made), name, "exec"), space)
    return space["cell"]


def magic(shell: Any, line: str, cell: str) -> Optional[list]:
    """Runs the cell on each PE: %%quoit -n 4 --hosts 2 --to results. Variables of the notebook that the cell names are copied to
    the PEs; what it assigns stays there. Its value, or the variable --to, is the list of the values of its last line."""
    __tracebackhide__ = True  # IPython's tracebacks go from the user's cell to what the PEs raised
    options = _parse(line)
    found = run(function_of(cell, shell.user_ns), pes=options.pes, hosts=options.hosts, network=options.network,
                check=options.check, timeout=options.timeout, output="live" if options.live else "order")
    if options.to:
        shell.user_ns[options.to] = found
        return None
    return found if any(value is not None for value in found) else None


def load_ipython_extension(shell: Any) -> None:
    """%load_ext quoit: adds the cell magic %%quoit to the notebook or IPython shell."""
    bound = functools.partial(magic, shell)
    bound.__doc__ = magic.__doc__  # for %%quoit?
    shell.register_magic_function(bound, "cell", "quoit")
