// Bugs that could be: in `file` of src/attn the text `find`, which is there once, becomes `put`, and one of Catch2's `tests` turns red.

/** @type {readonly { file: string, find: string, put: string, tests: string }[]} */
export const mutants = [
  // Kernels
  { file: 'kernels/exp.hpp', find: 'argument < least', put: 'argument > least', tests: '[kernels]' },
  { file: 'kernels/exp.hpp', find: '0x1.555492p-3F', put: '0x1.555592p-3F', tests: '[kernels]' },
  { file: 'kernels/activation.hpp', find: 'size > F(9.02F), F(9.02F)', put: 'size > F(8.02F), F(8.02F)', tests: '[kernels]' },
  { file: 'kernels/activation.hpp', find: 'size < F(0.55F)', put: 'size < F(0.85F)', tests: '[kernels]' },
  { file: 'kernels/activation.hpp', find: 'x < F(0.0F), tail, F(1.0F) - tail', put: 'x <= F(0.0F), tail, F(1.0F) - tail', tests: '[kernels]' },
  { file: 'kernels/softmax.hpp', find: 'sum = (sum + first) + second', put: 'sum = (sum + first) + first', tests: '[kernels]' },
  { file: 'kernels/norm.hpp', find: '(value - high) - low', put: 'value - high', tests: '[kernels],[ops]' },
  {
    file: 'kernels/norm.hpp',
    find: 'const F factor(1 / std::sqrt(mean + eps))',
    put: 'const F factor(1 / (std::sqrt(mean) + eps))',
    tests: '[kernels],[ops]',
  },
  { file: 'kernels/rows.hpp', find: 'xsimd::select(added == blocked, blocked, score + added)', put: 'score + added', tests: '[kernels],[ops]' },
  {
    file: 'kernels/pack.cpp',
    find: 'bias != nullptr && j < columns ? bias[first + j]',
    put: 'bias != nullptr && j < columns ? bias[j]',
    tests: '[kernels]',
  },
  { file: 'kernels/philox.hpp', find: 'key[1] += 0xBB67AE85', put: 'key[1] += 0xBB67AE84', tests: '[kernels],[dropout]' },
  // The thread pool
  { file: 'parallel/thread_pool.cpp', find: 'if (has_ended(state) && worker != 0) sleepers_[0].wake();', put: '', tests: '[threads]' },
  {
    file: 'parallel/thread_pool.cpp',
    find: 'pool_size.store(1, std::memory_order_relaxed);\n  if (pool == nullptr)',
    put: 'if (pool == nullptr)',
    tests: '[threads]',
  },
  { file: 'parallel/thread_pool.cpp', find: 'new (&pool_mutex) std::mutex;', put: '', tests: '[threads]' },
  {
    file: 'parallel/thread_pool.cpp',
    find: 'if (parallel::inside != parallel::Inside::nothing)',
    put: 'if (parallel::inside == parallel::Inside::task)',
    tests: '[threads]',
  },
  { file: 'parallel/thread_pool.cpp', find: 'state_.fetch_and(~kMostTasks);', put: '', tests: '[threads]' },
  { file: 'parallel/thread_pool.cpp', find: 'if (inside == Inside::task) return;', put: '', tests: '[threads]' },
  // Tensors
  { file: 'tensor/tensor.hpp', find: 'tensor.data() + tensor.data_offset()', put: 'tensor.data()', tests: '[tensor]' },
  { file: 'tensor/shape.cpp', find: 'if (dim == 0) return 0;', put: 'if (dim == 0) continue;', tests: '[tensor]' },
  // Attention
  { file: 'ops/attention_core.cpp', find: 'row.sum *= factor;', put: '', tests: '[ops]' },
  { file: 'ops/attention_core.cpp', find: 'none ? 0.0F : row.most', put: 'row.most', tests: '[ops]' },
  {
    file: 'ops/attention_core.cpp',
    find: 'if (finite_values_[kv] != 0) return kernel_.gemm(gemm);',
    put: 'return kernel_.gemm(gemm);',
    tests: '[ops]',
  },
  { file: 'ops/attention_core.cpp', find: 'sum / static_cast<float>(heads)', put: 'sum', tests: '[ops],[layers]' },
  { file: 'ops/mask_rows.cpp', find: 'causal_ ? query + 1 : S_', put: 'causal_ ? query + 2 : S_', tests: '[ops]' },
  {
    file: 'ops/mask_rows.cpp',
    find: 'query > window ? std::min(seen, query - window)',
    put: 'query > window ? std::min(seen, query - window + 1)',
    tests: '[ops],[models]',
  },
  { file: 'ops/mask_rows.cpp', find: 'if (rank == 3) source.batch = stride(0);', put: '', tests: '[ops]' },
  {
    file: 'ops/softmax.cpp',
    find: 'static_cast<std::size_t>(dim < 0 ? dim + rank : dim)',
    put: 'static_cast<std::size_t>(dim < 0 ? rank - 1 : dim)',
    tests: '[ops]',
  },
  { file: 'ops/dropout.cpp', find: 'std::ceil(', put: 'std::floor(', tests: '[dropout]' },
  { file: 'ops/dropout.cpp', find: 'words[i] >> 8 < threshold_', put: 'words[i] >> 8 <= threshold_', tests: '[dropout]' },
  { file: 'ops/pooling.cpp', find: 'shape.rank() == 2 && shape[0] > 1 ? b * L : 0', put: '0', tests: '[ops],[layers],[models]' },
  { file: 'ops/pooling.cpp', find: '1e-12F', put: '1e-3F', tests: '[ops],[models]' },
  { file: 'store/packed_linear.cpp', find: 'first++, k', put: 'first, k', tests: '[layers],[models]' },
  { file: 'ops/positions.cpp', find: 'static_cast<double>(h - lower) + 0.5', put: 'static_cast<double>(h - lower) + 1.5', tests: '[ops]' },
  { file: 'ops/cosine.cpp', find: 'lengths == 0 ? 0.0F : ', put: '', tests: '[layers],[ops]' },
  { file: 'store/scratch.cpp', find: 'workspace_->taken_.clear(std::memory_order_release);', put: '', tests: '[scratch]' },
  // Files and models
  {
    file: 'io/safetensors_header.cpp',
    find: 'if (entry.first > end) refuse_tensor(entry.name, {"there is a hole before its data"});',
    put: '',
    tests: '[io]',
  },
  { file: 'io/safetensors_header.cpp', find: 'if (dim > kMost / size)', put: 'if (size > kMost)', tests: '[io]' },
  { file: 'io/tokenizer.cpp', find: 'n1 = most / 2;', put: 'n1 = most - most / 2;', tests: '[io],[models]' },
  { file: 'models/text_model.cpp', find: 'begin += kMostSorted', put: 'begin += kMostSorted + 1', tests: '[models]' },
  {
    file: 'models/text_model.cpp',
    find: 'all.data() + rows[i].index * width',
    put: 'all.data() + rows[rows.size() - 1 - i].index * width',
    tests: '[models]',
  },
  { file: 'models/encoder_model.cpp', find: 'if (kept < length) return;', put: '', tests: '[models]' },
  { file: 'layers/state_dict.cpp', find: 'if (!expected.contains(name)) unexpected.push_back(name);', put: '{}', tests: '[layers],[models]' },
];
