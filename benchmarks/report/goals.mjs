/** Goals as ratios within one run: each returns rows { host, what, value, bound, unit, met, detail }. */
import { pairName } from '../cases.mjs';
import { exponent } from './fit.mjs';

const isPeer = (record) => record.contender !== 'attn';
export const peakOf = ({ peak_gflops, peak_gflops_before, peak_gflops_after }) =>
  peak_gflops ?? (peak_gflops_before ? Math.max(peak_gflops_before, peak_gflops_after) : undefined);
export const shareOf = (record) => (peakOf(record) && record.gflops ? record.gflops / peakOf(record) : undefined);
/** Share of the lower roof: multiply-adds in registers, or reading the weights. */
export const shareOfRoofs = (record) =>
  shareOf(record) && record.stream_ms ? Math.max(shareOf(record), record.stream_ms / record.min_ms) : undefined;

export function fastestPeer(records, one) {
  const peers = records.filter((r) => isPeer(r) && r.host === one.host && r.case === one.case && r.threads === one.threads);
  return peers.sort((a, b) => a.min_ms - b.min_ms)[0];
}

const encoders = (cases, model, lengths, batch = 1) =>
  cases.filter((c) => c.kind === 'encoder' && c.model === model && c.B === batch && !c.weights && lengths.includes(c.S));

