# SPDX-License-Identifier: BSD-3-Clause
"""A PE of quoit.run: python -m quoit._pe FOLDER. The folder has the pickled function, and gets a file for each PE."""
import linecache
import os
import pickle
import shutil
import sys
import threading
import traceback

from quoit._pickle import RemoteError


def write(folder, pe, outcome):
    """The whole file or none, as the job may be ended at any moment."""
    path = os.path.join(folder, str(pe))
    with open(path + ".part", "wb") as file:
        file.write(outcome)
    os.rename(path + ".part", path)


def own_frames(error):
    """The traceback without this file's frames."""
    trace = error.__traceback__
    while trace and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    from quoit._job import hint
    return "".join(traceback.format_exception(type(error), error, trace)) + hint(error)


def failure(error):
    text = own_frames(error)
    try:
        made = pickle.dumps((False, error, text))
        pickle.loads(made)  # an exception with other arguments than it was made of fails here
        return made
    except Exception:
        return pickle.dumps((False, RemoteError(f"{type(error).__name__}: {error}"), text))


def success(pe, result):
    try:
        return pickle.dumps((True, result, ""), pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        raise TypeError(f"the result of PE {pe}, a {type(result).__name__}, cannot be sent back: {error}") from error


def end_with_caller(folder):
    """Ends the job, and removes the folder, when the process that called run() is gone, even killed: it holds the other end of this
    PE's input, and writes nothing. The function's own input is empty."""
    held = os.dup(0)
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)

    def watch():
        os.read(held, 1)
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def main(folder):
    # Functions and classes that come by value are put into __main__, without what this file defines.
    sys.modules["__main__"] = type(sys)("__main__")
    sys.modules["__main__"].__dict__["__builtins__"] = __builtins__
    import quoit
    pe = quoit.my_pe()
    if pe == 0:  # the PE that gets the input of oshrun; after shmem_init, which prefers processes of one thread
        end_with_caller(folder)
    try:
        with open(os.path.join(folder, "function"), "rb") as file:
            function, arguments, named, sources = pickle.load(file)
        linecache.cache.update(sources)
        outcome = success(pe, function(*arguments, **named))
    except BaseException as error:  # also sys.exit and KeyboardInterrupt end the job
        sys.last_value = error  # as Python's own handler does; what was not freed is not worth a line then
        sys.stdout.flush()
        write(folder, pe, failure(error))
        return 1
    write(folder, pe, outcome)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
