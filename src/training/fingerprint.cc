#include "training/fingerprint.h"

#include "nrec/core/options.h"
#include "nrec/io/file.h"

namespace nrec {

namespace {

template <class T>
std::string_view bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

}  // namespace

std::string training_fingerprint(const TrainingData& data, const PairNetworkShape& shape,
                                 const TrainingOptions& options, std::uint64_t seed, std::string_view isa,
                                 const std::string& success) {
  std::string text = content_hash(bytes_of(data.theta.values())) + content_hash(bytes_of(data.x.values())) +
                     content_hash(bytes_of(data.training));
  const auto add = [&](const std::string& word) { text += '|' + word; };
  for (const std::size_t number : {shape.dim_theta, shape.dim_x, shape.hidden_features, shape.num_blocks,
                                   data.loss.num_classes(), data.batch_size})
    add(std::to_string(number));
  add(std::string(norm_name(shape.norm)));
  add(std::string(loss_name(data.loss.kind())));
  for (const double number : {data.loss.gamma(), options.learning_rate, options.clip_max_norm})
    add(number_text(number));
  add(options.contrast);
  if (options.regime != "fixed") add(options.regime);
  if (options.regime == "joint") add(std::to_string(options.steps_per_epoch));
  add(options.learning_rate_schedule);
  // The length of the run shapes the schedule, so there it belongs to the name.
  if (options.learning_rate_schedule == "cosine") add(std::to_string(options.max_num_epochs));
  if (options.weight_decay > 0) add("decay " + number_text(options.weight_decay));
  if (options.ema_epochs > 0) add("average " + number_text(options.ema_epochs));
  // Words for what is not the default, so that older checkpoints keep their name.
  const TrainingOptions defaults;
  if (options.select_epoch != defaults.select_epoch) add("select " + options.select_epoch);
  if (options.information_thetas != defaults.information_thetas)
    add("information " + std::to_string(options.information_thetas));
  if (options.information_epochs != defaults.information_epochs)
    add("information " + options.information_epochs);
  if (options.gradients != defaults.gradients) add("gradients " + options.gradients);
  if (options.standardise_from != defaults.standardise_from) add("standardise " + options.standardise_from);
  add(std::to_string(seed));
  add(std::string(isa));
  if (!success.empty()) add(success);
  return content_hash(text);
}

}  // namespace nrec
