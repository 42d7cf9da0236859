import type { FunctionComponent } from 'preact';
import { useEffect } from 'preact/hooks';
import '../styles/stepper.css';
import '../styles/steps.css';
import { counted, fixed, shortNumber } from '../formats/numbers.ts';
import { isTransposed } from '../model/parameter_names.ts';
import { partsOf, type Edit } from '../state/changes.ts';
import { isChanged, undoChanges, update, view } from '../state/view.ts';
import { followWalk, reach, walk as walkSignal, walkFailure, type Walk } from '../state/walk.ts';
import { Blocks } from '../ui/blocks.tsx';
import { PartTitle } from '../ui/part_title.tsx';
import { Subscripted } from '../ui/subscripted.tsx';
import { Term } from '../ui/term.tsx';
import { AnswerStep } from './steps/answer.tsx';
import { CompareStep } from './steps/compare.tsx';
import { ConcatStep } from './steps/concat.tsx';
import { ContextStep } from './steps/context.tsx';
import { FeedForwardStep } from './steps/feed_forward.tsx';
import { InputStep } from './steps/input.tsx';
import { MaskStep } from './steps/mask.tsx';
import { FirstNormStep, SecondNormStep } from './steps/norm.tsx';
import { OutputStep } from './steps/output.tsx';
import { ProjectionStep } from './steps/projection.tsx';
import { ScaleStep } from './steps/scale.tsx';
import { SoftmaxStep } from './steps/softmax.tsx';
import { columnInFocus, publishedNumber, rowInFocus, sizesOf, type StepProps } from './steps/parts.tsx';
import { picturesOf } from './steps/picture.ts';
import { Alert } from '../ui/alert.tsx';

interface Step {
  readonly title: string;
  /** Traces of this step; their largest change is shown next to the title. */
  readonly traces: readonly string[];
  readonly Body: FunctionComponent<StepProps>;
}

const steps: readonly Step[] = [
  { title: 'X, the input', traces: ['X'], Body: InputStep },
  { title: 'Queries, keys, values', traces: ['q', 'k', 'v'], Body: ProjectionStep },
  { title: 'Compare queries with keys', traces: [], Body: CompareStep },
  { title: 'Scale', traces: ['scores'], Body: ScaleStep },
  { title: 'Mask', traces: ['masked_scores'], Body: MaskStep },
  { title: 'Softmax', traces: ['probabilities', 'weights'], Body: SoftmaxStep },
  { title: 'Weigh the values', traces: ['context'], Body: ContextStep },
  { title: 'Concatenate the heads', traces: ['merged'], Body: ConcatStep },
  { title: 'Through W_O', traces: ['output'], Body: OutputStep },
  { title: 'Add and norm', traces: ['attn_residual', 'norm1'], Body: FirstNormStep },
  { title: 'Feed-forward', traces: ['ff_hidden', 'ff_output'], Body: FeedForwardStep },
  { title: 'Add and norm again', traces: ['ff_residual', 'norm2'], Body: SecondNormStep },
  { title: 'The answer', traces: ['last hidden state', 'logits'], Body: AnswerStep },
];

/** Largest difference from the unchanged model; undefined if there is none or it is unknown. */
function differenceOf({ traces }: Step, layer: number): number | undefined {
  const found = (reach.value ?? []).filter((each) => traces.includes(each.place) && (each.layer === layer || each.layer === undefined));
  const largest = found.reduce((most, { difference }) => Math.max(most, difference), 0);
  return largest || undefined;
}

export function Steps() {
  useEffect(followWalk, []);
  const walk = walkSignal.value;
  return (
    <section id="steps" aria-labelledby="steps-title">
      <div class="lede">
        <PartTitle of="numbers" name="steps-title" />
        <p>
          The same steps with the real model and your text, and every number in them: the input of a <Term word="layer" />, the results of one{' '}
          <Term word="head" />, and how they are used. Select a number to see how it was computed. Change a number of X or of the weights, and
          everything after it is computed again.
        </p>
        <p class="try">
          <strong>Try:</strong> set the score scale to 0 in step 4, so that all tokens get the same weight. Then go to the last step:{' '}
          {walk && !walk.run.model.labels ? 'how far does the change reach?' : 'what does the classifier answer now?'}
        </p>
      </div>
      <Alert what="The steps could not be computed." why={walkFailure.value} />
      {walk ? <Loaded walk={walk} /> : <p class="note">The steps appear with the first map.</p>}
    </section>
  );
}

