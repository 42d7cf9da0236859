import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { Mask } from 'attn';
import type { Attn } from 'attn/worker';
import { download } from '../export/download.ts';
import { minRankOf, readLab } from '../lab_inputs.ts';
import { FieldError, runLab, type FieldName, type LabInputs, type LabResult, type NamedResult } from '../lab_run.ts';
import { fixed, shapeText } from '../numbers.ts';
import { fileOf, inputsFile, snippetsOf } from '../snippets.ts';
import { lab, updateLab, type Lab as LabState, type LabMode, type MatrixName } from '../state/lab.ts';
import { engine } from '../state/model.ts';
import { explain, status } from '../state/status.ts';
import '../styles/lab.css';
import { Code } from '../ui/code.tsx';
import { MatrixField } from '../ui/matrix_field.tsx';
import { NumberTable } from '../ui/number_table.tsx';
import { Term } from '../ui/term.tsx';

const fieldsOf: Readonly<Record<LabMode, readonly { name: MatrixName; hint: string; optional?: boolean }[]>> = {
  attention: [
    { name: 'Q', hint: 'queries: L rows of D numbers' },
    { name: 'K', hint: 'keys: S rows of D numbers' },
    { name: 'V', hint: 'values: S rows, any width' },
  ],
  'multi-head': [
    { name: 'X', hint: 'tokens: L rows of E numbers' },
    { name: 'Wq', hint: 'E × (heads · D)' },
    { name: 'Wk', hint: 'E × (heads · D)' },
    { name: 'Wv', hint: 'E × (heads · Dv)' },
    { name: 'Wo', hint: '(heads · Dv) × out', optional: true },
  ],
};

