import { useEffect, useRef, useState } from 'preact/hooks';
import type { Mask, Tensor } from 'attn';
import type { Status } from '../app.tsx';
import { explain, type Engine } from '../engine.ts';
import {
  FieldError,
  runAttention,
  runMultiHead,
  type AttentionInputs,
  type FieldName,
  type LabResult,
  type MatrixName,
  type MultiHeadInputs,
  type NamedResult,
} from '../lab_run.ts';
import { parseMatrixText } from '../matrix_text.ts';
import { fixed, shapeText } from '../numbers.ts';
import { javascriptAttention, javascriptMultiHead, pythonAttention, pythonMultiHead } from '../snippets.ts';
import { Code } from '../ui/code.tsx';
import { MatrixField, type FieldValue } from '../ui/matrix_field.tsx';
import { NumberTable } from '../ui/number_table.tsx';

type Mode = 'attention' | 'multi-head';
type Fields = Readonly<Record<MatrixName, FieldValue>>;

const text = (value: string): FieldValue => ({ text: value });
const rows = (...lines: string[]): FieldValue => text(`[${lines.join(',\n ')}]`);

const initial: Fields = {
  Q: rows('[1, 0, 2]', '[2, 2, 2]', '[2, 1, 3]'),
  K: rows('[0, 1, 1]', '[4, 4, 0]', '[2, 3, 1]'),
  V: rows('[1, 2, 3]', '[2, 8, 0]', '[2, 6, 3]'),
  X: rows('[1, 0, 1, 0]', '[0, 2, 0, 2]', '[1, 1, 1, 1]'),
  Wq: rows('[1, 0, 1, 0]', '[1, 0, 0, 1]', '[0, 0, 1, 1]', '[0, 1, 1, 0]'),
  Wk: rows('[0, 0, 1, 1]', '[1, 1, 0, 0]', '[0, 1, 0, 1]', '[1, 1, 0, 0]'),
  Wv: rows('[0, 2, 0, 1]', '[0, 3, 0, 0]', '[1, 0, 3, 0]', '[1, 1, 0, 1]'),
  Wo: text(''),
  Mask: text(''),
};

