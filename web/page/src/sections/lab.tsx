import { useEffect, useRef, useState } from 'preact/hooks';
import type { Mask } from 'attn';
import type { Attn } from 'attn/worker';
import { minRankOf, readLab } from '../lab/inputs.ts';
import { notANumber } from '../lab/not_a_number.ts';
import { FieldError, runLab, type FieldName, type LabInputs, type LabResult } from '../lab/run.ts';
import { shapeText } from '../formats/numbers.ts';
import { lab, updateLab, type Lab as LabState, type LabMode, type MatrixName } from '../state/lab.ts';
import { engine } from '../state/model.ts';
import { explain, status } from '../state/status.ts';
import '../styles/lab.css';
import { MatrixField } from '../ui/matrix_field.tsx';
import { Term } from '../ui/term.tsx';
import { Results } from './lab_results.tsx';
import { Alert } from '../ui/alert.tsx';

/** `torch`: the hint for weights that are out × in. */
const fieldsOf: Readonly<Record<LabMode, readonly { name: MatrixName; hint: string; torch?: string; optional?: boolean }[]>> = {
  attention: [
    { name: 'Q', hint: 'queries: L rows of D numbers' },
    { name: 'K', hint: 'keys: S rows of D numbers' },
    { name: 'V', hint: 'values: S rows, any width' },
  ],
  'multi-head': [
    { name: 'X', hint: 'tokens: L rows of E numbers' },
    { name: 'Wq', hint: 'E × (heads · D)', torch: '(heads · D) × E' },
    { name: 'Wk', hint: 'E × (heads · D)', torch: '(heads · D) × E' },
    { name: 'Wv', hint: 'E × (heads · Dv)', torch: '(heads · Dv) × E' },
    { name: 'Wo', hint: '(heads · Dv) × out', torch: 'out × (heads · Dv)', optional: true },
  ],
};

const argumentFields: Readonly<Record<string, FieldName>> = {
  query: 'Q',
  key: 'K',
  value: 'V',
  mask: 'Mask',
  keyPaddingMask: 'Key padding',
  scale: 'Scale',
};

interface Ran {
  readonly inputs: LabInputs;
  readonly result: LabResult;
}

interface Errors {
  readonly field?: FieldName | 'run';
  readonly message?: string;
}

