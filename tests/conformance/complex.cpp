// SPDX-License-Identifier: BSD-3-Clause
// Aim: reductions and scans of std::complex and of C's complex types agree, by the names with a type and by the
// overloads (9.10). Method: the same small whole numbers in both types through every routine; all results must equal
// a loop over the PEs, whose products and sums are exact.
#include "check.h"

__extension__ typedef float _Complex c_complexf;
__extension__ typedef double _Complex c_complexd;

enum { COUNT = 5 };

template <class Std> static Std given(int pe, int at)
{
    return Std(typename Std::value_type(pe % 3 - 1), typename Std::value_type((at + pe) % 2));
}

template <class Std, class C, class Call>
static void run(const char *what, bool is_product, int first, int last, Call call)
{
    static Std source[COUNT], dest[COUNT];
    static C c_source[COUNT], c_dest[COUNT];
    for (int i = 0; i < COUNT; i++) {
        source[i] = given<Std>(me, i);
        dest[i] = Std(99, 99);
    }
    memcpy(static_cast<void *>(c_source), source, sizeof source);
    shmem_sync_all();
    CHECK(call(dest, source) == 0, "%s", what);
    shmem_sync_all();
    CHECK(call(c_dest, c_source) == 0, "%s", what);
    for (int i = 0; i < COUNT; i++) {
        Std wanted(is_product ? 1 : 0, 0);
        for (int pe = first; pe < last; pe++)
            wanted = is_product ? wanted * given<Std>(pe, i) : wanted + given<Std>(pe, i);
        CHECK(dest[i] == wanted, "%s: element %d is %g%+gi", what, i, double(dest[i].real()), double(dest[i].imag()));
    }
    CHECK(memcmp(dest, c_dest, sizeof dest) == 0, "%s: C's type gives something else", what);
    shmem_sync_all();
}

// A routine by its name as a function object of any pointers, its overload likewise.
#define CALL(NAME)                                                                                                     \
    struct call_##NAME {                                                                                               \
        template <class T> int operator()(T *dest, const T *source) const                                              \
        {                                                                                                              \
            return shmem_##NAME(SHMEM_TEAM_WORLD, dest, source, COUNT);                                                \
        }                                                                                                              \
    };
#define CALLS(NAME) CALL(NAME##sum_reduce) CALL(NAME##prod_reduce) CALL(NAME##sum_inscan) CALL(NAME##sum_exscan)
CALLS()
CALLS(complexf_)
CALLS(complexd_)

#define RUN(NAME, STD, C)                                                                                              \
    run<STD, C>(#NAME "sum_reduce", false, 0, npes, call_##NAME##sum_reduce());                                        \
    run<STD, C>(#NAME "prod_reduce", true, 0, npes < 20 ? npes : 20, call_##NAME##prod_reduce());                      \
    run<STD, C>(#NAME "sum_inscan", false, 0, me + 1, call_##NAME##sum_inscan());                                      \
    run<STD, C>(#NAME "sum_exscan", false, 0, me, call_##NAME##sum_exscan());

// The active sets' forms, of which C's type has the typed names too.
template <class T, class Sum> static void run_active_set(Sum sum)
{
    static T source[COUNT], dest[COUNT], work[COUNT + SHMEM_REDUCE_MIN_WRKDATA_SIZE];
    static long sync[SHMEM_REDUCE_SYNC_SIZE];
    for (int i = 0; i < COUNT; i++)
        source[i] = T(i + me);
    shmem_sync_all();
    sum(dest, source, work, sync);
    for (int i = 0; i < COUNT; i++)
        CHECK(dest[i] == T(i * npes + npes * (npes - 1) / 2), "to_all, element %d", i);
    shmem_sync_all();
}
struct to_all_f {
    template <class T> void operator()(T *dest, T *source, T *work, long *sync) const
    {
        shmem_complexf_sum_to_all(dest, source, COUNT, 0, 0, npes, work, sync);
    }
};
struct to_all_d {
    template <class T> void operator()(T *dest, T *source, T *work, long *sync) const
    {
        shmem_complexd_sum_to_all(dest, source, COUNT, 0, 0, npes, work, sync);
    }
};

int main()
{
    check_begin();
    RUN(, std::complex<float>, c_complexf)
    RUN(complexf_, std::complex<float>, c_complexf)
    RUN(, std::complex<double>, c_complexd)
    RUN(complexd_, std::complex<double>, c_complexd)
    run_active_set<std::complex<float>>(to_all_f());
    run_active_set<c_complexf>(to_all_f());
    run_active_set<std::complex<double>>(to_all_d());
    run_active_set<c_complexd>(to_all_d());
    return check_end("complex");
}