function Loaded({ walk }: { walk: Walk }) {
  const sizes = sizesOf(walk);
  const { layer, head, run } = walk;
  const index = Math.min(view.value.step, steps.length - 1);
  const current = steps[index]!;
  const go = (step: number) => update({ step });
  const turn = (by: number) => {
    const { heads, layers } = run.model;
    const next = (layer * heads + head + by + layers * heads) % (layers * heads);
    update({ layer: Math.floor(next / heads), head: next % heads });
  };
  return (
    <div class="walk">
      <div class="walk-focus">
        <p>
          <strong>
            Layer {layer + 1} of {run.model.layers}, head {head + 1} of {run.model.heads}
          </strong>
          , from <span class="as-query">{sizes.tokens[rowInFocus(sizes)]}</span> to <span class="as-key">{sizes.tokens[columnInFocus(sizes)]}</span>
        </p>
        <div class="buttons">
          <button type="button" class="quiet" onClick={() => turn(-1)}>
            Previous head
          </button>
          <button type="button" class="quiet" onClick={() => turn(1)}>
            Next head
          </button>
        </div>
      </div>
      <Changes walk={walk} />
      <div class="stepper">
        <ol class="step-list">
          {steps.map((step, i) => {
            const difference = differenceOf(step, layer);
            return (
              <li key={step.title}>
                <button type="button" class="quiet" aria-current={i === index ? 'step' : undefined} onClick={() => go(i)}>
                  <span class="figure">{i + 1}</span>{' '}
                  <span class="step-title">
                    <Subscripted>{step.title}</Subscripted>
                  </span>
                  {difference !== undefined && (
                    <span class="step-delta figure">
                      <span aria-hidden="true">Δ </span>
                      <span class="visually-hidden">changed by up to </span>
                      {difference === Infinity ? 'masked' : shortNumber(difference)}
                    </span>
                  )}
                </button>
              </li>
            );
          })}
        </ol>
        <div class="step">
          <div class="buttons">
            <button type="button" disabled={index === 0} onClick={() => go(index - 1)}>
              Previous step
            </button>
            <button type="button" disabled={index === steps.length - 1} onClick={() => go(index + 1)}>
              Next step
            </button>
          </div>
          <h3 aria-live="polite">
            Step {index + 1} of {steps.length}: <Subscripted>{current.title}</Subscripted>
          </h3>
          <Blocks pieces={picturesOf(walk, sizes)[index]!()} what={`Picture of step ${index + 1}`} />
          <div class="step-body" key={`${run.model.id} ${layer} ${head} ${index}`}>
            <current.Body walk={walk} sizes={sizes} />
          </div>
        </div>
      </div>
    </div>
  );
}

function Changes({ walk }: { walk: Walk }) {
  if (!isChanged.value) return null;
  const { layer, run } = walk;
  const { heads } = run.model;
  const placeOf = ({ name, index }: Edit) => {
    const width = name === 'X' ? run.model.hiddenSize : (run.model.shapes.get(name)?.[1] ?? 0);
    if (width === 0) return `${name}, number ${index + 1}`;
    const [row, column] = [Math.floor(index / width), index % width];
    if (name === 'X') return `X of ${run.tokens[row] ?? row + 1}, number ${column + 1}`;
    const [output, input] = isTransposed(name) ? [column, row] : [row, column];
    return `${name}, in ${input + 1}, out ${output + 1}`;
  };
  const edit = (of: Edit) => {
    const published = publishedNumber(walk, of);
    return `${placeOf(of)}: ${of.value}${published === undefined ? '' : ` instead of ${fixed(published, 4)}`}`;
  };
  const list = partsOf(view.value, { layer, heads, token: (j) => run.tokens[j] ?? `token ${j + 1}`, edit });
  return (
    <details class="changes" open={list.length <= 6}>
      <summary>{counted(list.length, 'change')}</summary>
      <ul>
        {list.map(({ what, without }) => (
          <li key={what}>
            <span>{what}</span>
            <button type="button" class="quiet" aria-label={`Undo: ${what}`} onClick={() => update(without)}>
              Undo
            </button>
          </li>
        ))}
      </ul>
      <button type="button" onClick={undoChanges}>
        Undo all changes
      </button>
      <p class="note">Δ next to a step is the largest difference between its numbers and those of the unchanged model.</p>
    </details>
  );
}
