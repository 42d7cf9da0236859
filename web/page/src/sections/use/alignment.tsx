import { useEffect, useState } from 'preact/hooks';
import { fixed } from '../../formats/numbers.ts';
import { isDecoder, type LoadedModel } from '../../model/loaded.ts';
import {
  aligned,
  alignment,
  alignView,
  defaultLayer,
  faultOfSentence,
  layerToAlign,
  sentences,
  strongestPair,
  updateAlign,
  type Alignment,
} from '../../state/align.ts';
import { chosenLine, lines, neighboursOf } from '../../state/compare_texts.ts';
import '../../styles/alignment.css';
import { Alert } from '../../ui/alert.tsx';
import { MatrixView, type Place } from '../../ui/matrix_view.tsx';
import { NumberTable } from '../../ui/number_table.tsx';
import { Paper } from '../../ui/papers.tsx';
import { Part } from '../../ui/part.tsx';
import { Slider } from '../../ui/slider.tsx';
import { WordLines } from './word_lines.tsx';

export function AlignmentPart({ of }: { of: LoadedModel }) {
  return (
    <Part class="use-part" title="Which words correspond?">
      {isDecoder(of) ? (
        <p>
          A decoder reads each word without the words after it, so the row of a word does not know its whole sentence. To align two sentences, load an
          encoder, for example the mask model.
        </p>
      ) : (
        <OfEncoder of={of} />
      )}
    </Part>
  );
}

function OfEncoder({ of }: { of: LoadedModel }) {
  useEffect(() => aligned.follow(), []);
  const made = alignment.value;
  return (
    <>
      <p>
        A line joins two words if each is the other’s best match, by the cosine of their rows after one layer. With a multilingual model this finds
        which words of a translation belong to which words of the original (SimAlign, <Paper of="Jalili Sabet et al. 2020" />
        ).
      </p>
      <div class="align-fields">
        <SentenceField of={of} index={0} />
        <SentenceField of={of} index={1} />
      </div>
      <Settings of={of} />
      <Alert what="The words could not be aligned." why={aligned.failure.value} />
      {made && made.pairs.length > 0 && <Result of={made} />}
    </>
  );
}

const fields = [
  { name: 'first', label: 'First sentence', id: 'align-first' },
  { name: 'second', label: 'Second sentence', id: 'align-second' },
] as const;

function SentenceField({ of, index }: { of: LoadedModel; index: 0 | 1 }) {
  const { name, label, id } = fields[index];
  const text = sentences.value?.[index] ?? '';
  const made = aligned.value.value;
  const read = made?.model === of && made.sentences[index].text === text ? made.sentences[index] : undefined;
  const fault = read && faultOfSentence(read);
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <textarea
        id={id}
        rows={2}
        dir="auto"
        spellcheck={false}
        value={text}
        aria-invalid={fault ? 'true' : undefined}
        aria-describedby={fault ? `${id}-error` : undefined}
        onInput={(event) => updateAlign({ [name]: event.currentTarget.value })}
      />
      <Alert id={`${id}-error`} why={fault} />
      {!fault && read?.notes.map((note) => <p class="note">{note}</p>)}
    </div>
  );
}

function Settings({ of }: { of: LoadedModel }) {
  const layer = layerToAlign.value;
  const { first, second } = alignView.value;
  const compared = lines.value.value;
  const line = Math.min(chosenLine.value, (compared?.texts.length ?? 1) - 1);
  const nearest = compared?.model === of ? neighboursOf(compared, line)[0]?.line : undefined;
  return (
    <div class="align-settings">
      <Slider
        id="align-layer"
        label="Layer to compare"
        min={0}
        max={of.layers}
        step={1}
        value={layer}
        text={layer === 0 ? 'the embeddings' : `${layer} of ${of.layers}`}
        hint={`Early layers know little of a word’s context, and the last ones serve the model’s task. SimAlign works best at about two thirds of the layers, here layer ${defaultLayer(of.layers)}.`}
        onInput={(value) => updateAlign({ layer: value })}
      />
      <p class="buttons">
        {nearest !== undefined && (
          <button type="button" onClick={() => updateAlign({ first: compared!.texts[line]!, second: compared!.texts[nearest]! })}>
            Use line {line + 1} and its nearest, line {nearest + 1}
          </button>
        )}
        <button
          type="button"
          disabled={first === undefined && second === undefined}
          onClick={() => updateAlign({ first: undefined, second: undefined })}
        >
          Suggested sentences
        </button>
      </p>
    </div>
  );
}

