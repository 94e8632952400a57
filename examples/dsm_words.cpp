/* SPDX-License-Identifier: BSD-3-Clause */
/* dsm_words - counts words on shared pages with dsm.hpp: the PEs take pieces of a generated text from an atomic, count
 * them in private, and add their counts to one std::map in shared memory, under a lock. Prints the most frequent words
 * and a checksum that is the same for every number of PEs.
 *
 * Use: oshrun -n 4 dsm_words [PIECES] */
#include <dsm.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>

using word = std::basic_string<char, std::char_traits<char>, dsm::allocator<char>>;
using counts = std::map<word, long, std::less<word>, dsm::allocator<std::pair<const word, long>>>;

/* One for the job: its own variables are in shared memory too. */
struct state {
    dsm::atomic<long> next_piece;
    dsm::mutex lock;
    counts totals;
};

static std::map<std::string, long> count_piece(long piece)
{
    std::map<std::string, long> found;
    unsigned long seed = static_cast<unsigned long>(piece) + 1;
    for (int i = 0; i < 1000; i++) {
        seed = seed * 6364136223846793005UL + 1442695040888963407UL;
        unsigned long a = seed >> 33 & 63, b = seed >> 41 & 63;
        found["word" + std::to_string(a * b / 64)]++; /* few words are frequent */
    }
    return found;
}

int main(int count, char **arguments)
{
    long pieces = count > 1 ? std::atol(arguments[1]) : 200;
    state *shared = dsm::all_make<state>();
    for (long piece; (piece = shared->next_piece++) < pieces;) {
        std::map<std::string, long> found = count_piece(piece);
        std::lock_guard<dsm::mutex> lock(shared->lock);
        for (const auto &entry : found)
            shared->totals[entry.first.c_str()] += entry.second;
    }
    dsm_barrier_all();
    if (dsm_my_pe() == 0) {
        dsm::vector<std::pair<long, word>> order;
        unsigned long checksum = 0;
        for (const auto &entry : shared->totals) {
            order.emplace_back(entry.second, entry.first);
            checksum = checksum * 31 + static_cast<unsigned long>(entry.second) + entry.first.size();
        }
        std::sort(order.rbegin(), order.rend());
        for (std::size_t i = 0; i < order.size() && i < 3; i++)
            std::printf("%ld times %s\n", order[i].first, order[i].second.c_str());
        std::printf("checksum %lx\n", checksum);
    }
    dsm::all_destroy(shared);
}
