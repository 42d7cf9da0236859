import { counted, milliseconds, scientific, wholeMegabytes, megabytes } from '../../formats/numbers.ts';
import { editedWeights } from '../../state/background.ts';
import { expectedBytes } from '../../model/known.ts';
import { wordsOf } from '../../model/errors.ts';
import { answerName, otherOf, type LoadedModel } from '../../model/loaded.ts';
import { closeBeside, openBeside } from '../../state/load_model.ts';
import { beside, besideFailure, loadingBeside, type Failure } from '../../state/model.ts';
import { quantized, type Answered, type Quantized } from '../../state/quantized.ts';
import { NumberTable } from '../../ui/number_table.tsx';
import { Progress } from '../../ui/progress.tsx';
import { Term } from '../../ui/term.tsx';
import { Alert } from '../../ui/alert.tsx';
import { Part } from '../../ui/part.tsx';
import { shortened } from './checks.tsx';

const dtypes = ['float32', 'int8'] as const;

export function Quantization({ of }: { of: LoadedModel }) {
  const other = otherOf(of.dtype);
  const way = loadingBeside.value;
  const found = quantized.value.value;
  const both = [of, beside.value];
  const made = found && both.includes(found.models.int8) && both.includes(found.models.float32) ? found : undefined;
  const edited = editedWeights.value.length > 0;
  const bytes = of.id === 'files' || of.id === 'sentiment' ? undefined : expectedBytes(of.id, other);
  return (
    <Part class="proof-part" title="What int8 changes">
      <p>
        <Term word="int8" /> weights need a quarter of the memory of <Term word="float32" /> weights, and a quarter of the download if the files are
        int8. How much accuracy does that cost? Load the model in both forms and compare them on your text. The model above is {of.dtype}.
      </p>
      {!beside.value && !way && (
        <p>
          <button type="button" onClick={() => void openBeside()}>
            Load {other} as well and compare{bytes === undefined ? '' : `, ${wholeMegabytes(bytes)}`}
          </button>
        </p>
      )}
      {way && <Progress of={way} />}
      <Alert what={besideFailure.value?.what} why={besideFailure.value && whyOf(besideFailure.value)} />
      {beside.value && (
        <>
          <p>
            <button type="button" onClick={closeBeside}>
              Remove the {other} model
            </button>{' '}
            <span aria-live="polite">{made || edited || quantized.failure.value ? '' : 'Comparing …'}</span>
          </p>
          <Alert what="The models could not be compared." why={quantized.failure.value} />
          {edited ? <p>You have changed weights. Undo the changes to compare the models again.</p> : made && <Compare of={made} />}
        </>
      )}
    </Part>
  );
}

function whyOf(failure: Failure): string {
  const { cause, fix } = wordsOf(failure);
  return `${cause} ${fix}`;
}

/** As many digits as show the difference from 1. */
function cosineText(value: number): string {
  const decimals = Math.min(12, Math.max(4, Math.ceil(-Math.log10(Math.abs(1 - value) || 1)) + 1));
  return value.toFixed(decimals);
}

function Compare({ of: { models, tokens, layers, all, cosines, leastOfLines, lines, answered, milliseconds: times } }: { of: Quantized }) {
  const rows = [...layers.map((each, i) => ({ ...each, name: `layer ${i + 1}` })), { ...all, name: 'all layers' }];
  const columns = ['largest difference', 'mean difference', 'numbers'];
  const measures = ['time of the text above', 'WASM memory', 'files read', 'ready after'];
  return (
    <>
      <p class="proof-verdict">
        The largest difference among {all.count} attention weights is <strong class="figure">{scientific(all.largest)}</strong>, the mean{' '}
        <strong class="figure">{scientific(all.mean)}</strong>. The{' '}
        {cosines.length > 1 ? 'cosines between the vectors of the two texts are' : 'cosine between the text’s vectors is'}{' '}
        <strong class="figure">{cosines.map(cosineText).join(' and ')}</strong>
        {leastOfLines !== undefined && (
          <>
            {' '}
            (at least <span class="figure">{cosineText(leastOfLines)}</span> for the {counted(lines, 'line')} under “Similar texts”)
          </>
        )}
        . <Flips answered={answered} of={models.float32} />
      </p>
      <NumberTable
        name="Attention weights, int8 and float32"
        rows={{ kind: 'layer', count: rows.length, label: (i) => rows[i]!.name }}
        columns={{ kind: 'difference', count: columns.length, label: (j) => columns[j]! }}
        cell={(i, j) => [scientific(rows[i]!.largest), scientific(rows[i]!.mean), rows[i]!.count][j]}
      />
      {answered.length > 0 && <Answers answered={answered} of={models.float32} />}
      <NumberTable
        name="Time and memory, int8 and float32"
        rows={{ kind: 'weights', count: dtypes.length, label: (i) => dtypes[i]! }}
        columns={{ kind: 'measured', count: measures.length, label: (j) => measures[j]! }}
        cell={(i, j) => {
          const dtype = dtypes[i]!;
          const { memory, bytes, loadTime } = models[dtype];
          return [milliseconds(times[dtype]), megabytes(memory), megabytes(bytes), milliseconds(loadTime)][j];
        }}
      />
      <p class="note">
        Your text with its {counted(tokens, 'token')}, in the model as published, without masks and with all heads. Times are medians of 5 samples,
        taken alternately, and include the messages to and from the worker. Memory is the growth of the module’s memory when that model was loaded.
        {models.int8.isStoredAsInt8
          ? models.float32.isStoredAsInt8
            ? ' The files contain int8 weights, and float32 means the numbers that they represent. So the models differ only in whether the numbers multiplied by the weights are rounded.'
            : ''
          : ' The int8 weights were converted here from the same files.'}
      </p>
    </>
  );
}

function Flips({ answered, of }: { answered: readonly Answered[]; of: LoadedModel }) {
  if (answered.length === 0) return null;
  const isValue = answerName(of) === 'value';
  if (isValue) return null;
  const flips = answered.filter((each) => each.flips).length;
  return (
    <>
      Answers that flipped: <strong class="figure">{flips}</strong> of {answered.length}.
    </>
  );
}

function Answers({ answered, of }: { answered: readonly Answered[]; of: LoadedModel }) {
  const isValue = answerName(of) === 'value';
  const columns = isValue ? dtypes : [...dtypes, 'flipped'];
  const said = ({ answers }: Answered, dtype: (typeof dtypes)[number]) => {
    const { label, score } = answers[dtype][0]!;
    return `${shortened(label, 30)} ${score.toFixed(4)}`;
  };
  return (
    <NumberTable
      name="Answers, int8 and float32"
      rows={{ kind: 'text', count: answered.length, label: (i) => shortened(answered[i]!.text, 60) }}
      columns={{ kind: 'answer', count: columns.length, label: (j) => columns[j]! }}
      cell={(i, j) => (j < 2 ? said(answered[i]!, dtypes[j]!) : answered[i]!.flips ? 'yes' : 'no')}
    />
  );
}
