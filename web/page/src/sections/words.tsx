import type { ComponentChildren } from 'preact';
import { useEffect, useId, useState } from 'preact/hooks';
import { fixed } from '../formats/numbers.ts';
import type { LoadedModel } from '../model/loaded.ts';
import { shownModel } from '../state/background.ts';
import {
  analogies,
  analogy,
  analogyCount,
  analogyInUse,
  expectedAnswer,
  mapInUse,
  neighboursInUse,
  faultOfMap,
  faultOfWord,
  mostMapNeighbours,
  mostMapWords,
  nearestCount,
  neighbours,
  readWords,
  similarity,
  updateWords,
  wordInUse,
  wordMap,
  wordsView,
  type Near,
  type Word,
  tableDims,
  typical,
} from '../state/words.ts';
import '../styles/words.css';
import { BarNumber } from '../ui/bar_number.tsx';
import { Formula } from '../ui/formula.tsx';
import { NumberTable } from '../ui/number_table.tsx';
import { Ranked } from '../ui/ranked.tsx';
import { Term } from '../ui/term.tsx';
import { WordMapPicture } from '../ui/word_map.tsx';
import { PartTitle } from '../ui/part_title.tsx';
import { Alert } from '../ui/alert.tsx';
import { Tokens } from './tokens.tsx';

export function Words() {
  useEffect(() => {
    const ends = [neighbours, similarity, analogy, wordMap, typical].map(({ follow }) => follow());
    return () => ends.forEach((end) => end());
  }, []);
  const of = shownModel.value;
  return (
    <section id="words" aria-labelledby="words-title">
      <PartTitle of="words" name="words-title" />
      <div class="lede">
        <p>
          Before any attention, each <Term word="token">token</Term> is a row of the <Term word="embedding matrix" />, which the model has learned.
          Words that are used in similar ways have rows that point in similar directions.{' '}
          {of && (
            <>
              The matrix of the {of.name} has {tableSize(of)}.
            </>
          )}
        </p>
        <p class="try">
          <strong>Try:</strong> look up the neighbours of “music” and of “monday”. Then try the analogies.
        </p>
      </div>
      <Tokens />
      <div class="words-parts">
        <Neighbours />
        <div class="words-part">
          <Pair />
          <AnalogyPart />
        </div>
        <MapPart />
      </div>
    </section>
  );
}

function tableSize(of: LoadedModel): string {
  const dims = tableDims(of);
  return dims ? `${dims[0]} tokens of ${dims[1]} numbers each` : 'one row for each token of its vocabulary';
}

function WordField({ label, value, found, onInput }: { label: string; value: string; found: Word | undefined; onInput: (text: string) => void }) {
  const id = useId();
  const fault = found && found.text === value.trim() ? faultOfWord(found) : undefined;
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <input
        id={id}
        type="text"
        dir="auto"
        value={value}
        spellcheck={false}
        autocomplete="off"
        autocapitalize="off"
        aria-invalid={fault ? 'true' : undefined}
        aria-describedby={fault ? `${id}-error` : undefined}
        onInput={(event) => onInput(event.currentTarget.value)}
      />
      <Alert id={`${id}-error`} why={fault} />
    </div>
  );
}

