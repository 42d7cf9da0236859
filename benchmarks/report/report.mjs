/** Writes results.md and plots from the records of one run. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { flops, shapeOf } from '../cases.mjs';
import { exponent } from './fit.mjs';
import { fastestPeer, goals, peakOf, shareOf, shareOfRoofs } from './goals.mjs';
import { chart } from './plot.mjs';

const table = (head, rows) => [head, head.map((_, i) => (i ? '--:' : ':--')), ...rows].map((row) => `| ${row.join(' | ')} |`).join('\n');
const number = (value) =>
  value === undefined ? '' : value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(value >= 0.1 ? 2 : 4);
const percent = (value) => (value === undefined ? '' : `${(100 * value).toFixed(0)} %`);
const bytes = (value) => (value === undefined ? '' : value < 2 ** 20 ? `${(value / 2 ** 10).toFixed(1)} KiB` : `${(value / 2 ** 20).toFixed(1)} MiB`);
const nameOf = ({ contender, variant }) => (variant ? `${contender} ${variant}` : contender);

function goalTable(rows) {
  const show = (value, unit) => (unit === '%' ? percent(value) : unit === '×' ? `${value.toFixed(2)} ×` : `${number(value)}${unit && ` ${unit}`}`);
  return table(
    ['goal', 'host', 'variant', 'measured', 'asked', '', 'worst case'],
    rows.map((r) => [
      r.goal,
      r.host,
      r.variant,
      show(r.value, r.unit),
      `${r.atMost ? '≤' : '≥'} ${show(r.bound, r.unit)}`,
      r.met ? 'met' : '**missed**',
      r.worst,
    ]),
  );
}

function hostTable(records) {
  const hasBytes = records.some(({ bytes }) => bytes);
  const hasTexts = records.some(({ texts }) => texts);
  const hasStream = records.some((r) => r.stream_ms);
  return table(
    [
      ...[
        'case',
        'contender',
        'threads',
        'min ms',
        'median ms',
        'GFLOP/s',
        'of peak',
        ...(hasStream ? ['stream ms', 'of both'] : []),
        ...(hasTexts ? ['texts/s'] : []),
        '÷ fastest peer',
      ],
      ...[...(hasBytes ? ['bytes'] : []), 'samples'],
    ],
    records.map((r) => {
      const peer = r.contender === 'attn' ? fastestPeer(records, r) : undefined;
      return [
        r.case,
        nameOf(r),
        r.threads,
        number(r.min_ms),
        number(r.median_ms),
        number(r.gflops),
        percent(r.threads === 1 ? shareOf(r) : undefined),
        ...(hasStream ? [number(r.stream_ms), percent(r.threads === 1 ? shareOfRoofs(r) : undefined)] : []),
        ...(hasTexts ? [number(r.texts && (1e3 * r.texts) / r.min_ms)] : []),
        peer ? `${(peer.min_ms / r.min_ms).toFixed(2)} ×` : '',
        ...(hasBytes ? [bytes(r.bytes)] : []),
        r.samples.length,
      ];
    }),
  );
}

function colour({ contender, variant }) {
  if (contender === 'attn') return ['simd', 'sse4_2', 'emulated'].includes(variant) ? 1 : variant === 'avx512f' ? 5 : 0;
  return { 'onnxruntime-web': 2, 'onnxruntime-node': 2, pytorch: 3 }[contender] ?? 4;
}

/** Lines by contender and threads; forms of a peer share a line, with the faster one at each S. */
function linesOf(records, cases, value) {
  const lines = new Map();
  for (const one of cases)
    for (const r of records.filter((each) => each.case === one.name && value(each) !== undefined)) {
      const label = r.contender === 'attn' ? nameOf(r) : r.contender;
      const name = `${label}, ${r.threads} thread${r.threads > 1 ? 's' : ''}`;
      if (!lines.has(name)) lines.set(name, { name, colour: colour(r), dashed: r.threads > 1, points: [], best: new Map() });
      const { points, best } = lines.get(name);
      if (best.get(one.S)?.min_ms <= r.min_ms) continue;
      best.set(one.S, r);
      const at = points.findIndex(([S]) => S === one.S);
      points.splice(at < 0 ? points.length : at, at < 0 ? 0 : 1, [one.S, value(r)]);
    }
  return [...lines.values()];
}

