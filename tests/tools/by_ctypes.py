# SPDX-License-Identifier: BSD-3-Clause
"""An OpenSHMEM program in Python: by_ctypes.py LIBSHMEM [close]. Puts, gets, an atomic and a reduction, checked."""
import _ctypes
import ctypes
import sys

COUNT = 5000


def run(shmem):
    shmem.shmem_malloc.restype = ctypes.c_void_p
    shmem.shmem_malloc.argtypes = [ctypes.c_size_t]
    for name in ("shmem_putmem", "shmem_getmem"):
        getattr(shmem, name).argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    shmem.shmem_long_atomic_fetch_add.restype = ctypes.c_long
    shmem.shmem_long_atomic_fetch_add.argtypes = [ctypes.c_void_p, ctypes.c_long, ctypes.c_int]
    shmem.shmem_free.argtypes = [ctypes.c_void_p]
    shmem.shmem_init()
    me, pes = shmem.shmem_my_pe(), shmem.shmem_n_pes()
    data, counter = shmem.shmem_malloc(COUNT), shmem.shmem_malloc(8)
    ctypes.memset(counter, 0, 8)
    shmem.shmem_barrier_all()
    sent = bytes((i * 7 + me) % 251 for i in range(COUNT))
    shmem.shmem_putmem(data, sent, COUNT, (me + 1) % pes)
    for pe in range(pes):
        shmem.shmem_long_atomic_fetch_add(counter, me + 1, pe)
    shmem.shmem_barrier_all()
    left = (me + pes - 1) % pes
    back = ctypes.create_string_buffer(COUNT)
    shmem.shmem_getmem(back, data, COUNT, (me + 1) % pes)
    is_right = (ctypes.string_at(data, COUNT) == bytes((i * 7 + left) % 251 for i in range(COUNT)) and back.raw == sent and
                ctypes.c_long.from_address(counter).value == pes * (pes + 1) // 2)
    shmem.shmem_barrier_all()
    shmem.shmem_free(counter)
    shmem.shmem_free(data)
    print(f"PE {me} of {pes}: {'right' if is_right else 'wrong'}", flush=True)
    shmem.shmem_finalize()
    return is_right


library = ctypes.CDLL(sys.argv[1])
status = 0 if run(library) else 1
if sys.argv[2:] == ["close"]:
    _ctypes.dlclose(library._handle)
    print("closed", flush=True)
sys.exit(status)
