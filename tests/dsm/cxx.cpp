/* SPDX-License-Identifier: BSD-3-Clause */
/* cxx - dsm.hpp: every class, used by several threads of each PE, beside what the same steps give in private memory.
 * C++11 and later; std::shared_lock and std::scoped_lock where the language has them.
 *
 * Use: cxx [ROUNDS]. A failure prints its line and the PE, and ends the job. */
#include <dsm.hpp>

#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <thread>
#if __cplusplus >= 201402L
#include <shared_mutex>
#endif

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            std::fprintf(stderr, "cxx: line %d, PE %d: not %s\n", __LINE__, dsm_my_pe(), #condition);                  \
            std::_Exit(1);                                                                                             \
        }                                                                                                              \
    } while (0)

static const int threads = 2;
static int rounds = 40;

DSM_SHARED dsm::mutex shared_lock_variable;
DSM_SHARED dsm::atomic<long> shared_sum;
DSM_SHARED long shared_plain;
DSM_SHARED dsm::once_flag shared_once;
DSM_SHARED dsm::semaphore shared_semaphore;

using text = std::basic_string<char, std::char_traits<char>, dsm::allocator<char>>;
using table = std::map<long, text, std::less<long>, dsm::allocator<std::pair<const long, text>>>;

static std::string value_of(long key, long version)
{
    return std::string(static_cast<std::size_t>(key % 60), 'x') + std::to_string(version);
}

static std::uint64_t workers()
{
    return static_cast<std::uint64_t>(dsm_n_pes()) * threads;
}

static void on_threads(const std::function<void(int)> &work)
{
    std::vector<std::thread> others;
    for (int thread = 1; thread < threads; thread++)
        others.emplace_back(work, dsm_my_pe() * threads + thread);
    work(dsm_my_pe() * threads);
    for (std::thread &other : others)
        other.join();
    dsm_barrier_all();
}

/* Both words of an account change under both locks, which threads name in either order. */
struct accounts {
    dsm::mutex locks[2];
    long words[2] = {0, 0};
};

static void add_to(accounts &of, int first)
{
#if __cplusplus >= 201703L
    std::scoped_lock both(of.locks[first], of.locks[1 - first]);
#else
    std::lock(of.locks[first], of.locks[1 - first]);
    std::lock_guard<dsm::mutex> one(of.locks[0], std::adopt_lock), other(of.locks[1], std::adopt_lock);
#endif
    of.words[0]++;
    of.words[1] -= 2;
}

static void test_mutex()
{
    accounts *of = dsm::all_make<accounts>();
    on_threads([&](int worker) {
        for (int i = 0; i < rounds; i++) {
            add_to(*of, (worker + i) % 2);
            std::unique_lock<dsm::mutex> lock(shared_lock_variable, std::defer_lock);
            if (!lock.try_lock_for(std::chrono::hours(24 * 365 * 1000)))
                continue;
            shared_plain++;
        }
    });
    long all = static_cast<long>(workers()) * rounds;
    CHECK(of->words[0] == all);
    CHECK(of->words[1] == -2 * all);
    CHECK(shared_plain == all);
    dsm_barrier_all();
    if (dsm_my_pe() == 0)
        of->locks[0].lock();
    dsm_barrier_all();
    if (dsm_my_pe() != 0) {
        CHECK(!of->locks[0].try_lock());
        CHECK(!of->locks[0].try_lock_until(std::chrono::steady_clock::now() + std::chrono::milliseconds(2)));
        CHECK(!of->locks[0].try_lock_for(std::chrono::nanoseconds(-1)));
    }
    dsm_barrier_all();
    if (dsm_my_pe() == 0)
        of->locks[0].unlock();
    dsm::all_destroy(of);
}

/* A queue of few places: what goes in comes out once. */
struct queue {
    dsm::mutex lock;
    dsm::condition_variable has_room, has_items;
    std::deque<long, dsm::allocator<long>> items;
    long sum = 0;
};

static void test_condition()
{
    queue *of = dsm::all_make<queue>();
    on_threads([&](int worker) {
        for (int i = 0; i < rounds; i++) {
            std::unique_lock<dsm::mutex> lock(of->lock);
            of->has_room.wait(lock, [&] { return of->items.size() < 3; });
            of->items.push_back(worker * rounds + i);
            of->has_items.notify_one();
            lock.unlock();
            lock.lock();
            CHECK(of->has_items.wait_for(lock, std::chrono::hours(1), [&] { return !of->items.empty(); }));
            of->sum += of->items.front();
            of->items.pop_front();
            of->has_room.notify_all();
        }
    });
    long all = static_cast<long>(workers()) * rounds;
    CHECK(of->items.empty());
    CHECK(of->sum == all * (all - 1) / 2);
    std::unique_lock<dsm::mutex> lock(of->lock);
    CHECK(of->has_items.wait_for(lock, std::chrono::milliseconds(1)) == std::cv_status::timeout);
    CHECK(!of->has_items.wait_until(lock, std::chrono::system_clock::now(), [] { return false; }));
    CHECK(lock.owns_lock());
    lock.unlock();
    dsm::all_destroy(of);
}