/** What the module calls an argument, and the field that it came from. */
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
  const { mode, fields, heads, scale, maskKind, paddingKind, causal } = lab.value;
  const [errors, setErrors] = useState<Errors>({});
  const [ran, setRan] = useState<Ran>();
  const [running, setRunning] = useState(false);
  /** Counts changes and runs: what an older one computed is dropped. */
  const turn = useRef(0);

  /** Any change takes the old results away: they belong to other numbers. */
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
    if (!engine.value) return void setErrors({ field: 'run', message: 'The module is still starting. Try again in a moment.' });
    const mine = turn.current;
    setRunning(true);
    try {
      const next = await compute(engine.value);
      if (mine !== turn.current) return;
      setRan(next);
      status.value = {
        text: `Your numbers: output ${shapeText(next.result.output.tensor.dims)}, weights ${shapeText(next.result.weights.tensor.dims)}.`,
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

  // The prepared numbers run by themselves, so that there is something to see.
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
  const field = ({ name, hint, optional }: { name: MatrixName; hint: string; optional?: boolean }) => (
    <MatrixField
      key={name}
      name={name}
      hint={hint}
      optional={optional ?? false}
      minRank={minRankOf(name)}
      value={fields[name]}
      error={errorOf(name)}
      onChange={(value) => change({ fields: { ...lab.value.fields, [name]: value } })}
      onError={(message) => {
        changed();
        setErrors({ field: name, message });
      }}
      onRun={run}
    />
  );

  return (
    <section id="lab" aria-labelledby="lab-title">
      <div class="lede">
        <h2 id="lab-title">Your own numbers</h2>
        <p>
          Type arrays, or drop .npy and <Term word="safetensors" /> files on the fields. You get the weights, the output and every step in between,
          and code that computes the same. In the results, rows are queries.
        </p>
        <p class="try">
          <strong>Try:</strong> the fields start with Q, K and V of the example by hand. Enter 1 as Scale, run, and you get the numbers of its steps 6
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
              ['multi-head', 'Multi-head', 'X, split over several heads'],
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
          <ShortField name="Scale" error={errorOf('Scale')} hint="empty: 1/√D, D the width of one query">
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
          {errors.field === 'run' && (
            <p role="alert" class="error">
              {errors.message}
            </p>
          )}
        </div>
      </form>
      {ran ? (
        <Results key={ran.inputs.mode} ran={ran} />
      ) : (
        <p class="note results-empty">{running ? '' : 'Press “Run attention” to see the weights, the output and every step in between.'}</p>
      )}
    </section>
  );
}

function MaskKind({ name, value, onChange }: { name: string; value: Mask['kind']; onChange: (kind: Mask['kind']) => void }) {
  return (
    <label class="field">
      <span>{name} numbers mean</span>
      <select value={value} onChange={(event) => onChange(event.currentTarget.value as Mask['kind'])}>
        <option value="attend">1 = may look, 0 = hidden</option>
        <option value="block">1 = hidden, 0 = may look</option>
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
      {error && (
        <p role="alert" id={`${id}-error`} class="error">
          {error}
        </p>
      )}
    </div>
  );
}

function Results({ ran: { result, inputs } }: { ran: Ran }) {
  const [batch, setBatch] = useState(0);
  const [head, setHead] = useState(0);
  const { tensor, leading } = result.weights;
  const count = (kind: 'batch' | 'head') => (leading.includes(kind) ? tensor.dims[leading.indexOf(kind)]! : 1);
  const choosers = [
    { kind: 'batch', label: 'Batch item shown', value: batch, set: setBatch },
    { kind: 'head', label: 'Head shown', value: head, set: setHead },
  ] as const;
  return (
    <div class="results">
      <div class="choosers">
        {choosers.map(
          ({ kind, label, value, set }) =>
            leading.includes(kind) && (
              <label class="field" key={kind}>
                <span>{label}</span>
                <select value={String(value + 1)} onChange={(event) => set(Number(event.currentTarget.value) - 1)}>
                  {Array.from({ length: count(kind) }, (_, i) => (
                    <option key={i} value={String(i + 1)}>
                      {i + 1}
                    </option>
                  ))}
                </select>
              </label>
            ),
        )}
      </div>
      <div class="result-main">
        <ResultTable name="Weights" result={result.weights} batch={batch} head={head} main />
        <ResultTable name="Output" result={result.output} batch={batch} head={head} main />
      </div>
      <h3>Every step in between, by name</h3>
      <p class="note">{result.note || 'In the order in which they are computed. Those with a head dimension show the head chosen above.'}</p>
      <div class="trace">
        {result.trace.map((entry) => (
          <ResultTable key={entry.name} name={entry.name} result={entry} batch={batch} head={head} />
        ))}
      </div>
      <Programs inputs={inputs} />
    </div>
  );
}

/** The same numbers from code. */
function Programs({ inputs }: { inputs: LabInputs }) {
  const [failure, setFailure] = useState('');
  const snippets = useMemo(() => snippetsOf(inputs), [inputs]);
  const file = useMemo(() => fileOf(inputs), [inputs]);
  const save = async () => {
    try {
      download(new Blob([(await engine.value!.writeSafetensors(file!)) as Uint8Array<ArrayBuffer>]), inputsFile);
      setFailure('');
    } catch (error) {
      setFailure(explain(error));
    }
  };
  return (
    <>
      <h3>The same numbers from code</h3>
      {file && (
        <div class="buttons">
          <p class="note">There are too many numbers to print. The programs read them from {inputsFile} in the folder where they run.</p>
          <button type="button" onClick={save}>
            Save {inputsFile}
          </button>
          {failure && (
            <p role="alert" class="error">
              {failure}
            </p>
          )}
        </div>
      )}
      {snippets.map(({ title, code }) => (
        <details key={title}>
          <summary>{title}</summary>
          <Code title={title} code={code} />
        </details>
      ))}
    </>
  );
}

function ResultTable({ name, result, batch, head, main }: { name: string; result: NamedResult; batch: number; head: number; main?: boolean }) {
  const { tensor, leading } = result;
  const inner = tensor.dims.slice(leading.length);
  const size = inner.reduce((a, b) => a * b, 1);
  const slice = leading.reduce((index, kind, i) => index * tensor.dims[i]! + (kind === 'batch' ? batch : head), 0);
  const width = inner.at(-1)!;
  const values = tensor.data.subarray(slice * size, (slice + 1) * size);
  const keys = inner.at(-2)!;
  const pairs = inner.length === 3;
  return (
    <div class="result">
      <NumberTable
        name={name}
        rows={{
          kind: result.rows,
          count: size / width,
          ...(pairs ? { label: (i: number) => `query ${Math.floor(i / keys) + 1}, key ${(i % keys) + 1}` } : {}),
        }}
        columns={{ kind: result.columns, count: width }}
        cell={(i, j) => fixed(values[i * width + j]!)}
        {...(main ? { maximumCells: 16_384 } : {})}
        {...(main && result.columns === 'key' ? { tint: (i: number, j: number) => values[i * width + j]! } : {})}
      />
      <p class="note">shape {shapeText(tensor.dims)}</p>
    </div>
  );
}
