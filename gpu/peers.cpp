// CLBlast and cuBLAS behind the interface of a multiplication; see the header.
#include "gpu/peers.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <stdexcept>

namespace gpu {

namespace {

template <class Function>
Function symbol(void* library, const char* name) {
  return reinterpret_cast<Function>(dlsym(library, name));
}

template <class Function>
Function required(void* library, const std::string& name, const char* function) {
  if (const auto found = symbol<Function>(library, function)) return found;
  throw std::invalid_argument(fmt::format(
      "cannot use the peer {}: it has no {}; give another version of it", name, function));
}

void* load(const std::string& library) {
  if (void* const handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
  throw std::invalid_argument(
      fmt::format("cannot load the peer: {}; install it, or give its full path", dlerror()));
}

void check(int code, const char* call) {
  if (code != 0) throw DeviceError(fmt::format("{} failed with {}", call, code));
}

// ---- CLBlast: its C interface, on our queue and buffers ----

using ClblastSgemm = int (*)(int layout, int transpose_a, int transpose_b, std::size_t m,
                             std::size_t n, std::size_t k, float alpha, cl_mem a,
                             std::size_t a_offset, std::size_t lda, cl_mem b, std::size_t b_offset,
                             std::size_t ldb, float beta, cl_mem c, std::size_t c_offset,
                             std::size_t ldc, cl_command_queue* queue, cl_event* event);
constexpr int kRowMajor = 101, kNoTranspose = 111;

class ClblastMultiplication final : public ClMultiplication {
 public:
  ClblastMultiplication(const Session& session, const Shape& shape, ClblastSgemm sgemm)
      : ClMultiplication(session, shape), sgemm_(sgemm) {}

 protected:
  void enqueue(cl::Event* first, cl::Event* last) override {
    if (first != nullptr) queue().enqueueMarkerWithWaitList(nullptr, first);
    const auto [a, b, c] = operands();
    cl_command_queue raw_queue = queue()();
    cl_event event = nullptr;
    check(sgemm_(kRowMajor, kNoTranspose, kNoTranspose, shape().m, shape().n, shape().k, 1.0F,
                 a.buffer(), 0, a.leading, b.buffer(), 0, b.leading, 0.0F, c.buffer(), 0, c.leading,
                 &raw_queue, last != nullptr ? &event : nullptr),
          "CLBlastSgemm");
    if (last != nullptr) *last = cl::Event(event);
  }

 private:
  ClblastSgemm sgemm_;
};

// ---- cuBLAS, on the memory of the CUDA driver interface (the driver is wherever cuBLAS runs) ----

using CudaPointer = unsigned long long;
using CudaHandle = void*;

struct Cuda {
  int (*init)(unsigned);
  int (*count)(int*);
  int (*device)(int*, int);
  int (*attribute)(int*, int, int);
  int (*retain)(CudaHandle*, int);
  int (*use)(CudaHandle);
  int (*allocate)(CudaPointer*, std::size_t);
  int (*release)(CudaPointer);
  int (*upload)(CudaPointer, const void*, std::size_t);
  int (*download)(void*, CudaPointer, std::size_t);
  int (*create_event)(CudaHandle*, unsigned);
  int (*destroy_event)(CudaHandle);
  int (*record)(CudaHandle, CudaHandle);
  int (*wait)(CudaHandle);
  int (*elapsed)(float*, CudaHandle, CudaHandle);
};

Cuda bind_cuda() {
  void* const driver = load("libcuda.so.1");
  Cuda c{};
  const auto bind = [driver](auto& function, const char* name) {
    function = symbol<std::remove_reference_t<decltype(function)>>(driver, name);
    if (function == nullptr) throw DeviceError(fmt::format("the CUDA driver has no {}", name));
  };
  bind(c.init, "cuInit");
  bind(c.count, "cuDeviceGetCount");
  bind(c.device, "cuDeviceGet");
  bind(c.attribute, "cuDeviceGetAttribute");
  bind(c.retain, "cuDevicePrimaryCtxRetain");
  bind(c.use, "cuCtxSetCurrent");
  bind(c.allocate, "cuMemAlloc_v2");
  bind(c.release, "cuMemFree_v2");
  bind(c.upload, "cuMemcpyHtoD_v2");
  bind(c.download, "cuMemcpyDtoH_v2");
  bind(c.create_event, "cuEventCreate");
  bind(c.destroy_event, "cuEventDestroy_v2");
  bind(c.record, "cuEventRecord");
  bind(c.wait, "cuEventSynchronize");
  bind(c.elapsed, "cuEventElapsedTime");
  return c;
}

int device_at(const Cuda& c, int ordinal) {
  int device = 0;
  check(c.device(&device, ordinal), "cuDeviceGet");
  return device;
}

PciAddress address_of(const Cuda& c, int device) {
  constexpr int kBus = 33, kDevice = 34, kDomain = 50;  // of CUdevice_attribute
  const auto ask = [&](int what) {
    int value = 0;
    check(c.attribute(&value, what, device), "cuDeviceGetAttribute");
    return value;
  };
  return {ask(kDomain), ask(kBus), ask(kDevice)};
}

// The session's device; a CUDA device that is alone is that, and need not be asked.
int device_of(const Cuda& c, const Session& session) {
  int count = 0;
  check(c.count(&count), "cuDeviceGetCount");
  if (count <= 1) return device_at(c, 0);
  std::vector<PciAddress> addresses;
  addresses.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) addresses.push_back(address_of(c, device_at(c, i)));
  return device_at(c, same_device(pci_address(session.device()), addresses));
}

Cuda load_cuda(const Session& session) {
  const Cuda c = bind_cuda();
  check(c.init(0), "cuInit");
  CudaHandle context = nullptr;
  check(c.retain(&context, device_of(c, session)), "cuDevicePrimaryCtxRetain");
  check(c.use(context), "cuCtxSetCurrent");
  return c;
}

const Cuda& cuda_for(const Session& session) {
  static const Cuda loaded = load_cuda(session);
  return loaded;
}

class CudaFloats {
 public:
  CudaFloats(const Cuda& cuda, std::size_t count) : cuda_(cuda) {
    check(cuda_.allocate(&pointer_, std::max<std::size_t>(count, 1) * sizeof(float)), "cuMemAlloc");
  }
  ~CudaFloats() { cuda_.release(pointer_); }
  CudaFloats(const CudaFloats&) = delete;
  CudaFloats& operator=(const CudaFloats&) = delete;