export function Lab() {
  const { mode, fields, heads, scale, maskKind, paddingKind, causal, asTorch } = lab.value;
  const [errors, setErrors] = useState<Errors>({});
  const [ran, setRan] = useState<Ran>();
  const [running, setRunning] = useState(false);
  /** Incremented by changes and runs, so that older results are dropped. */
  const turn = useRef(0);

  /** Any change clears the results, which belong to the old numbers. */
  const changed = () => {
    turn.current += 1;
    setRan(undefined);
    setErrors({});
    setRunning(false);
  };
  const change = (changes: Partial<LabState>) => {
    changed();
    updateLab(changes);
  };
  const compute = async (ready: Attn): Promise<Ran> => {
    const inputs = readLab(lab.value);
    return { inputs, result: await runLab(ready, inputs) };
  };

  const run = async () => {
    changed();
    if (!engine.value) return void setErrors({ field: 'run', message: 'The module is starting. Try again in a moment.' });
    const mine = turn.current;
    setRunning(true);
    try {
      const next = await compute(engine.value);
      if (mine !== turn.current) return;
      setRan(next);
      status.value = {
        text: [
          `Your numbers: output ${shapeText(next.result.output.tensor.dims)}, weights ${shapeText(next.result.weights.tensor.dims)}.`,
          notANumber(next.inputs, next.result) ?? [],
        ]
          .flat()
          .join(' '),
      };
    } catch (error) {
      if (mine !== turn.current) return;
      const argument = (error as { detail?: { argument?: unknown } }).detail?.argument;
      const named = typeof argument === 'string' && Object.hasOwn(argumentFields, argument) ? argumentFields[argument]! : 'run';
      const visible = fieldsOf[mode].some(({ name }) => name === named) || ['Mask', 'Key padding', 'Scale'].includes(named);
      const field = error instanceof FieldError ? error.field : visible ? named : 'run';
      setErrors({ field, message: explain(error) });
      status.value = { text: `Your numbers could not be computed. ${explain(error)}`, failed: true };
    }
    setRunning(false);
  };

  // The initial numbers run automatically, so that results are visible.
  const started = useRef(false);
  useEffect(() => {
    if (!engine.value || started.current) return;
    started.current = true;
    const mine = turn.current;
    compute(engine.value).then(
      (next) => mine === turn.current && setRan(next),
      (error: unknown) => {
        status.value = { text: `The lab could not start. ${explain(error)}`, failed: true };
      },
    );
  }, [engine.value]);

  const errorOf = (name: FieldName) => (errors.field === name ? errors.message : undefined);
  const field = ({ name, hint, torch, optional }: { name: MatrixName; hint: string; torch?: string; optional?: boolean }) => (
    <MatrixField
      key={name}
      name={name}
      hint={asTorch && torch !== undefined ? torch : hint}
      optional={optional ?? false}
      minRank={minRankOf(name)}
      value={fields[name]}
      error={errorOf(name)}
      onChange={(value) => change({ fields: { ...lab.value.fields, [name]: value } })}
      onError={(message) => {
        // The field still shows the text from before the file.
        change({ fields: { ...lab.value.fields, [name]: { text: lab.value.fields[name].text, refused: message } } });
        setErrors({ field: name, message });
      }}
      onRun={run}
    />
  );

  return (
    <section id="lab" aria-labelledby="lab-title">
      <div class="lede">
        <h3 id="lab-title" class="sub-title">
          Your own numbers
        </h3>
        <p>
          Type or paste arrays as JSON, CSV, or printed by NumPy or PyTorch, or drop .npy, <Term word="safetensors" />, .json and .csv files on the
          fields. You get the weights, the output, every intermediate result, and code that computes the same. In the results, rows are queries.
        </p>
        <p class="try">
          <strong>Try:</strong> the fields start with Q, K and V of the example by hand. Enter 1 as Scale and run: you get the numbers of its steps 6
          and 8.
        </p>
      </div>
      <form
        class="lab"
        onSubmit={(event) => {
          event.preventDefault();
          void run();
        }}
        noValidate
      >
        <fieldset class="modes">
          <legend>Compute</legend>
          {(
            [
              ['attention', 'Attention', 'softmax(Q Kᵀ · scale) V'],
              ['multi-head', 'Multi-head', 'X, split into several heads'],
            ] as const
          ).map(([value, label, hint]) => (
            <label key={value} class="mode">
              <input type="radio" name="mode" value={value} aria-label={label} checked={mode === value} onChange={() => change({ mode: value })} />
              <span>
                <strong>{label}</strong> <span class="note">{hint}</span>
              </span>
            </label>
          ))}
        </fieldset>
        <div class="matrix-fields">{fieldsOf[mode].map(field)}</div>
        <div class="lab-options">
          {mode === 'multi-head' && (
            <ShortField name="Heads" error={errorOf('Heads')} hint="divides the columns of Wq and Wv">
              {(id, describedBy) => (
                <input
                  id={id}
                  type="number"
                  min={1}
                  step={1}
                  value={heads}
                  aria-describedby={describedBy}
                  aria-invalid={errorOf('Heads') ? 'true' : undefined}
                  onInput={(event) => change({ heads: event.currentTarget.value })}
                />
              )}
            </ShortField>
          )}
          <ShortField name="Scale" error={errorOf('Scale')} hint="empty: 1/√D for queries of width D">
            {(id, describedBy) => (
              <input
                id={id}
                type="text"
                inputMode="decimal"
                autocomplete="off"
                value={scale}
                aria-describedby={describedBy}
                aria-invalid={errorOf('Scale') ? 'true' : undefined}
                onInput={(event) => change({ scale: event.currentTarget.value })}
              />
            )}
          </ShortField>
          <label class="check">
            <input type="checkbox" checked={causal} onChange={(event) => change({ causal: event.currentTarget.checked })} />
            <span>Causal: hide later keys</span>
          </label>
          {mode === 'multi-head' && (
            <label class="check">
              <input type="checkbox" checked={asTorch} onChange={(event) => change({ asTorch: event.currentTarget.checked })} />
              <span>Weights as in PyTorch (out × in)</span>
            </label>
          )}
        </div>
        <div class="lab-masks">
          <div>
            {field({ name: 'Mask', hint: 'one per key, or per query and key', optional: true })}
            <MaskKind name="Mask" value={maskKind} onChange={(kind) => change({ maskKind: kind })} />
          </div>
          <div>
            {field({ name: 'Key padding', hint: 'one per key', optional: true })}
            <MaskKind name="Key padding" value={paddingKind} onChange={(kind) => change({ paddingKind: kind })} />
          </div>
        </div>
        <div class="buttons">
          <button type="submit" class="primary">
            Run attention
          </button>
          {running && <span class="note">Computing …</span>}
          <Alert why={errors.field === 'run' && errors.message} />
        </div>
      </form>
      {ran ? (
        <Results key={ran.inputs.mode} {...ran} />
      ) : (
        <p class="note results-empty">{running ? '' : 'Press “Run attention” to see the weights, the output and every intermediate result.'}</p>
      )}
    </section>
  );
}

function MaskKind({ name, value, onChange }: { name: string; value: Mask['kind']; onChange: (kind: Mask['kind']) => void }) {
  return (
    <label class="field">
      <span>{name} numbers mean</span>
      <select value={value} onChange={(event) => onChange(event.currentTarget.value as Mask['kind'])}>
        <option value="attend">1 = visible, 0 = hidden</option>
        <option value="block">1 = hidden, 0 = visible</option>
        <option value="additive">added to the scores</option>
      </select>
    </label>
  );
}

function ShortField({
  name,
  hint,
  error,
  children,
}: {
  name: FieldName;
  hint: string;
  error: string | undefined;
  children: (id: string, describedBy: string) => preact.ComponentChildren;
}) {
  const id = `lab-${name.replace(' ', '-')}`;
  return (
    <div class="field">
      <label for={id}>{name}</label>
      {children(id, error ? `${id}-error ${id}-hint` : `${id}-hint`)}
      <span class="note" id={`${id}-hint`}>
        {hint}
      </span>
      <Alert id={`${id}-error`} why={error} />
    </div>
  );
}