struct pair {
    dsm::shared_mutex lock;
    long first = 0, gap[600] = {}, second = 0; /* on two pages */
};

static void test_shared_mutex()
{
    pair *of = dsm::all_make<pair>();
    on_threads([&](int worker) {
        for (int i = 0; i < rounds; i++) {
            if ((i + worker) % 3 == 0) {
                std::lock_guard<dsm::shared_mutex> lock(of->lock);
                of->first++;
                of->second++;
            } else {
#if __cplusplus >= 201402L
                std::shared_lock<dsm::shared_mutex> lock(of->lock);
                CHECK(of->first == of->second);
#else
                of->lock.lock_shared();
                CHECK(of->first == of->second);
                of->lock.unlock_shared();
#endif
            }
        }
    });
    long writes = 0;
    for (int worker = 0; worker < static_cast<int>(workers()); worker++)
        for (int i = 0; i < rounds; i++)
            writes += (i + worker) % 3 == 0;
    CHECK(of->first == writes);
    dsm_barrier_all();
    of->lock.lock_shared();
    CHECK(of->lock.try_lock_shared());
    CHECK(!of->lock.try_lock());
    of->lock.unlock_shared();
    of->lock.unlock_shared();
    dsm_barrier_all();
    bool is_mine = of->lock.try_lock();
    if (is_mine)
        CHECK(!of->lock.try_lock_shared());
    dsm_barrier_all();
    if (is_mine)
        of->lock.unlock();
    dsm::all_destroy(of);
}

/* Tickets are unique, and their sum is known; additions by compare-and-swap lose none. */
struct counters {
    dsm::atomic<long> tickets, sum{1000}, last;
    dsm::atomic<std::uint64_t> wraps;
};

static void test_atomic()
{
    counters *of = dsm::all_make<counters>();
    dsm::span<char> taken = dsm::all_make_array<char>(workers() * static_cast<std::size_t>(rounds));
    for (char &mark : taken.mine())
        mark = 0;
    dsm_barrier_all();
    on_threads([&](int worker) {
        for (int i = 0; i < rounds; i++) {
            taken[static_cast<std::size_t>(of->tickets++)] = 1;
            long before = of->sum.load();
            while (!of->sum.compare_exchange_weak(before, before + worker))
                ;
            before = -1;
            CHECK(!of->sum.compare_exchange_strong(before, 0));
            CHECK(before >= 1000);
            of->last = worker;
            CHECK(of->last >= 0);
            of->wraps -= 3;
            shared_sum += 2;
        }
    });
    long all = static_cast<long>(workers()) * rounds, sum = 1000;
    for (long worker = 0; worker < static_cast<long>(workers()); worker++)
        sum += worker * rounds;
    CHECK(of->tickets == all);
    CHECK(of->sum == sum);
    CHECK(of->wraps == 0 - 3 * static_cast<std::uint64_t>(all));
    CHECK(shared_sum == 2 * all);
    for (char mark : taken)
        CHECK(mark == 1);
    long last = of->last.exchange(-5);
    CHECK(last == -5 || (last >= 0 && last < static_cast<long>(workers())));
    dsm_barrier_all();
    CHECK(of->last.load() == -5);
    dsm::all_free_array(taken);
    dsm::all_destroy(of);
}

static void test_spans()
{
    dsm::span<int> all = dsm::all_make_array<int>(10007);
    int value = 0;
    for (std::size_t i = 0; i < 7; i++) {
        dsm::span<int> part = all.part(i, 7);
        CHECK(part.data() == all.data() + value);
        CHECK(part.size() == 10007 / 7 || part.size() == 10007 / 7 + 1);
        value += static_cast<int>(part.size());
    }
    CHECK(value == 10007);
    for (int &element : all.mine())
        element = static_cast<int>(&element - all.data()) * 3;
    dsm_barrier_all();
    all.prefetch();
    for (std::size_t i = 0; i < all.size(); i++)
        CHECK(all[i] == static_cast<int>(i) * 3);
    all.migrate(dsm_n_pes() - 1);
    CHECK(all.home(5000) == dsm_n_pes() - 1 || all.home(5000) == 0); /* 0: one memory */
    if (dsm_my_pe() == 0) {
        all[17] = 4;
        all.release();
    }
    dsm_barrier_all();
    all.acquire();
    CHECK(all[17] == 4);
    dsm::all_free_array(all);

    dsm_attributes with = {};
    with.placement = DSM_ON_PE;
    dsm::span<double> own = dsm::make_array<double>(3000, with), more = dsm::make_array<double>(5);
    CHECK(own.home(100) == 0);
    own[2999] = more[4] = 1.5;
    CHECK(own.subspan(2999, 1)[0] == 1.5);
    dsm::free_array(own);
    dsm::free_array(more);
    CHECK(dsm::span<int>().empty());
    try {
        dsm::make_array<double>(std::numeric_limits<std::size_t>::max() / 2);
        CHECK(false);
    } catch (const std::bad_alloc &) {
    }
}