const fieldsOf: Readonly<Record<Mode, readonly { name: MatrixName; hint: string; optional?: boolean }[]>> = {
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

const minRankOf = (name: MatrixName) => (name === 'Mask' ? 1 : 2);

/** What the module calls an argument, and the field that it came from. */
const argumentFields: Readonly<Record<string, FieldName>> = { query: 'Q', key: 'K', value: 'V', mask: 'Mask', scale: 'Scale' };

interface Ran {
  readonly result: LabResult;
  readonly javascript: string | undefined;
  readonly python: string;
}

interface Errors {
  readonly field?: FieldName | 'run';
  readonly message?: string;
}

export function Lab({ engine, onStatus }: { engine: Engine | undefined; onStatus: (status: Status) => void }) {
  const [mode, setMode] = useState<Mode>('attention');
  const [fields, setFields] = useState(initial);
  const [heads, setHeads] = useState('2');
  const [scale, setScale] = useState('');
  const [maskKind, setMaskKind] = useState<Mask['kind']>('attend');
  const [causal, setCausal] = useState(false);
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
  const change = (name: MatrixName, value: FieldValue) => {
    changed();
    setFields((old) => ({ ...old, [name]: value }));
  };

  const tensorOf = (name: MatrixName): Tensor => {
    const { text: content, file } = fields[name];
    if (file) return file.tensor;
    try {
      return parseMatrixText(content, minRankOf(name));
    } catch (error) {
      throw new FieldError(name, explain(error));
    }
  };

  const readCommon = () => {
    const written = scale.trim();
    const number = written === '' ? undefined : Number(written);
    if (number !== undefined && !Number.isFinite(Math.fround(number)))
      throw new FieldError('Scale', `“${written}” is not a number. Write one such as 0.5, or leave the field empty for 1/√D.`);
    let mask: Mask | undefined;
    if (fields.Mask.file || fields.Mask.text.trim()) {
      const { data, dims } = tensorOf('Mask');
      const bad = data.find((value) => Number.isNaN(value) || value === Infinity);
      if (bad !== undefined)
        throw new FieldError('Mask', `The mask holds ${bad}. Use 0 and 1, or for a mask that is added finite numbers and -Infinity.`);
      mask = { kind: maskKind, data: maskKind === 'additive' ? data : Uint8Array.from(data, (value) => Number(value !== 0)), dims };
    }
    return { scale: number, mask, causal };
  };

  const compute = async (ready: Engine): Promise<Ran> => {
    if (mode === 'attention') {
      const inputs: AttentionInputs = { Q: tensorOf('Q'), K: tensorOf('K'), V: tensorOf('V'), ...readCommon() };
      return { result: await runAttention(ready, inputs), javascript: javascriptAttention(inputs), python: pythonAttention(inputs) };
    }
    const count = Number(heads);
    const inputs: MultiHeadInputs = {
      X: tensorOf('X'),
      Wq: tensorOf('Wq'),
      Wk: tensorOf('Wk'),
      Wv: tensorOf('Wv'),
      Wo: fields.Wo.file || fields.Wo.text.trim() ? tensorOf('Wo') : undefined,
      heads: heads.trim() === '' ? NaN : count,
      ...readCommon(),
    };
    return { result: await runMultiHead(ready, inputs), javascript: javascriptMultiHead(inputs), python: pythonMultiHead(inputs) };
  };

  const run = async () => {
    changed();
    if (!engine) return setErrors({ field: 'run', message: 'The module is still starting. Try again in a moment.' });
    const mine = turn.current;
    setRunning(true);
    try {
      const next = await compute(engine);
      if (mine !== turn.current) return;
      setRan(next);
      onStatus({ text: `Your numbers: output ${shapeText(next.result.output.tensor.dims)}, weights ${shapeText(next.result.weights.tensor.dims)}.` });
    } catch (error) {
      if (mine !== turn.current) return;
      const argument = (error as { detail?: { argument?: unknown } }).detail?.argument;
      const named = typeof argument === 'string' && Object.hasOwn(argumentFields, argument) ? argumentFields[argument]! : 'run';
      const visible = fieldsOf[mode].some(({ name }) => name === named) || named === 'Mask' || named === 'Scale';
      const field = error instanceof FieldError ? error.field : visible ? named : 'run';
      setErrors({ field, message: explain(error) });
      onStatus({ text: `Your numbers could not be computed. ${explain(error)}`, failed: true });
    }
    setRunning(false);
  };

  // The prepared numbers run by themselves, so that there is something to see.
  const started = useRef(false);
  useEffect(() => {
    if (!engine || started.current) return;
    started.current = true;
    const mine = turn.current;
    compute(engine).then(
      (next) => mine === turn.current && setRan(next),
      (error) => onStatus({ text: `The lab could not start. ${explain(error)}`, failed: true }),
    );
  }, [engine]);

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
      onChange={(value) => change(name, value)}
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
          Type arrays, or drop .npy files on the fields. You get the weights, the output and every step between. Rows are always queries. To begin
          with, the fields hold Q, K and V of the example above: write 1 into Scale, run, and you get its numbers.
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
              <input
                type="radio"
                name="mode"
                value={value}
                aria-label={label}
                checked={mode === value}
                onChange={() => {
                  changed();
                  setMode(value);
                }}
              />
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
                  onInput={(event) => {
                    changed();
                    setHeads(event.currentTarget.value);
                  }}
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
                onInput={(event) => {
                  changed();
                  setScale(event.currentTarget.value);
                }}
              />
            )}
          </ShortField>
          <label class="check">
            <input
              type="checkbox"
              checked={causal}
              onChange={(event) => {
                changed();
                setCausal(event.currentTarget.checked);
              }}
            />
            <span>Causal: hide later keys</span>
          </label>
        </div>
        <div class="lab-mask">
          {field({ name: 'Mask', hint: 'one number per key, or per query and key', optional: true })}
          <label class="field">
            <span>Mask numbers mean</span>
            <select
              value={maskKind}
              onChange={(event) => {
                changed();
                setMaskKind(event.currentTarget.value as Mask['kind']);
              }}
            >
              <option value="attend">1 = may look, 0 = hidden</option>
              <option value="block">1 = hidden, 0 = may look</option>
              <option value="additive">added to the scores</option>
            </select>
          </label>
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
        <Results ran={ran} />
      ) : (
        <p class="note results-empty">{running ? '' : 'Press “Run attention” to see weights, output and every step between.'}</p>
      )}
    </section>
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
  const id = `lab-${name}`;
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

function Results({ ran: { result, javascript, python } }: { ran: Ran }) {
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
      <h3>Every step between, by name</h3>
      <p class="note">{result.note || 'In the order they come up. Those with a head dimension show the head chosen above.'}</p>
      <div class="trace">
        {result.trace.map((entry) => (
          <ResultTable key={entry.name} name={entry.name} result={entry} batch={batch} head={head} />
        ))}
      </div>
      <details>
        <summary>The same numbers from code</summary>
        {javascript ? (
          <Code title="JavaScript" code={javascript} />
        ) : (
          <p class="note">The package's MultiHeadAttention takes square matrices; for others chain linear and scaledDotProductAttention.</p>
        )}
        <Code title="PyTorch" code={python} />
      </details>
    </div>
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
