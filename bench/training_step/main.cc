// Time of one training step (forward, loss, backward) per norm and size; one JSON object a line.
// usage: training_step [threads] [repeats]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "nrec/core/random.h"
#include "nrec/core/stop.h"
#include "nrec/kernels/dispatch.h"
#include "nrec/losses/contrastive_loss.h"
#include "nrec/networks/pair_step.h"

namespace {

using namespace nrec;

struct Setting {
  std::size_t hidden, blocks, num_classes, batch;
};

double median_ms(const std::string& isa, ThreadPool& pool, const Setting& setting, Norm norm, int repeats) {
  const std::size_t dim_theta = 5, dim_x = 8, columns = setting.num_classes + 1;
  PairNetwork network = PairNetwork::initialised({dim_theta, dim_x, setting.hidden, setting.blocks, norm}, 1);
  Matrix<float> theta(setting.batch, dim_theta), x(setting.batch, dim_x);
  RandomStream random(1, Stream::check);
  for (float& value : theta.values()) value = static_cast<float>(random.normal());
  for (float& value : x.values()) value = static_cast<float>(random.normal());
  Matrix<std::uint32_t> candidates(setting.batch, columns);
  for (std::size_t b = 0; b < setting.batch; ++b) {
    for (std::size_t c = 0; c < columns; ++c)
      candidates(b, c) = static_cast<std::uint32_t>((b + c) % setting.batch);
  }
  const ContrastiveLoss loss(LossKind::nre_c, setting.num_classes, 1.0, true);
  const RowLoss row_loss = {[](const void* context, std::size_t, std::span<const float> logits, std::span<float> d) {
                              return static_cast<const ContrastiveLoss*>(context)->row(logits, d);
                            },
                            &loss};
  std::vector<float> gradient(network.weights().size());
  const auto step = make_pair_step(isa, pool);
  std::vector<double> times;
  for (int i = 0; i <= repeats; ++i) {
    const Stopwatch watch;
    step->loss_and_gradient(network, {theta, x, candidates}, row_loss, gradient);
    if (i > 0) times.push_back(1e3 * watch.seconds());
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 0;
  const int repeats = argc > 2 ? std::atoi(argv[2]) : 5;
  ThreadPool pool(threads);
  const std::string isa = resolve_isa("auto");
  for (const Setting& s : {Setting{50, 2, 9, 1024}, Setting{128, 3, 9, 1024}, Setting{128, 3, 99, 1024}}) {
    for (const Norm norm : {Norm::none, Norm::layer, Norm::batch}) {
      const double ms = median_ms(isa, pool, s, norm, repeats);
      const double flops =
          12.0 * static_cast<double>(s.blocks * s.hidden * s.hidden * s.batch * (s.num_classes + 1));
      std::printf(
          "{\"variant\": \"%s-%s\", \"hidden\": %zu, \"blocks\": %zu, \"num_classes\": %zu, \"batch\": %zu, "
          "\"threads\": %d, \"ms\": %.3f, \"gflops\": %.1f}\n",
          isa.c_str(), std::string(norm_name(norm)).c_str(), s.hidden, s.blocks, s.num_classes, s.batch,
          pool.num_threads(), ms, flops / ms * 1e-6);
      std::fflush(stdout);
    }
  }
}
