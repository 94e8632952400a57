// SPDX-License-Identifier: BSD-3-Clause
// A PE that ends the job by shmem_global_exit, with everything that a normal end of a C++ program has to do:
//   exits HOW STATUS CALLER FOLDER
// Each PE writes a line to FOLDER/PE, which only the destructor of a static stream flushes, one to a stream of C,
// FOLDER/PE.c, and one to std::cout, and registers a function with atexit. CALLER -1: all call. The other PEs wait in a
// barrier, or compute for ever.
#include <shmem.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <string>
#include <thread>
#include <unistd.h>

static int status;
static std::string how;
static void *block;

static void bye()
{
    std::printf("PE %d: atexit ran\n", shmem_my_pe());
}

static void call()
{
    shmem_global_exit(status);
}

static void call_again()
{
    shmem_global_exit(status + 1);
}

static void in_signal(int)
{
    call();
}

static void use_library()
{
    shmem_free(block);
    shmem_finalize();
    std::printf("PE %d: the library let the handler go on\n", shmem_my_pe());
}

static void never()
{
    for (;;)
        pause();
}

static void wait_for_others()
{
    shmem_barrier_all();
}

static void misuse()
{
    shmem_int_p(&status, 1, 1000);
}

static void crash()
{
    raise(SIGSEGV);
}

struct Caller {
    ~Caller()
    {
        call();
    }
};

[[noreturn]] static void leave()
{
    if (how == "thread") {
        std::thread(call).detach();
        never();
    } else if (how == "signal") {
        std::signal(SIGUSR1, in_signal);
        std::raise(SIGUSR1);
    } else if (how == "handler") {
        std::atexit(call);
        std::exit(0);
    } else if (how == "destructor") {
        static Caller caller;
        std::exit(0);
    } else if (how == "threads") {
        std::thread(call).detach();
        std::thread(call).detach();
    } else if (how == "stop") {
        std::atexit([] { std::raise(SIGSTOP); });
    } else if (how != "main") {
        std::atexit(how == "twice"     ? call_again
                    : how == "library" ? use_library
                    : how == "never"   ? never
                    : how == "barrier" ? wait_for_others
                    : how == "misuse"  ? misuse
                                       : crash);
    }
    shmem_global_exit(status);
}

int main(int argc, char **argv)
{
    static std::ofstream file;
    if (argc != 5)
        return 2;
    how = argv[1];
    status = std::atoi(argv[2]);
    int caller = std::atoi(argv[3]);
    shmem_init();
    int me = shmem_my_pe();
    const std::string path = argv[4] + ("/" + std::to_string(me));
    file.open(path);
    std::FILE *stream = std::fopen((path + ".c").c_str(), "w");
    if (!stream)
        return 2;
    block = shmem_malloc(1000);
    std::atexit(bye);
    file << "PE " << me << " wrote this";
    std::fprintf(stream, "PE %d wrote this", me);
    std::cout << "PE " << me << ": in std::cout\n";
    shmem_barrier_all();
    if (caller < 0 || caller == me)
        leave();
    if (me % 2)
        for (volatile unsigned long turns = 0;; turns = turns + 1)
            ;
    shmem_barrier_all();
}