export function goals(records, { cases: every }) {
  const [cases, int8] = [false, true].map((wanted) => every.filter((c) => Boolean(c.int8 ?? c.files === 'int8') === wanted));
  const rows = [];
  const ours = records.filter((r) => !isPeer(r));
  const groups = new Map(ours.map((r) => [`${r.host} ${r.variant}`, { host: r.host, variant: r.variant }]));

  const widest = ['avx512_vnni', 'avx512f', 'avx_vnni', 'avx2_fma', 'sse4_2', 'neon_dotprod', 'default_arch'].find((variant) =>
    groups.has(`native ${variant}`),
  );
  for (const { host, variant } of groups.values()) {
    const native = host === 'native';
    const find = (one, threads = 1) => ours.find((r) => r.host === host && r.variant === variant && r.case === one.name && r.threads === threads);
    /** Summarises several cases in a row with the worst value. */
    const judge = (goal, list, measure, { bound, atMost = false, unit = '%' }) => {
      const values = list.map((one) => [measure(one), one.name]).filter(([value]) => Number.isFinite(value));
      if (!values.length) return;
      values.sort(([a], [b]) => (atMost ? b - a : a - b));
      const [value, name] = values[0];
      rows.push({ goal, host, variant, value, bound, atMost, unit, met: atMost ? value <= bound : value >= bound, worst: name });
    };
    const share = (one) => shareOf(find(one) ?? {});
    const overPeer = (threads) => (one) => {
      const own = find(one, threads);
      return own && fastestPeer(records, own) && fastestPeer(records, own).min_ms / own.min_ms;
    };

    judge(
      'GEMM, M ≥ 16, K 384-3072: share of peak',
      cases.filter((c) => c.kind === 'gemm' && c.M >= 16 && c.K >= 384),
      share,
      { bound: 0.9 },
    );
    for (const [D, bound] of [
      [64, 0.8],
      [32, 0.68],
    ])
      judge(
        `attention, D ${D}: share of peak`,
        cases.filter((c) => c.kind === 'sdpa' && c.D === D && !c.weights),
        share,
        { bound },
      );
    for (const model of ['minilm', 'bert-base']) {
      judge(`${model}, S 128 and 512: share of peak`, encoders(cases, model, [128, 512]), share, { bound: 0.8 });
      const ofRoofs = (one) => shareOfRoofs(find(one) ?? {});
      judge(`${model}, S 16: share of the lower of peak and stream`, encoders(cases, model, [16]), ofRoofs, { bound: 0.85 });
      if (!native) {
        const [short, rest] = variant === 'relaxed' ? [1.6, 1.5] : [1.2, 1.2];
        judge(`${model}, S 16: ÷ onnxruntime-web`, encoders(cases, model, [16]), overPeer(1), { bound: short, unit: '×' });
        judge(`${model}, S 128 and 512: ÷ onnxruntime-web`, encoders(cases, model, [128, 512]), overPeer(1), { bound: rest, unit: '×' });
        if (variant === 'relaxed' || !groups.has(`${host} relaxed`))
          judge(`${model}, 2 threads: ÷ onnxruntime-web with 2`, encoders(cases, model, [16, 128, 512]), overPeer(2), { bound: 1.5, unit: '×' });
      }
      const gain = (one) => find(one)?.min_ms / find(one, 2)?.min_ms;
      judge(`${model}, S 128 and 512: 2 threads ÷ 1`, encoders(cases, model, [128, 512]), gain, { bound: 1.8, unit: '×' });
      judge(`${model}, S 16: 2 threads ÷ 1`, encoders(cases, model, [16]), gain, { bound: 1, unit: '×' });
    }
    const families = cases.filter((c) => c.kind === 'family');
    const shareOfBert = (one) => share(one) / share(families.find((c) => c.model === 'bert' && c.S === one.S));
    for (const S of [128, 512])
      judge(
        `families, S ${S}: share of peak ÷ BERT's`,
        families.filter((c) => c.model !== 'bert' && c.S === S),
        shareOfBert,
        { bound: 0.9, unit: '×' },
      );
    const deberta = families.filter((c) => c.model === 'deberta-v2');
    judge('deberta-v2: ÷ onnxruntime-web', deberta, overPeer(1), { bound: 1.3, unit: '×' });
    judge(
      'other families: ÷ onnxruntime-web',
      families.filter((c) => !deberta.includes(c)),
      overPeer(1),
      { bound: 1.2, unit: '×' },
    );
    // Only the best kernels are compared with peers, which always use their best.
    if (native && variant === widest)
      for (const threads of [1, 2]) {
        const plain = cases.filter((c) => ['encoder', 'sdpa', 'mha'].includes(c.kind) && !c.weights);
        for (const kind of ['encoder', 'sdpa', 'mha'])
          judge(
            `${kind}, ${threads} threads: ÷ the fastest peer`,
            plain.filter((c) => c.kind === kind),
            overPeer(threads),
            { bound: 1.2, unit: '×' },
          );
      }
    judge(
      'int8 GEMM, M ≥ 16: share of its own peak',
      int8.filter((c) => c.kind === 'gemm'),
      share,
      { bound: 0.85 },
    );
    // A backward takes the difference between `forward and backward` and `forward kept`.
    const training = (model, part) => cases.find((c) => c.kind === 'training' && c.model === model && c.part === part);
    const time = (model, part) => find(training(model, part) ?? {})?.min_ms;
    judge(
      'training, minilm S 128: backward ÷ forward',
      [training('minilm', 'forward and backward')].filter(Boolean),
      () => (time('minilm', 'forward and backward') - time('minilm', 'forward kept')) / time('minilm', 'forward'),
      { bound: 2.2, atMost: true, unit: '×' },
    );
    if (!native || variant === widest)
      for (const [model, bound] of native
        ? [
            ['small', 1.5],
            ['minilm', 1],
          ]
        : [['small', 2]])
        judge(`training step, ${model}: ÷ the fastest peer`, [training(model, 'step')].filter(Boolean), overPeer(1), { bound, unit: '×' });
    const { products = '' } = ours.find((r) => r.host === host && r.variant === variant && r.products) ?? {};
    const isOneInstruction = /vpdpbusd|relaxed dot|sdot/.test(products);
    const overFloat = (one) => find({ name: one.name.replace(/ int8.*$/, '') })?.min_ms / find(one)?.min_ms;
    for (const model of ['minilm', 'bert-base']) {
      judge(`int8 ${model}, S 128: ÷ own float32`, encoders(int8, model, [128]), overFloat, {
        bound: isOneInstruction ? 1.8 : native || variant === 'relaxed' ? 1.2 : 1.5,
        unit: '×',
      });
      for (const threads of [1, 2])
        if (!native || variant === widest)
          judge(`int8 ${model}, ${threads} threads: ÷ onnxruntime's int8`, encoders(int8, model, [16, 128, 512]), overPeer(threads), {
            bound: native ? 1.2 : 1.4,
            unit: '×',
          });
    }
    // In a browser without relaxed SIMD, simd is the best variant.
    const isBest = native ? variant === widest : variant === 'relaxed' || !groups.has(`${host} relaxed`);
    const texts = cases.filter((c) => c.kind === 'sentences');
    if (!native || isBest)
      for (const threads of [1, 2])
        judge(`texts to vectors, ${threads} threads: ÷ onnxruntime`, texts, overPeer(threads), { bound: isBest && !native ? 1.6 : 1.2, unit: '×' });
    if (!native || isBest)
      for (const threads of [1, 2])
        judge(
          `int8 texts to vectors, ${threads} threads: ÷ onnxruntime's int8`,
          int8.filter((c) => c.kind === 'sentences'),
          overPeer(threads),
          { bound: native ? 1.2 : 1.4, unit: '×' },
        );
    const loads = cases.filter((c) => c.kind === 'load' && !c.files);
    const stored = int8.filter((c) => c.kind === 'load' && c.files);
    judge('loading int8 files: float32 files ÷ them, median time', stored, (one) => find(loads[0])?.median_ms / find(one)?.median_ms, {
      bound: 2,
      unit: '×',
    });
    judge("loading int8 files: heap's peak ÷ that of float32", stored, (one) => find(one)?.bytes / find(loads[0])?.bytes, {
      bound: 0.35,
      atMost: true,
      unit: '×',
    });
    judge('loading a model: median time', loads, (one) => find(one)?.median_ms, { bound: 500, atMost: true, unit: 'ms' });
    judge("loading a model: (heap's peak - 20 MB) ÷ float32 weights", loads, (one) => (find(one)?.bytes - 20e6) / (4 * one.parameters), {
      bound: 1.25,
      atMost: true,
      unit: '×',
    });
    const cost = (one) => find(one)?.min_ms / find({ name: pairName(one) })?.min_ms - 1;
    for (const kind of ['sdpa', 'mha', 'encoder'])
      judge(
        `${kind}: what asking for weights costs`,
        cases.filter((c) => c.kind === kind && c.weights),
        cost,
        { bound: 0.08, atMost: true },
      );
    judge(
      'worked example, a call',
      cases.filter((c) => c.kind === 'example'),
      (one) => find(one)?.min_ms * 1e3,
      { bound: 10, atMost: true, unit: 'µs' },
    );
    for (const D of [64, 32]) {
      const line = cases
        .filter((c) => c.kind === 'sdpa' && c.D === D && !c.weights)
        .map((c) => [c.S, find(c)])
        .filter(([, r]) => r);
      if (line.length < 2) continue;
      const name = [{ name: `S ${line[0][0]} to ${line.at(-1)[0]}` }];
      const best = Math.max(...line.map(([, r]) => r.gflops));
      judge(`attention, D ${D}: fall of GFLOP/s with S`, name, () => 1 - line.at(-1)[1].gflops / best, { bound: 0.15, atMost: true });
      const bytes = line.filter(([, r]) => r.bytes).map(([S, r]) => [S, r.bytes]);
      if (bytes.length > 1) judge(`attention, D ${D}: exponent of bytes in S`, name, () => exponent(bytes), { bound: 1.05, atMost: true, unit: '' });
    }
  }
  return rows;
}