  void upload(std::span<const float> from) {
    if (!from.empty())
      check(cuda_.upload(pointer_, from.data(), from.size_bytes()), "cuMemcpyHtoD");
  }
  void download(std::span<float> to) const {
    check(cuda_.download(to.data(), pointer_, to.size_bytes()), "cuMemcpyDtoH");
  }
  [[nodiscard]] float* at(std::size_t offset) const {
    // The driver hands out addresses as integers. NOLINTNEXTLINE(performance-no-int-to-ptr)
    return reinterpret_cast<float*>(pointer_ + offset * sizeof(float));
  }

 private:
  const Cuda& cuda_;
  CudaPointer pointer_ = 0;
};

class CudaEvent {
 public:
  explicit CudaEvent(const Cuda& cuda) : cuda_(cuda) {
    check(cuda_.create_event(&event_, 0), "cuEventCreate");
  }
  ~CudaEvent() { cuda_.destroy_event(event_); }
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;

  [[nodiscard]] CudaHandle get() const { return event_; }

 private:
  const Cuda& cuda_;
  CudaHandle event_ = nullptr;
};

// cublasComputeType_t and the rest of its enumerations, by value.
constexpr int kComputePedantic = 69, kComputeTf32 = 77, kFloat32 = 0, kDefaultAlgorithm = -1;

using CublasCreate = int (*)(CudaHandle*);
using CublasGemm = int (*)(CudaHandle, int transpose_a, int transpose_b, int m, int n, int k,
                           const void* alpha, const void* a, int a_type, int lda, const void* b,
                           int b_type, int ldb, const void* beta, void* c, int c_type, int ldc,
                           int compute_type, int algorithm);

// A cuBLAS that was loaded. All its products share one handle, which is made with the first of them
// on the device in use then, and lasts as long as the process does, like the library.
class Cublas {
 public:
  Cublas(void* library, const std::string& name)
      : create_(required<CublasCreate>(library, name, "cublasCreate_v2")),
        gemm_(required<CublasGemm>(library, name, "cublasGemmEx")) {}

  CudaHandle handle() {
    if (handle_ == nullptr) check(create_(&handle_), "cublasCreate");
    return handle_;
  }
  [[nodiscard]] CublasGemm gemm() const { return gemm_; }