/* Each PE has keys of its own and changes one map, all under one lock. */
struct store {
    dsm::mutex lock;
    table rows;
    dsm::vector<long> log;
};

template <class Map> static void step(Map &rows, std::mt19937 &chance, int pe, long version)
{
    long key = static_cast<long>(chance() % 50) * dsm_n_pes() + pe;
    if (chance() % 3 == 0)
        rows.erase(key);
    else
        rows[key] = value_of(key, version).c_str();
}

static void test_containers()
{
    store *of = dsm::all_make<store>();
    std::mt19937 chance(static_cast<unsigned>(dsm_my_pe()));
    for (long version = 0; version < rounds; version++) {
        std::lock_guard<dsm::mutex> lock(of->lock);
        step(of->rows, chance, dsm_my_pe(), version);
        of->log.push_back(dsm_my_pe());
    }
    dsm_barrier_all();
    std::map<long, std::string> model;
    for (int pe = 0; pe < dsm_n_pes(); pe++) {
        std::mt19937 again(static_cast<unsigned>(pe));
        for (long version = 0; version < rounds; version++)
            step(model, again, pe, version);
    }
    CHECK(of->rows.size() == model.size());
    auto at = of->rows.begin();
    for (const auto &row : model) {
        CHECK(at->first == row.first);
        CHECK(row.second == at->second.c_str());
        ++at;
    }
    CHECK(of->log.size() == static_cast<std::size_t>(rounds * dsm_n_pes()));
    dsm::all_destroy(of);
    CHECK(dsm::allocator<int>() == dsm::allocator<long>());
    struct alignas(256) wide {
        char bytes[256];
    };
    wide *one = dsm::make<wide>();
    CHECK(reinterpret_cast<std::uintptr_t>(one) % 256 == 0);
    dsm::destroy(one);
    dsm::destroy(static_cast<wide *>(nullptr));
    struct thrower {
        thrower()
        {
            throw 7;
        }
    };
    try {
        dsm::make<thrower>();
        CHECK(false);
    } catch (int value) {
        CHECK(value == 7);
    }
}

struct others {
    dsm::semaphore places{2};
    dsm::flag turn;
    dsm::barrier meeting;
    dsm::atomic<long> inside;
    long steps[64];
    explicit others(std::uint64_t count) : meeting(count), steps()
    {
    }
};

static void count_once()
{
    shared_plain += 1000000;
}

static void test_others()
{
    others *of = dsm::all_make<others>(workers());
    long before = shared_plain;
    dsm_barrier_all();
    on_threads([&](int worker) {
        for (int i = 0; i < rounds / 4; i++) {
            of->places.acquire();
            CHECK(++of->inside <= 2);
            CHECK(--of->inside >= 0);
            of->places.release();
            of->meeting.arrive_and_wait();
            of->turn.wait(static_cast<std::uint64_t>(i) * workers() + static_cast<std::uint64_t>(worker));
            of->steps[worker]++;
            for (int other = 0; other < worker; other++)
                CHECK(of->steps[other] == i + 1);
            of->turn.set(static_cast<std::uint64_t>(i) * workers() + static_cast<std::uint64_t>(worker) + 1);
        }
        call_once(shared_once, count_once);
        CHECK(shared_plain == before + 1000000);
        shared_semaphore.release();
    });
    CHECK(of->turn.get() == static_cast<std::uint64_t>(rounds / 4) * workers());
    for (int thread = 0; thread < threads; thread++)
        CHECK(shared_semaphore.try_acquire_for(std::chrono::seconds(1)));
    dsm_barrier_all();
    CHECK(!shared_semaphore.try_acquire());
    dsm_barrier_all();
    dsm::all_destroy(of);
    /* A constructor makes a new object where an older one had a state. */
    dsm::semaphore *place = static_cast<dsm::semaphore *>(dsm_malloc(sizeof(dsm::semaphore)));
    ::new (static_cast<void *>(place)) dsm::semaphore(5);
    CHECK(place->try_acquire());
    ::new (static_cast<void *>(place)) dsm::semaphore;
    CHECK(!place->try_acquire());
    dsm::once_flag *once = ::new (static_cast<void *>(place)) dsm::once_flag;
    static long calls;
    call_once(*once, [] { calls++; });
    once = ::new (static_cast<void *>(place)) dsm::once_flag;
    call_once(*once, [] { calls++; });
    call_once(*once, [] { calls++; });
    CHECK(calls == 2);
    dsm_free(place);
}

int main(int count, char **words)
{
    if (count > 1)
        rounds = std::atoi(words[1]);
    dsm_init();
    test_mutex();
    test_condition();
    test_shared_mutex();
    test_atomic();
    test_spans();
    test_containers();
    test_others();
    dsm_barrier_all();
    if (dsm_my_pe() == 0)
        std::printf("cxx: ended\n");
    dsm_finalize();
    return 0;
}
