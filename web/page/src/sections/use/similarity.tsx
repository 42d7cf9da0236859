import { useState } from 'preact/hooks';
import { colour } from '../../draw/palette.ts';
import { fixed } from '../../formats/numbers.ts';
import { nameInSentence, sentenceName } from '../../model/known.ts';
import type { LoadedModel } from '../../model/loaded.ts';
import { shownModel } from '../../state/background.ts';
import { chosenLine, lines, neighboursOf, type LineAnswers, type Lines } from '../../state/compare_texts.ts';
import { Call, Eq, Formula } from '../../ui/formula.tsx';
import { MatrixView, type Place } from '../../ui/matrix_view.tsx';
import { NumberTable } from '../../ui/number_table.tsx';
import { numberedLine, Ranked } from '../../ui/ranked.tsx';
import { Term } from '../../ui/term.tsx';
import { Part } from '../../ui/part.tsx';
import { LinesField } from './lines_field.tsx';

/** |x| */
const Length = ({ children }: { children: string }) => (
  <mrow>
    <mo>|</mo>
    <mi>{children}</mi>
    <mo>|</mo>
  </mrow>
);

function goodFor(of: LoadedModel): string {
  const { id, labels } = of;
  if (id === 'sentiment')
    return 'The sentiment classifier has learned one thing: whether a film review is positive. Its vectors group texts by sentiment, not by topic. To group them by topic, load all-MiniLM-L6-v2 above.';
  if (id === 'all-MiniLM-L6-v2')
    return 'all-MiniLM-L6-v2 was trained to give texts with similar meanings similar vectors: texts about acting are similar and so are texts about music, good or bad.';
  if (labels) return `${sentenceName(of)} was trained to distinguish ${labels.join(', ')}, so its vectors group texts mostly by these classes.`;
  return `How ${nameInSentence(of)} groups texts depends on its training. The groups are most useful if it was trained to compare sentences.`;
}

export function Similarity() {
  const [asTable, setAsTable] = useState(false);
  const made = lines.value.value;
  const current = made && made.model === shownModel.value ? made : undefined;
  return (
    <Part class="use-part" title="Which texts are alike?">
      <p>
        The <Term word="cosine" /> of two vectors measures how similar their directions are. Bright cells are pairs of texts that the model finds
        similar. The diagonal compares each text with itself.
      </p>
      <Formula>
        <Call name="cos">
          <mi>a</mi>
          <mo>,</mo>
          <mi>b</mi>
        </Call>
        <Eq />
        <mfrac>
          <mrow>
            <mi>a</mi>
            <mo>·</mo>
            <mi>b</mi>
          </mrow>
          <mrow>
            <Length>a</Length>
            <Length>b</Length>
          </mrow>
        </mfrac>
      </Formula>
      {shownModel.value && <p class="use-good-for">{goodFor(shownModel.value)}</p>}
      <div class="use-texts">
        <div>
          <LinesField />
          {current && current.texts.length > 1 && <Nearest of={current} />}
          {current?.texts.length === 1 && <p class="note">Enter another line to compare it with.</p>}
        </div>
        {current && current.texts.length > 1 && (
          <div>
            <Maps of={current} />
            <p class="buttons">
              <button type="button" aria-expanded={asTable} onClick={() => setAsTable(!asTable)}>
                View similarities as table
              </button>
            </p>
          </div>
        )}
      </div>
      {current && asTable && (
        <div class="use-lines">
          <SimilarityTable name="Cosine similarity" of={current} answers={current.all} />
          {current.without && <SimilarityTable name="Cosine similarity without the heads that are off" of={current} answers={current.without} />}
        </div>
      )}
    </Part>
  );
}

function Maps({ of }: { of: Lines }) {
  const { all, without } = of;
  const [column, setColumn] = useState<number>();
  const low = Math.min(...all.similarity.data, ...(without?.similarity.data ?? []));
  const count = of.texts.length;
  const row = Math.min(chosenLine.value, count - 1);
  // Until a cell is chosen: the line nearest to the chosen one.
  const selected = { row, column: column !== undefined && column < count ? column : (neighboursOf(of, row)[0]?.line ?? row) };
  const select = (place: Place) => {
    chosenLine.value = place.row;
    setColumn(place.column);
  };
  const axis = { kind: 'line', count, label: (i: number) => `line ${i + 1}` };
  const map = (name: string, { similarity }: LineAnswers) => (
    <MatrixView
      name={name}
      kind="weight"
      rows={axis}
      columns={axis}
      value={(i, j) => similarity.data[i * count + j]!}
      least={low}
      selected={selected}
      onSelect={select}
    />
  );
  const ramp = Array.from({ length: 9 }, (_, i) => colour(i / 8)).join(', ');
  return (
    <div>
      <div class="use-maps">
        {map(without ? 'All heads' : 'Similarity of the lines', all)}
        {without && map('Without the heads that are off', without)}
      </div>
      <p class="use-legend">
        <span>{fixed(low, 2)}</span>
        <span aria-hidden="true" style={{ background: `linear-gradient(to right, ${ramp})` }} />
        <span>1.00</span>
      </p>
    </div>
  );
}

function Nearest({ of }: { of: Lines }) {
  const line = Math.min(chosenLine.value, of.texts.length - 1);
  return (
    <div class="use-near">
      <div class="field">
        <label for="use-line">Nearest to line</label>
        <select id="use-line" value={line} onChange={(event) => (chosenLine.value = Number(event.currentTarget.value))}>
          {of.texts.map((text, i) => (
            <option key={i} value={i}>
              {i + 1} {text}
            </option>
          ))}
        </select>
      </div>
      <Ranked
        name="Lines by similarity"
        items={neighboursOf(of, line).map(({ line: other, before, after }) => ({
          key: other,
          name: numberedLine(other, of.texts[other]),
          value: after,
          before: of.without && before,
        }))}
      />
    </div>
  );
}

function SimilarityTable({ name, of, answers }: { name: string; of: Lines; answers: LineAnswers }) {
  const count = of.texts.length;
  return (
    <NumberTable
      name={name}
      rows={{ kind: 'text', count, label: (i) => `${i + 1} ${of.texts[i]}` }}
      columns={{ kind: 'text', count, label: (i) => String(i + 1) }}
      cell={(i, j) => fixed(answers.similarity.data[i * count + j]!, 4)}
    />
  );
}