function Result({ of }: { of: Alignment }) {
  const [asTable, setAsTable] = useState(false);
  const [chosen, setChosen] = useState<{ readonly place: Place; readonly texts: string }>();
  const { words, similarity, choices, pairs } = of;
  const [first, second] = words;
  const texts = JSON.stringify(words);
  // Another text has other words at these places.
  const selected = chosen?.texts === texts ? chosen.place : strongestPair(of);
  const select = (place: Place) => setChosen({ place, texts });
  const at = (i: number, j: number) => similarity.data[i * second.length + j]!;
  const isPair = (i: number, j: number) => choices.ofRow[i] === j && choices.ofColumn[j] === i;
  const rows = { kind: 'word', count: first.length, label: (i: number) => first[i]! };
  const columns = { kind: 'word', count: second.length, label: (j: number) => second[j]! };
  return (
    <>
      <div class="align-result">
        <WordLines of={of} selected={selected} onSelect={select} />
        <div>
          <p class="align-reading" aria-live="polite">
            <Reading of={of} at={selected} />
          </p>
          <div class="use-maps">
            <MatrixView
              name="Similarity of the words"
              kind="weight"
              rows={rows}
              columns={columns}
              value={at}
              least={Math.min(...similarity.data)}
              selected={selected}
              marked={pairs}
              onSelect={select}
            />
          </div>
          <p class="note">Rows: first sentence. Columns: second sentence. A dot marks two words that choose each other.</p>
        </div>
      </div>
      <p class="buttons align-table">
        <button type="button" aria-expanded={asTable} onClick={() => setAsTable(!asTable)}>
          View alignment as table
        </button>
      </p>
      {asTable && (
        <div class="use-lines">
          <NumberTable
            name="Words that correspond"
            rows={{ kind: 'first', count: pairs.length, label: (i) => first[pairs[i]!.row]! }}
            columns={{ kind: 'second', count: 2, label: (j) => ['word', 'cosine'][j]! }}
            cell={(i, j) => (j === 0 ? <bdi>{second[pairs[i]!.column]}</bdi> : fixed(at(pairs[i]!.row, pairs[i]!.column), 4))}
          />
          <NumberTable
            name="Cosine of the words"
            rows={rows}
            columns={columns}
            cell={(i, j) => (isPair(i, j) ? <strong>{fixed(at(i, j), 4)}</strong> : fixed(at(i, j), 4))}
            tint={(i, j) => Number(isPair(i, j))}
          />
        </div>
      )}
    </>
  );
}

function Reading({ of: { words, similarity, choices }, at: { row, column } }: { of: Alignment; at: Place }) {
  const [a, b] = [words[0][row]!, words[1][column]!];
  const cosine = <span class="figure">{fixed(similarity.data[row * words[1].length + column]!, 4)}</span>;
  const [chosenByA, chosenByB] = [words[1][choices.ofRow[row]!]!, words[0][choices.ofColumn[column]!]!];
  const isChosenByA = choices.ofRow[row] === column;
  const isChosenByB = choices.ofColumn[column] === row;
  return (
    <>
      <Quoted>{a}</Quoted> and <Quoted>{b}</Quoted>: cosine {cosine}.{' '}
      {isChosenByA && isChosenByB ? (
        'They choose each other.'
      ) : isChosenByA ? (
        <>
          The first chooses the second, which chooses <Quoted>{chosenByB}</Quoted>.
        </>
      ) : isChosenByB ? (
        <>
          The second chooses the first, which chooses <Quoted>{chosenByA}</Quoted>.
        </>
      ) : (
        <>
          The first chooses <Quoted>{chosenByA}</Quoted>, the second <Quoted>{chosenByB}</Quoted>.
        </>
      )}
    </>
  );
}

const Quoted = ({ children }: { children: string }) => (
  <>
    “<bdi>{children}</bdi>”
  </>
);