/** Has its room from the start, so that nothing below moves. */
function NearestWords({ name, near, most }: { name: string; near: readonly Near[] | undefined; most: number }) {
  const from = Math.max(0, typical.value.value ?? 0);
  if (near?.length === 0) return null;
  return (
    <div class="ranked-room" style={{ '--rows': most }}>
      {near && <Ranked name={name} items={near.map(({ id, token, similarity }) => ({ key: id, name: token, value: similarity }))} from={from} />}
      {near?.some(({ token }) => token.startsWith('##')) && <p class="note">Tokens that continue a word begin with ##.</p>}
    </div>
  );
}

function Neighbours() {
  const made = neighbours.value.value;
  const usual = typical.value.value;
  return (
    <div class="words-part">
      <h3>Nearest words</h3>
      <p>
        The words whose rows have the largest <Term word="cosine" /> with the row of your word.
      </p>
      <WordField label="Word" value={wordInUse.value} found={made?.word} onInput={(word) => updateWords({ word })} />
      <Alert what="The embedding matrix could not be read." why={neighbours.failure.value} />
      <NearestWords name="Nearest words" near={made?.near} most={nearestCount} />
      <p class="note">
        For comparison: two tokens of the vocabulary have a cosine of <span class="words-typical">{usual !== undefined && fixed(usual, 2)}</span> on
        average. The bars start there.
      </p>
    </div>
  );
}

function Pair() {
  const { first, second } = wordsView.value;
  const made = similarity.value.value;
  return (
    <>
      <h3>Two words</h3>
      <div class="words-row">
        <WordField label="First word" value={first} found={made?.words[0]} onInput={(text) => updateWords({ first: text })} />
        <WordField label="Second word" value={second} found={made?.words[1]} onInput={(text) => updateWords({ second: text })} />
      </div>
      <Alert what="The embedding matrix could not be read." why={similarity.failure.value} />
      <p class="words-answer" aria-live="polite">
        Similarity: {made?.similarity === undefined ? 'none' : <BarNumber value={made.similarity} from={Math.max(0, typical.value.value ?? 0)} />}
      </p>
      <p class="note words-caveat">Similar vectors mean that two words are used alike, not that they mean the same.</p>
    </>
  );
}

function AnalogyPart() {
  const texts = analogyInUse.value;
  const made = analogy.value.value;
  const [best] = made?.near ?? [];
  const usual = expectedAnswer(texts);
  const set = (place: number, text: string) =>
    updateWords({ analogy: texts.map((each, i) => (i === place ? text : each)) as [string, string, string] });
  return (
    <>
      <h3 class="words-second">Analogies</h3>
      <p>
        Add the difference between the second and the first word to the third. Which word is closest to the result, apart from these three? This is an{' '}
        <Term word="analogy" />.
      </p>
      <Formula>
        <mi>b</mi>
        <mo>−</mo>
        <mi>a</mi>
        <mo>+</mo>
        <mi>c</mi>
      </Formula>
      <div class="words-row">
        <WordField label="a" value={texts[0]} found={made?.words[0]} onInput={(text) => set(0, text)} />
        <WordField label="is to b" value={texts[1]} found={made?.words[1]} onInput={(text) => set(1, text)} />
        <WordField label="as c" value={texts[2]} found={made?.words[2]} onInput={(text) => set(2, text)} />
      </div>
      <div class="buttons words-examples" role="group" aria-label="Examples of analogies">
        {analogies.map((each) => (
          <button key={each.join()} type="button" aria-pressed={each.join() === texts.join()} onClick={() => updateWords({ analogy: each })}>
            {each[0]} : {each[1]} :: {each[2]}
          </button>
        ))}
      </div>
      <Alert what="The embedding matrix could not be read." why={analogy.failure.value} />
      <p class="words-answer" aria-live="polite">
        {best ? (
          <>
            {texts[0]} is to {texts[1]} as {texts[2]} is to <strong>{best.token}</strong>.
            {usual !== undefined && usual !== best.token && ` Larger models answer “${usual}”; this one has not learned it.`}
          </>
        ) : (
          'No answer.'
        )}
      </p>
      <NearestWords name="Answers to the analogy" near={made?.near} most={analogyCount} />
    </>
  );
}

function MapPart() {
  const [asTable, setAsTable] = useState(false);
  const [map, count] = [mapInUse.value, neighboursInUse.value];
  const fault = faultOfMap(readWords(map));
  const made = wordMap.value.value;
  const percent = (share: number | undefined) => `${share === undefined ? '…' : Math.round(100 * share)} %`;
  return (
    <div class="words-part words-wide">
      <h3>A map of words</h3>
      <p>
        A row of {shownModel.value?.hiddenSize ?? 'many'} numbers is a point in as many dimensions, but a map has only two. This map shows the two
        directions in which these words differ most, their <Term word="principal components" />. Words that are far apart on the map have different
        rows. Words that are close may still differ in the directions left out.
      </p>
      <div class="words-map-fields">
        <div class="field">
          <label for="words-map">Words on the map</label>
          <textarea
            id="words-map"
            rows={2}
            dir="auto"
            spellcheck={false}
            value={map}
            aria-invalid={fault ? 'true' : undefined}
            aria-describedby={fault ? 'words-map-error' : undefined}
            onInput={(event) => updateWords({ map: event.currentTarget.value })}
          />
          <Alert id="words-map-error" why={fault} />
          <Alert what="The embedding matrix could not be read." why={wordMap.failure.value} />
          {made?.missing.map((word) => (
            <p key={word.text} class="note">
              {faultOfWord(word)}
            </p>
          ))}
        </div>
        <div class="field">
          <label for="words-near">Neighbours of each</label>
          <select id="words-near" value={count} onChange={(event) => updateWords({ map, neighbours: Number(event.currentTarget.value) })}>
            {Array.from({ length: mostMapNeighbours + 1 }, (_, i) => (
              <option key={i} value={i}>
                {i}
              </option>
            ))}
          </select>
        </div>
      </div>
      {made?.points.length !== 0 && !(wordMap.failure.value && !made) && (
        <>
          <figure class="words-map">
            <WordMapPicture points={made?.points ?? []} label="Map of the words and their neighbours; the table below has the same numbers" />
            <figcaption class="note">
              {count > 0 && 'Filled circles are your words; open circles are their neighbours. '}The first direction, from left to right, explains{' '}
              {percent(made?.shares[0])} of the variance, the second {percent(made?.shares[1])}. The map shows at most {mostMapWords} words.
            </figcaption>
          </figure>
          <p class="buttons">
            <button type="button" aria-expanded={asTable} onClick={() => setAsTable(!asTable)}>
              View map as table
            </button>
          </p>
          {asTable && made && <MapTable />}
        </>
      )}
    </div>
  );
}

function MapTable(): ComponentChildren {
  const { points } = wordMap.value.value!;
  const columns = ['first direction', 'second direction', 'neighbour of'];
  return (
    <NumberTable
      name="Words on the map"
      rows={{ kind: 'word', count: points.length, label: (i) => points[i]!.token }}
      columns={{ kind: 'direction', count: 3, label: (j) => columns[j]! }}
      cell={(i, j) => {
        const point = points[i]!;
        if (j === 2) return point.of === undefined ? '' : points[point.of]!.token;
        return fixed(j === 0 ? point.x : point.y, 4);
      }}
    />
  );
}
