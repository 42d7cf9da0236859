/**
 * Line charts as SVG, for light and dark pages. A chart library would be the largest dependency for two kinds of axis,
 * lines and labels.
 */
const width = 760;
const plot = { left: 64, top: 46, right: 520, bottom: 330 };
const height = 384;

/** Colours depend on the contender, so that it looks the same in every chart. */
const style = `
  .page { fill: #fcfcfb } text { font: 13px system-ui, sans-serif; fill: #52514e } .title { font-size: 16px; font-weight: 600; fill: #0b0b0b }
  .grid { stroke: #e1e0d9 } .axis { stroke: #a5a49c }
  path { fill: none; stroke-width: 2; stroke-linejoin: round } .thin { stroke-width: 1.5 } .key { stroke-width: 2 }
  .c0 { --c: #2a78d6 } .c1 { --c: #1baf7a } .c2 { --c: #eb6834 } .c3 { --c: #4a3aa7 } .c4 { --c: #b3801e } .c5 { --c: #7d7c76 }
  path[class^=c], line[class^=c] { stroke: var(--c) } circle { fill: var(--c); stroke: #fcfcfb; stroke-width: 2 }
  @media (prefers-color-scheme: dark) {
    .page { fill: #1a1a19 } text { fill: #c3c2b7 } .title { fill: #fff }
    .grid { stroke: #2c2c2a } .axis { stroke: #6b6a64 } circle { stroke: #1a1a19 }
    .c0 { --c: #3987e5 } .c1 { --c: #199e70 } .c2 { --c: #d95926 } .c3 { --c: #9085e9 } .c4 { --c: #c98500 } .c5 { --c: #a09f98 }
  }`;

const escape = (text) => String(text).replace(/[&<>"]/g, (c) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[c]);
const fixed = (value) => value.toFixed(1);

/** A horizontal line; dots have round caps. */
function level(kind, from, to, y, dashes = '') {
  const dashed = dashes && ` stroke-dasharray="${dashes}"${dashes === dots ? ' stroke-linecap="round"' : ''}`;
  return `<line class="${kind}" x1="${from}" x2="${to}" y1="${fixed(y)}" y2="${fixed(y)}"${dashed}/>`;
}
const dots = '1 4';
const dashes = '7 4';

/** Round tick values that cover the values: from 0 for a linear axis, powers of ten for a logarithmic one. */
function ticks(values, logarithmic) {
  const most = Math.max(...values);
  if (logarithmic) {
    const [from, to] = [Math.floor(Math.log10(Math.min(...values))), Math.ceil(Math.log10(most))];
    return Array.from({ length: Math.max(to, from + 1) - from + 1 }, (_, i) => 10 ** (from + i));
  }
  const rough = most / 5;
  const unit = 10 ** Math.floor(Math.log10(rough));
  const step = unit * [1, 2, 5, 10].find((factor) => factor * unit >= rough);
  return Array.from({ length: Math.ceil(most / step) + 1 }, (_, i) => i * step);
}

/**
 * series [{ name, colour 0..5, dashed, points [[x, y]] }], levels [{ name, colour, y }]. The x axis is logarithmic with
 * the points' values as ticks; the y axis begins at 0 or at a power of ten. format(y) formats a tick.
 */
export function chart({ title, xLabel, yLabel, series, levels = [], logarithmic = false, format = String }) {
  const xs = [...new Set(series.flatMap(({ points }) => points.map(([x]) => x)))].sort((a, b) => a - b);
  const yTicks = ticks([...series.flatMap(({ points }) => points.map(([, y]) => y)), ...levels.map(({ y }) => y)], logarithmic);
  const along = (value, from, to, at) => (to === from ? 0.5 : (at(value) - at(from)) / (at(to) - at(from)));
  const x = (value) => plot.left + along(value, xs[0], xs.at(-1), Math.log) * (plot.right - plot.left);
  const y = (value) => plot.bottom - along(value, yTicks[0], yTicks.at(-1), logarithmic ? Math.log : Number) * (plot.bottom - plot.top);

  const grid = [
    ...yTicks.map(
      (t) =>
        level('grid', plot.left, plot.right, y(t)) +
        `<text x="${plot.left - 8}" y="${fixed(y(t) + 4)}" text-anchor="end">${escape(format(t))}</text>`,
    ),
    ...xs.map(
      (t) =>
        `<line class="axis" x1="${fixed(x(t))}" x2="${fixed(x(t))}" y1="${plot.bottom}" y2="${plot.bottom + 5}"/>` +
        `<text x="${fixed(x(t))}" y="${plot.bottom + 21}" text-anchor="middle">${t}</text>`,
    ),
    level('axis', plot.left, plot.right, plot.bottom),
  ];
  const flat = levels.map(({ colour, y: at }) => level(`c${colour} thin`, plot.left, plot.right, y(at), dots));
  const drawn = series.map(({ colour, dashed, points }) => {
    const path = points.map(([px, py], i) => `${i ? 'L' : 'M'}${fixed(x(px))} ${fixed(y(py))}`).join('');
    const marks = points.map(([px, py]) => `<circle class="c${colour}" cx="${fixed(x(px))}" cy="${fixed(y(py))}" r="4"/>`).join('');
    return `<path class="c${colour}" d="${path}"${dashed ? ` stroke-dasharray="${dashes}"` : ''}/>${marks}`;
  });
  // Labels are next to the ends of their lines, moved apart to avoid overlap.
  const names = [
    ...series.map(({ name, colour, dashed, points }) => ({ name, colour, dash: dashed ? dashes : '', at: y(points.at(-1)[1]) })),
    ...levels.map(({ name, colour, y: at }) => ({ name, colour, dash: dots, at: y(at) })),
  ].sort((a, b) => a.at - b.at);
  const apart = 18;
  names.forEach((each, i) => (each.at = i ? Math.max(each.at, names[i - 1].at + apart) : each.at));
  const below = (names.at(-1)?.at ?? 0) - plot.bottom;
  if (below > 0) {
    names.at(-1).at -= below;
    for (let i = names.length - 2; i >= 0; i--) names[i].at = Math.min(names[i].at, names[i + 1].at - apart);
  }
  const key = names.map(
    ({ name, colour, dash, at }) =>
      level(`c${colour} key`, plot.right + 14, plot.right + 40, at, dash) +
      `<text x="${plot.right + 47}" y="${fixed(at + 4)}">${escape(name)}</text>`,
  );
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}"
  role="img" aria-label="${escape(title)}">
<style>${style}
</style>
<rect class="page" width="${width}" height="${height}"/>
<text class="title" x="16" y="26">${escape(title)}</text>
${[...grid, ...flat, ...drawn, ...key].join('\n')}
<text x="${(plot.left + plot.right) / 2}" y="${height - 10}" text-anchor="middle">${escape(xLabel)}</text>
<text transform="translate(16 ${(plot.top + plot.bottom) / 2}) rotate(-90)" text-anchor="middle">${escape(yLabel)}</text>
</svg>
`;
}
