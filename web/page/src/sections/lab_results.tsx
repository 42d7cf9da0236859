import type { Tensor } from 'attn';
import { useMemo, useState } from 'preact/hooks';
import { product } from '../arithmetic/arrays.ts';
import { arraysToJson, arrayToCsv, arrayToNpy } from '../export/arrays.ts';
import { download } from '../export/download.ts';
import { notANumber } from '../lab/not_a_number.ts';
import type { LabInputs, LabResult, NamedResult } from '../lab/run.ts';
import { fixed, shapeText } from '../formats/numbers.ts';
import { fileOf, inputsFile, snippetsOf } from '../lab/snippets.ts';
import { engine } from '../state/model.ts';
import { explain, status } from '../state/status.ts';
import { Code } from '../ui/code.tsx';
import { MatrixView, type MatrixKind, type Place } from '../ui/matrix_view.tsx';
import { NumberTable } from '../ui/number_table.tsx';
import { Alert } from '../ui/alert.tsx';

export function Results({ result, inputs }: { result: LabResult; inputs: LabInputs }) {
  const [batch, setBatch] = useState(0);
  const [head, setHead] = useState(0);
  const { tensor, leading } = result.weights;
  const nan = useMemo(() => notANumber(inputs, result), [inputs, result]);
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
      {nan !== undefined && (
        <p class="note" role="note">
          {nan}
        </p>
      )}
      <div class="result-main">
        <ResultTable name="Weights" result={result.weights} batch={batch} head={head} main />
        <ResultTable name="Output" result={result.output} batch={batch} head={head} main />
      </div>
      <SaveResults of={result} />
      <h3>Every intermediate result, by name</h3>
      <p class="note">{result.note || 'In the order of computation. Results with a head dimension show the head that you chose above.'}</p>
      <div class="trace">
        {result.trace.map((entry) => (
          <ResultTable key={entry.name} name={entry.name} result={entry} batch={batch} head={head} />
        ))}
      </div>
      <Programs inputs={inputs} />
    </div>
  );
}

function Programs({ inputs }: { inputs: LabInputs }) {
  const [failure, setFailure] = useState('');
  const snippets = useMemo(() => snippetsOf(inputs), [inputs]);
  const file = useMemo(() => fileOf(inputs), [inputs]);
  const save = async () => {
    try {
      download(new Blob([await engine.value!.writeSafetensors(file!)]), inputsFile);
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
          <p class="note">These are too many numbers to print. The programs read them from {inputsFile} in their working directory.</p>
          <button type="button" onClick={save}>
            Save {inputsFile}
          </button>
          <Alert why={failure} />
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

function sliceOf(
  { tensor, leading }: NamedResult,
  batch: number,
  head: number,
): { readonly values: Float32Array; readonly inner: readonly number[] } {
  const inner = tensor.dims.slice(leading.length);
  const size = product(inner);
  const slice = leading.reduce((index, kind, i) => index * tensor.dims[i]! + (kind === 'batch' ? batch : head), 0);
  return { values: tensor.data.subarray(slice * size, (slice + 1) * size), inner };
}

/** The colour of each result; the others have those of signs. */
const kinds: Readonly<Record<string, MatrixKind>> = {
  q_proj: 'query',
  q: 'query',
  k_proj: 'key',
  k: 'key',
  v_proj: 'value',
  v: 'value',
  probabilities: 'weight',
  weights: 'weight',
  context: 'value',
  merged: 'value',
};

function Picture({ name, of, values, width }: { name: string; of: NamedResult; values: Float32Array; width: number }) {
  const [chosen, setChosen] = useState<Place>({ row: 0, column: 0 });
  const [rows, columns] = [values.length / width, width];
  const label = (kind: string) => (i: number) => (kind === 'number' ? String(i + 1) : `${kind} ${i + 1}`);
  return (
    <MatrixView
      name={name}
      kind={kinds[of.name] ?? 'signed'}
      rows={{ kind: of.rows, count: rows, label: label(of.rows) }}
      columns={{ kind: of.columns, count: columns, label: label(of.columns) }}
      value={(i, j) => values[i * width + j]!}
      selected={{ row: Math.min(chosen.row, rows - 1), column: Math.min(chosen.column, columns - 1) }}
      onSelect={setChosen}
    />
  );
}

const allArrays = 'all arrays';

function SaveResults({ of }: { of: LabResult }) {
  const [chosen, setChosen] = useState('output');
  const [failure, setFailure] = useState('');
  const named = new Map([of.weights, of.output, ...of.trace].map((each) => [each.name, each]));
  const tensors = (): Readonly<Record<string, Tensor>> =>
    Object.fromEntries([...named.values()].filter(({ name }) => chosen === allArrays || name === chosen).map(({ name, tensor }) => [name, tensor]));
  const write: Readonly<Record<string, () => Promise<BlobPart> | BlobPart>> = {
    CSV: () => arrayToCsv(named.get(chosen)!.tensor, named.get(chosen)!.leading),
    JSON: () => arraysToJson(tensors()),
    '.npy': () => arrayToNpy(named.get(chosen)!.tensor),
    safetensors: async () => await engine.value!.writeSafetensors(tensors()),
  };
  const save = async (format: string) => {
    const name = `attn-lab-${chosen.replace(' ', '-')}.${format.replace('.', '').toLowerCase()}`;
    try {
      download(new Blob([await write[format]!()]), name);
      status.value = { text: `Saved ${name}.` };
      setFailure('');
    } catch (error) {
      setFailure(explain(error));
    }
  };
  return (
    <div class="save-results buttons" role="group" aria-label="Save results">
      <label class="inline-field">
        <span>Save</span>
        <select value={chosen} onChange={(event) => setChosen(event.currentTarget.value)}>
          {[...named.keys(), allArrays].map((name) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
      </label>
      {Object.keys(write).map((format) => (
        <button
          key={format}
          type="button"
          disabled={chosen === allArrays && (format === 'CSV' || format === '.npy')}
          aria-label={`Save as ${format}`}
          onClick={() => void save(format)}
        >
          {format}
        </button>
      ))}
      <Alert why={failure} />
    </div>
  );
}

function ResultTable({ name, result, batch, head, main }: { name: string; result: NamedResult; batch: number; head: number; main?: boolean }) {
  const { tensor } = result;
  const { values, inner } = sliceOf(result, batch, head);
  const [size, width] = [values.length, inner.at(-1)!];
  const keys = inner.at(-2)!;
  const pairs = inner.length === 3;
  return (
    <div class="result">
      {!pairs && values.length > 0 && <Picture name={name} of={result} values={values} width={width} />}
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
