// The JSON context; see the header.
#include "bench/context.hpp"

#include "bench/problem.hpp"
#include "build_info.hpp"
#include "cpu/isa.hpp"

#include <Eigen/Core>
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <fstream>
#include <random>

namespace bench {

namespace {

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "unknown";
}

void add_device(const gpu::Session* session) {
  const gpu::DeviceInfo info = session != nullptr ? session->info() : gpu::DeviceInfo{};
  const auto add = [session](const char* key, const std::string& value) {
    benchmark::AddCustomContext(key, session != nullptr ? value : "none");
  };
  add("cl_platform", info.platform);
  add("cl_device", info.name);
  add("cl_device_type", info.type);
  add("cl_driver", info.driver);
  add("cl_version", info.version);
  add("cl_build_options", session != nullptr ? session->build_options() : "");
  add("cl_compute_units", std::to_string(info.compute_units));
  add("cl_max_clock_mhz", std::to_string(info.clock_mhz));
}

}  // namespace

void add_context(const Options& options, const gpu::Session* session) {
  using benchmark::AddCustomContext;
  AddCustomContext("suite_version", build_info::kVersion);
  AddCustomContext("git_sha", build_info::kGitSha);
  AddCustomContext("git_dirty", build_info::kGitDirty);
  AddCustomContext("build_type", build_info::kBuildType);
  AddCustomContext("compiler", build_info::kCompiler);
  AddCustomContext("cxx_flags", build_info::kFlags);
  AddCustomContext("benchmark_version", build_info::kBenchmarkVersion);
  AddCustomContext("eigen_version", fmt::format("{}.{}.{}", EIGEN_WORLD_VERSION,
                                                EIGEN_MAJOR_VERSION, EIGEN_MINOR_VERSION));
  AddCustomContext("cpu_model", cpu_model());
  AddCustomContext("isa", cpu::isa());
  AddCustomContext("threads", std::to_string(options.threads));
  AddCustomContext("launch_id", fmt::format("{:08x}", std::random_device{}()));
  AddCustomContext("batch", std::to_string(options.batch));
  AddCustomContext("cache", options.cold ? "cold" : "hot");
  AddCustomContext("seed", std::to_string(kSeed));
  add_device(session);
}

}  // namespace bench
