import type { ComponentChildren } from 'preact';
import { useRef } from 'preact/hooks';
import { cellChosen } from '../../state/pointed.ts';
import { layerTrace, type LayerInFocus } from '../../state/run.ts';
import { update, view } from '../../state/view.ts';
import { ofHead } from '../../state/walk.ts';
import { largest, Strip } from '../../ui/strip.tsx';
import { useSeen } from '../../ui/seen.ts';
import { useWidth } from '../../ui/size.ts';

const [gap, title, strip] = [10, 22, 22];
const tops = [title, title + 44, title + 118, title + 192] as const;
const height = tops[3] + strip + 2;

/** What each head gathers for one word, and how the results become one row. */
export function Concatenation() {
  const frame = useRef<HTMLDivElement>(null);
  const [width, isNear] = [useWidth(frame), useSeen(frame, 300)];
  const of = isNear ? layerTrace.value : undefined;
  return (
    <figure class="concatenation">
      <div ref={frame} style={{ minHeight: `${height}px` }}>
        {of && width > 0 && <Picture of={of} width={width} />}
      </div>
      <figcaption class="note">
        Click a head to look at it in all parts of the page. A head that is off adds only zeros. In the last row, violet is positive and gold
        negative.
      </figcaption>
    </figure>
  );
}

function Picture({ of, width }: { of: LayerInFocus; width: number }) {
  const { trace, run, layer } = of;
  const { heads, layers, hiddenSize } = run.model;
  const row = Math.min(cellChosen.value.row, run.tokens.length - 1);
  const inFocus = Math.min(view.value.head, heads - 1);
  const each = (width - gap * (heads - 1)) / heads;
  const side = width / heads;
  const rowOf = (values: Float32Array, length: number) => values.subarray(row * length, (row + 1) * length);
  const results = Array.from({ length: heads }, (_, head) => rowOf(ofHead(trace.context, head).data, trace.context.dims[3]!));
  const most = Math.max(...results.map(largest));
  const output = rowOf(trace.output.data, hiddenSize);
  const word = run.tokens[row];
  return (
    <svg width={width} height={height} role="img" aria-label={`Layer ${layer + 1}: the results of ${heads} heads for ${word}, side by side`}>
      <Name y={tops[0]}>{`where “${word}” looks in layer ${layer + 1} of ${layers}, by head`}</Name>
      <Name y={tops[1]}>what each head gathers there</Name>
      <Name y={tops[2]}>{`side by side: one row of ${heads * trace.context.dims[3]!} numbers`}</Name>
      <Name y={tops[3]}>
        mixed by W<tspan dy="3">O</tspan>
        <tspan dy="-3">: what attention adds to “{word}”</tspan>
      </Name>
      {results.map((values, head) => {
        const [x, weights] = [head * (each + gap), rowOf(ofHead(trace.weights, head).data, run.tokens.length)];
        return (
          <g key={head} class={head === inFocus ? 'concatenation-head chosen' : 'concatenation-head'} onClick={() => update({ head })}>
            <rect class="concatenation-ground" x={x} y={tops[0] - 2} width={each} height={tops[1] + strip + 4 - tops[0]} />
            <Strip kind="key" values={weights} x={x} y={tops[0]} width={each} height={strip} most={1} />
            <Strip kind="value" values={values} x={x} y={tops[1]} width={each} height={strip} most={most} />
            <g
              key={`${word} ${layer}`}
              class="concatenation-part"
              style={{ '--from-x': `${x - head * side}px`, '--from-y': `${tops[1] - tops[2]}px` }}
            >
              <Strip kind="value" values={values} x={head * side} y={tops[2]} width={side - 1} height={strip} most={most} />
            </g>
          </g>
        );
      })}
      <Strip kind="signed" values={output} x={0} y={tops[3]} width={width} height={strip} most={largest(output)} />
    </svg>
  );
}

const Name = ({ y, children }: { y: number; children: ComponentChildren }) => (
  <text x={0} y={y - 7}>
    {children}
  </text>
);