function peakLines(records) {
  const peaks = new Map();
  for (const r of records) if (peakOf(r)) peaks.set(r.variant, Math.max(peaks.get(r.variant) ?? 0, peakOf(r)));
  return [...peaks].map(([variant, y]) => ({ name: `peak, ${variant}, 1 thread`, colour: colour({ contender: 'attn', variant }), y }));
}

function* plots(host, records, { cases }) {
  const gflops = (r) => r.gflops;
  const groups = [
    ...['minilm', 'bert-base'].map((model) => ({
      file: model,
      title: `${model}, batch 1`,
      list: cases.filter((c) => c.model === model && c.B === 1 && !c.weights),
    })),
    ...[64, 32].map((D) => ({
      file: `attention-${D}`,
      title: `attention, 12 heads of width ${D}`,
      list: cases.filter((c) => c.kind === 'sdpa' && c.D === D && !c.weights),
    })),
  ];
  for (const { file, title, list } of groups) {
    const mine = records.filter((r) => list.some(({ name }) => name === r.case));
    const series = linesOf(mine, list, gflops);
    if (series.some(({ points }) => points.length > 1))
      yield [`gflops-${file}-${host}.svg`, chart({ title: `${title}: ${host}`, xLabel: 'S', yLabel: 'GFLOP/s', series, levels: peakLines(mine) })];
  }
  const scaling = (what, value, yLabel, format) => {
    const series = [64, 32].flatMap((D, i) =>
      [false, true].flatMap((weights) => {
        const list = cases.filter((c) => c.kind === 'sdpa' && c.D === D && c.weights === weights);
        const own = records.filter((r) => r.contender === 'attn' && r.threads === 1);
        const variant = ['relaxed', 'avx512f', 'avx2_fma', 'simd'].find((name) => own.some((r) => r.variant === name));
        const [line] = linesOf(
          own.filter((r) => r.variant === variant),
          list,
          value,
        );
        if (!line || line.points.length < 2) return [];
        const name = `D ${D}${weights ? ', weights' : ''}: S^${exponent(line.points).toFixed(2)}`;
        return [{ ...line, name, colour: i ? 2 : 0, dashed: weights }];
      }),
    );
    return series.length
      ? [[`${what}-${host}.svg`, chart({ title: `attention, ${what} of a call: ${host}`, xLabel: 'S', yLabel, series, logarithmic: true, format })]]
      : [];
  };
  yield* scaling('time', (r) => r.min_ms, 'ms', String);
  yield* scaling('memory', (r) => r.bytes && r.bytes / 2 ** 20, 'MiB', String);
}

export function writeReport(results, list, folder) {
  const byName = new Map(list.cases.map((one) => [one.name, { ...one, shape: shapeOf(list, one) }]));
  // Computes GFLOP/s by one formula for every host and peer.
  for (const r of results.records) {
    const work = byName.has(r.case) ? flops(byName.get(r.case)) : 0;
    if (work) r.gflops = (work * 1e-6) / r.min_ms;
  }
  const { machine, records, notes } = results;
  const hosts = [...new Set(records.map(({ host }) => host))];
  mkdirSync(folder, { recursive: true });
  const files = [];
  const write = (name, text) => (writeFileSync(join(folder, name), text), files.push(join(folder, name)));

  const parts = [
    '# Benchmark results',
    `${machine.cpu}, ${machine.cores} cores, ${machine.memory_gib} GiB, ${machine.system}; ${results.date.slice(0, 10)}.` +
      (results.quick ? ' A quick run: few short samples.' : ''),
    '## Goals',
    goalTable(goals(records, list)),
  ];
  for (const host of hosts) {
    const mine = records.filter((r) => r.host === host);
    const engines = [...new Set(mine.map(({ engine }) => engine))].join(', ');
    parts.push(`## ${host}`, `${engines}${mine.some((r) => r.isolated) ? ', cross-origin isolated' : ''}.`, hostTable(mine));
    for (const [name, svg] of plots(host, mine, list)) {
      write(name, svg);
      parts.push(`![${name.replace(/\.svg$/, '')}](${name})`);
    }
  }
  if (notes.length) parts.push('## Notes', notes.map(({ host, note }) => `- ${host}: ${note}`).join('\n'));
  write('results.md', parts.join('\n\n') + '\n');
  return files;
}
