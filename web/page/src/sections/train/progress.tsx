import { fixed, shortNumber } from '../../formats/numbers.ts';
import { Curve, type Line } from '../../train/curve.tsx';
import { changes } from '../../train/settings.ts';
import { beside, moment, runs, settings, step, stepsPerSecond } from '../../train/state.ts';
import { Bar } from '../../ui/bar.tsx';
import { Term } from '../../ui/term.tsx';

const percent = (share: number) => `${fixed(100 * share, 1)} %`;

function Figure({ name, children }: { name: string; children: string }) {
  return (
    <div class="train-number">
      <span aria-hidden="true">{name}</span>
      <strong class="figure" role="group" aria-label={name}>
        {children}
      </strong>
    </div>
  );
}

export function Numbers() {
  const [first, second] = runs.value;
  const none = '–';
  const loss = (of: typeof first) => (of ? fixed(of.loss, 4) : none);
  const held = (of: typeof first) => (of ? percent(of.points.at(-1)!.held.accuracy) : none);
  return (
    <div class="train-numbers">
      <Figure name="Step">{String(step.value)}</Figure>
      <Figure name="Loss">{loss(first)}</Figure>
      <Figure name="Held-out accuracy">{held(first)}</Figure>
      {second && <Figure name="Loss, second run">{loss(second)}</Figure>}
      {second && <Figure name="Held-out accuracy, second run">{held(second)}</Figure>}
      <Figure name="Steps a second">{stepsPerSecond.value === undefined ? none : fixed(stepsPerSecond.value, 0)}</Figure>
    </div>
  );
}

export function Curves() {
  const all = runs.value;
  const linesOf = (read: (score: { readonly loss: number; readonly accuracy: number }) => number): readonly Line[] =>
    all.flatMap(({ points }, run) =>
      (['training', 'held'] as const).map((kind) => ({
        name: `${kind} ${run}`,
        kind,
        run,
        values: points.map((point) => [point.step, read(point[kind])] as const),
      })),
    );
  const losses = linesOf(({ loss }) => loss);
  // A rare spike of the loss would flatten the rest of the curve.
  const most = Math.max(
    0.5,
    ...losses.map(({ values }) => Math.max(...values.slice(0, 1).map(([, value]) => value), ...values.slice(-5).map(([, value]) => value))),
  );
  const steps = Math.max(settings.value.steps, step.value);
  const other = changes[beside.value]?.label(settings.value);
  return (
    <>
      <Curve
        name="Loss curve"
        lines={losses}
        most={most}
        steps={steps}
        moment={moment.value}
        write={(value) => String(Number(value.toPrecision(2)))}
      />
      <Curve
        name="Accuracy curve"
        lines={linesOf(({ accuracy }) => accuracy)}
        most={1}
        steps={steps}
        moment={moment.value}
        write={(value) => `${Math.round(100 * value)} %`}
      />
      <p class="train-legend">
        <span class="held run-0">held out</span>
        <span class="training run-0">training</span>
        {other && <span class="held run-1">{other}, held out</span>}
        {other && <span class="training run-1">training</span>}
      </p>
    </>
  );
}

export function Norms() {
  const all = runs.value;
  const most = Math.max(...all.flatMap(({ norms }) => norms.map(({ norm }) => norm)), 1e-12);
  const [longest] = all.map(({ norms }) => norms.map(({ part }) => part)).sort((a, b) => b.length - a.length);
  const parts = longest ?? [];
  return (
    <table class="train-norms">
      <caption>
        Norm of the <Term word="gradient" /> by layer
      </caption>
      <thead class={all.length > 1 ? '' : 'visually-hidden'}>
        <tr>
          <th scope="col">part</th>
          {all.map((_, run) => (
            <th scope="col" key={run}>
              {run === 0 ? 'as set' : changes[beside.value]?.label(settings.value)}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {parts.map((part) => (
          <tr key={part}>
            <th scope="row">{part}</th>
            {all.map(({ norms }, run) => (
              <td key={run}>
                <Norm of={norms.find((each) => each.part === part)?.norm} most={most} />
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

const Norm = ({ of, most }: { of: number | undefined; most: number }) =>
  of === undefined ? (
    <>–</>
  ) : (
    <span class="bar-number">
      <Bar share={of / most} class="bar" />
      <span>{shortNumber(of)}</span>
    </span>
  );
