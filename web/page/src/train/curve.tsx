import { useRef } from 'preact/hooks';
import { SavePicture } from '../ui/save_picture.tsx';
import { useWidth } from '../ui/size.ts';

export interface Line {
  readonly name: string;
  readonly kind: 'training' | 'held';
  readonly run: number;
  readonly values: readonly (readonly [step: number, value: number])[];
}

const height = 150;
const [left, right, top, bottom] = [48, 10, 8, 24];

/** Rounds up to a round axis end, and returns the distance of its marks. */
export function axisOf(most: number, marks = 4): { readonly end: number; readonly every: number } {
  const rough = Math.max(most, 1e-9) / marks;
  const size = 10 ** Math.floor(Math.log10(rough));
  const every = [1, 2, 2.5, 5, 10].map((each) => each * size).find((each) => each >= rough * 0.999)!;
  return { end: Math.ceil(most / every - 1e-9) * every || every, every };
}

const marksOf = ({ end, every }: { readonly end: number; readonly every: number }) =>
  Array.from({ length: Math.round(end / every) + 1 }, (_, i) => i * every);

export function Curve({
  name,
  lines,
  most,
  steps,
  moment,
  write,
}: {
  name: string;
  lines: readonly Line[];
  most: number;
  steps: number;
  /** The marked step. */
  moment: number | undefined;
  write: (value: number) => string;
}) {
  const frame = useRef<HTMLDivElement>(null);
  const width = Math.max(220, useWidth(frame));
  const [across, up] = [axisOf(steps, width > 400 ? 5 : 3), axisOf(most, 4)];
  const x = (step: number) => left + (step / across.end) * (width - left - right);
  const y = (value: number) => height - bottom - (Math.min(value, up.end) / up.end) * (height - top - bottom);
  return (
    <figure class="train-curve" ref={frame}>
      <figcaption>
        <span aria-hidden="true">{name}</span>
        {lines.length > 0 && (
          <SavePicture title={name} file={`attn-${name.toLowerCase().replace(' ', '-')}`} picture={() => frame.current?.querySelector('svg')} />
        )}
      </figcaption>
      <svg viewBox={`0 0 ${width} ${height}`} width={width} height={height} role="img" aria-label={name}>
        {marksOf(up).map((value) => (
          <g key={value}>
            <line class="grid" x1={left} x2={width - right} y1={y(value)} y2={y(value)} />
            <text x={left - 6} y={y(value) + 4} text-anchor="end">
              {write(value)}
            </text>
          </g>
        ))}
        {marksOf(across).map((step) => (
          <text key={step} x={x(step)} y={height - 6} text-anchor={step === 0 ? 'start' : step === across.end ? 'end' : 'middle'}>
            {step === across.end ? `step ${step}` : step}
          </text>
        ))}
        {moment !== undefined && <line class="moment" x1={x(moment)} x2={x(moment)} y1={top} y2={height - bottom} />}
        {lines.map(({ name: called, kind, run, values }) => (
          <polyline
            key={called}
            class={`${kind} run-${run}`}
            points={values.map(([step, value]) => `${x(step).toFixed(1)},${y(value).toFixed(1)}`).join(' ')}
          />
        ))}
      </svg>
    </figure>
  );
}
