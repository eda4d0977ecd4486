// Register-only multiply-adds, streaming read, streaming copy; compiled once per instruction set.
// The idea is that of STREAM (J. McCalpin) and of every "peak" micro-benchmark: as many independent
// operations in flight as the latency of one takes cycles, and no other work.

#include "cpu/peak.hpp"

#include "cpu/simd.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/peak.cpp"
#include <hwy/foreach_target.h>  // must precede highway.h
#include <hwy/highway.h>
#include <omp.h>

#include <algorithm>

HWY_BEFORE_NAMESPACE();
namespace cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::CappedTag<float, 16>;
using Vec = hn::Vec<Tag>;
constexpr Tag kTag;
constexpr std::size_t kLanes = hn::MaxLanes(Tag());
constexpr std::size_t kChains = 12;  // latency 4 or 5, two a cycle: 10 would do
constexpr std::size_t kStreams = 8;  // vectors a step of the memory loops

/// Independent chains of x = x * factor + addend, which converge to 2. Returns the operations.
double fma_chains(std::size_t rounds, float* result) {
  const Vec factor = hn::Set(kTag, 0.5F), addend = hn::Set(kTag, 1.0F);
  Vec x[kChains];
  CPU_UNROLL(16)
  for (std::size_t i = 0; i < kChains; ++i) x[i] = hn::Set(kTag, static_cast<float>(i));
  for (std::size_t round = 0; round < rounds; ++round) {
    CPU_UNROLL(16)
    for (std::size_t i = 0; i < kChains; ++i) x[i] = hn::MulAdd(x[i], factor, addend);
  }
  CPU_UNROLL(16)
  for (std::size_t i = 1; i < kChains; ++i) x[0] = hn::Add(x[0], x[i]);
  *result = hn::GetLane(hn::SumOfLanes(kTag, x[0]));
  return 2.0 * static_cast<double>(rounds * kChains * kLanes);
}

/// The sum of `count` floats; `count` is a multiple of kStreams vectors.
float sum(const float* from, std::size_t count) {
  Vec acc[kStreams];
  CPU_UNROLL(16)
  for (std::size_t i = 0; i < kStreams; ++i) acc[i] = hn::Zero(kTag);
  for (std::size_t j = 0; j < count; j += kStreams * kLanes) {
    CPU_UNROLL(16)
    for (std::size_t i = 0; i < kStreams; ++i) {
      acc[i] = hn::Add(acc[i], hn::Load(kTag, from + j + i * kLanes));
    }
  }
  CPU_UNROLL(16)
  for (std::size_t i = 1; i < kStreams; ++i) acc[0] = hn::Add(acc[0], acc[i]);
  return hn::GetLane(hn::SumOfLanes(kTag, acc[0]));
}

void copy(const float* HWY_RESTRICT from, float* HWY_RESTRICT to, std::size_t count) {
  for (std::size_t j = 0; j < count; j += kStreams * kLanes) {
    CPU_UNROLL(16)
    for (std::size_t i = 0; i < kStreams; ++i) {
      hn::Store(hn::Load(kTag, from + j + i * kLanes), kTag, to + j + i * kLanes);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cpu {
HWY_EXPORT(fma_chains);
HWY_EXPORT(sum);
HWY_EXPORT(copy);

namespace {

constexpr std::size_t kRounds = 20'000;                    // some 50 microseconds
constexpr std::size_t kGrain = 8UL * 16;                   // floats a step of the widest vectors
constexpr std::size_t kLeastBytes = std::size_t{1} << 20;  // traffic worth waking the threads for

/// Floats cut down to whole steps for both halves of a part, at least one.
std::size_t whole_steps(std::size_t floats) {
  return std::max<std::size_t>(floats / (2 * kGrain), 1) * 2 * kGrain;
}

/// A result that the compiler must believe is used.
void keep(float value) { static_cast<void>(*const_cast<volatile float*>(&value)); }

}  // namespace

double run_fma(Workspace& w) {
  double operations = 0;
#pragma omp parallel num_threads(w.threads()) reduction(+ : operations)
  {
    float result = 0;
    operations = HWY_DYNAMIC_DISPATCH(fma_chains)(kRounds, &result);
    keep(result);
  }
  return operations;
}

Traffic::Traffic(std::size_t bytes, int threads)
    : workspace_(threads),
      each_(whole_steps(bytes / sizeof(float) / static_cast<std::size_t>(threads))),
      passes_(std::max<std::size_t>(1, kLeastBytes / (each_ * sizeof(float)))),
      data_(workspace_.floats(each_ * static_cast<std::size_t>(threads)).data()) {
#pragma omp parallel for num_threads(threads) schedule(static, 1)
  for (int i = 0; i < threads; ++i) {
    std::fill_n(data_ + static_cast<std::size_t>(i) * each_, each_, 1.0F);
  }
}

double Traffic::read() {
  const int threads = workspace_.threads();
#pragma omp parallel for num_threads(threads) schedule(static, 1)
  for (int i = 0; i < threads; ++i) {
    const float* const mine = data_ + static_cast<std::size_t>(i) * each_;
    for (std::size_t pass = 0; pass < passes_; ++pass) keep(HWY_DYNAMIC_DISPATCH(sum)(mine, each_));
  }
  return static_cast<double>(each_ * passes_ * sizeof(float)) * threads;
}

double Traffic::copy() {
  const int threads = workspace_.threads();
#pragma omp parallel for num_threads(threads) schedule(static, 1)
  for (int i = 0; i < threads; ++i) {
    float* const mine = data_ + static_cast<std::size_t>(i) * each_;
    for (std::size_t pass = 0; pass < passes_; ++pass) {
      HWY_DYNAMIC_DISPATCH(copy)(mine, mine + each_ / 2, each_ / 2);
    }
  }
  return static_cast<double>(each_ * passes_ * sizeof(float)) * threads;
}

}  // namespace cpu
#endif