 private:
  CublasCreate create_;
  CublasGemm gemm_;
  CudaHandle handle_ = nullptr;
};

class CublasMultiplication final : public Multiplication {
 public:
  CublasMultiplication(const Cuda& cuda, Cublas& cublas, int compute_type, const Shape& shape)
      : cuda_(cuda),
        cublas_(cublas.handle()),
        gemm_(cublas.gemm()),
        compute_type_(compute_type),
        shape_(shape),
        a_(cuda, shape.a_size()),
        b_(cuda, shape.b_size()),
        guarded_c_(cuda, shape.c_size() + 2 * kGuard),
        begin_(cuda),
        end_(cuda) {}

  void write_inputs(std::span<const float> a, std::span<const float> b) override {
    a_.upload(a);
    b_.upload(b);
  }
  void write_output(std::span<const float> guarded_c) override { guarded_c_.upload(guarded_c); }
  void read_output(std::span<float> guarded_c) override { guarded_c_.download(guarded_c); }

  double run(int batch) override {
    check(cuda_.record(begin_.get(), nullptr), "cuEventRecord");
    for (int i = 0; i < batch; ++i) launch();
    check(cuda_.record(end_.get(), nullptr), "cuEventRecord");
    check(cuda_.wait(end_.get()), "cuEventSynchronize");
    float milliseconds = 0;
    check(cuda_.elapsed(&milliseconds, begin_.get(), end_.get()), "cuEventElapsedTime");
    if (!(milliseconds > 0)) throw DeviceError("no usable time: CUDA's events are too close");
    return static_cast<double>(milliseconds) * 1e-3 / batch;
  }

 private:
  // cuBLAS is column-major: row-major C = A·B is its C' = B'·A'.
  void launch() {
    const float one = 1;
    const float zero = 0;
    check(gemm_(cublas_, 0, 0, to_int(shape_.n), to_int(shape_.m), to_int(shape_.k), &one, b_.at(0),
                kFloat32, to_int(shape_.ldb), a_.at(0), kFloat32, to_int(shape_.lda), &zero,
                guarded_c_.at(kGuard), kFloat32, to_int(shape_.ldc), compute_type_,
                kDefaultAlgorithm),
          "cublasGemmEx");
  }

  const Cuda& cuda_;
  CudaHandle cublas_;
  CublasGemm gemm_;
  int compute_type_;
  Shape shape_;
  CudaFloats a_, b_, guarded_c_;
  CudaEvent begin_, end_;
};

Peer clblast_peer(ClblastSgemm sgemm) {
  return {"SGEMM/GPU/PeerCLBlast", kFloat32Epsilon,
          [sgemm](const Session& session, const Shape& shape) -> std::unique_ptr<Multiplication> {
            return std::make_unique<ClblastMultiplication>(session, shape, sgemm);
          }};
}

Peer cublas_peer(const char* name, double epsilon, const std::shared_ptr<Cublas>& cublas,
                 int compute_type) {
  return {name, epsilon,
          [=](const Session& session, const Shape& shape) -> std::unique_ptr<Multiplication> {
            if (!session.info().nvidia) throw Unsupported("cuBLAS needs an NVIDIA GPU");
            return std::make_unique<CublasMultiplication>(cuda_for(session), *cublas, compute_type,
                                                          shape);
          }};
}

}  // namespace

std::vector<Peer> find_peers(const std::string& library) {
  void* const handle = load(library);
  if (const auto sgemm = symbol<ClblastSgemm>(handle, "CLBlastSgemm")) return {clblast_peer(sgemm)};
  if (symbol<CublasGemm>(handle, "cublasGemmEx") == nullptr) return {};
  const auto cublas = std::make_shared<Cublas>(handle, library);
  return {
      cublas_peer("SGEMM/GPU/PeerCuBLAS", kFloat32Epsilon, cublas, kComputePedantic),
      cublas_peer("SGEMM/GPU/PeerCuBLASTf32", kTf32Epsilon, cublas, kComputeTf32),
  };
}

int same_device(std::optional<PciAddress> opencl, std::span<const PciAddress> cuda) {
  if (!opencl)
    throw Unsupported("the OpenCL driver does not tell which of several CUDA devices this is");
  const auto found = std::ranges::count(cuda, *opencl);
  if (found != 1)
    throw Unsupported(
        fmt::format("{} CUDA devices sit where this OpenCL device does, at {:04x}:{:02x}:{:02x}",
                    found, opencl->domain, opencl->bus, opencl->device));
  return static_cast<int>(std::ranges::find(cuda, *opencl) - cuda.begin());
}

}  // namespace gpu
