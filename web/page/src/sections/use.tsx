import { computed, signal } from '@preact/signals';
import type { Task } from 'attn';
import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { counted, fixed, megabytes } from '../formats/numbers.ts';
import { colour } from '../draw/palette.ts';
import { ablating, ablation, ablationFailure, isCurrent, switchEachOff } from '../state/ablation.ts';
import { rightOf100 } from '../state/bundled.ts';
import { headsOff, shownModel } from '../state/derived.ts';
import { toggleHead } from '../state/heads.ts';
import { chosenLine, faultOf, furthest, largestOf, lines, linesText, neighboursOf, readLines, type LineAnswers, type Lines } from '../state/lines.ts';
import { answerFunction, answerName, chooseModel, expectedBytes, loading, nameOf, type LoadedModel } from '../state/model.ts';
import { explain } from '../state/status.ts';
import { update, view } from '../state/view.ts';
import '../styles/use.css';
import { BarNumber } from '../ui/bar_number.tsx';
import { Call, Eq, Formula } from '../ui/formula.tsx';
import { MatrixMap } from '../ui/matrix_map.tsx';
import { Paper } from '../ui/papers.tsx';
import { NumberTable } from '../ui/number_table.tsx';
import { Term } from '../ui/term.tsx';
import { WhyPart } from './why.tsx';

/** The view has more than this section wants to hear of. */
const wantedOff = computed(() => view.value.off);

/** With its sign, as a change is written. */
const signed = (value: number): string => {
  const text = fixed(value, 4);
  return text.startsWith('-') || Number(text) === 0 ? text : `+${text}`;
};

export function Use() {
  useEffect(() => lines.follow(), []);
  const of = shownModel.value;
  return (
    <section id="use" aria-labelledby="use-title">
      <h2 id="use-title">Use it</h2>
      <div class="lede">
        <p>
          What is all this attention for? After the last <Term word="layer">layer</Term> the row of each token carries something of the others. A
          classifier reads its answer from these rows. Their mean, in most models, is one <Term word="vector">vector</Term> for the whole text: texts
          that the model finds similar have vectors that point in similar directions.
        </p>
        <p class="try">
          <strong>Try:</strong> add a line of your own and see which lines are closest to it. Then switch off a few heads further down, and watch the
          answers change.
        </p>
      </div>
      {of && <TaskOf of={of} />}
      <Similarity />
      {of && <Classification of={of} />}
      {of && <MoreTasks of={of} />}
      {of && <Heads of={of} />}
      {of && <InTurn of={of} />}
    </section>
  );
}

/** Parts for heads that say more than one answer of a text: fetched with the first model that has one. */
const tasks = signal<typeof import('./tasks.tsx') | undefined>(undefined);
const tasksFailure = signal<string | undefined>(undefined);
const ofTokens: readonly Task[] = ['token-classification', 'fill-mask', 'question-answering'];

function TaskOf({ of }: { of: LoadedModel }) {
  const isWanted = ofTokens.includes(of.task) || of.labels?.length === 1;
  useEffect(() => {
    if (!isWanted || tasks.value) return;
    tasksFailure.value = undefined;
    import('./tasks.tsx').then(
      (found) => (tasks.value = found),
      (error: unknown) => (tasksFailure.value = explain(error)),
    );
  }, [of]);
  if (!isWanted) return null;
  if (tasksFailure.value)
    return (
      <p role="alert" class="error">
        The part of the page for this model could not be fetched. Reload the page. {tasksFailure.value}
      </p>
    );
  return tasks.value ? <tasks.value.TaskPart of={of} /> : null;
}

/** Small models beside the page whose heads are for something else. */
const small = [
  ['entities', 'marks people, places, organisations and dates in a text'],
  ['masks', 'guesses which word a mask hides'],
] as const;

function MoreTasks({ of }: { of: LoadedModel }) {
  return (
    <Part title="What else can such a model do?">
      <p>
        The layers stay the same; what they are good for depends on the head on top. Two more small models are beside this page. They replace the
        model above, and come when you ask for them.
      </p>
      <ul class="use-more">
        {small.map(([id, about]) => (
          <li key={id}>
            <button type="button" disabled={of.id === id || !!loading.value} onClick={() => void chooseModel(id)}>
              Load the {nameOf(id)}, {megabytes(expectedBytes(id, 'int8')!)}
            </button>
            <span>{of.id === id ? 'It is the model above.' : `It ${about}.`}</span>
          </li>
        ))}
      </ul>
      <p class="note">
        A model for question answering, or a cross-encoder that ranks texts, shows its own part here, too: load one by its name above, or drop its
        folder.
      </p>
    </Part>
  );
}

/** |x| */
const Length = ({ children }: { children: string }) => (
  <mrow>
    <mo>|</mo>
    <mi>{children}</mi>
    <mo>|</mo>
  </mrow>
);

function Part({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <div class="use-part">
      <h3>{title}</h3>
      {children}
    </div>
  );
}

/** What the vectors of this model are good for. */
function goodFor({ id, name, labels }: LoadedModel): string {
  if (id === 'sentiment')
    return 'The sentiment classifier has learned one thing: whether a film review is positive. Its vectors group texts by that, whatever they are about. To group them by topic, load all-MiniLM-L6-v2 above.';
  if (id === 'all-MiniLM-L6-v2')
    return 'all-MiniLM-L6-v2 was trained to give texts with similar meanings similar vectors: acting goes with acting and music with music, good or bad.';
  if (labels) return `${name} was trained to tell ${labels.join(', ')} apart, so its vectors group texts mostly by that.`;
  return `How ${name} groups texts depends on what it was trained for. The groups mean most if it was trained to compare sentences.`;
}

function Similarity() {
  const [asTable, setAsTable] = useState(false);
  const texts = readLines(linesText.value);
  const fault = faultOf(texts);
  const made = lines.value.value;
  const failure = lines.failure.value;
  const current = made && made.model === shownModel.value ? made : undefined;
  return (
    <Part title="Which texts are alike?">
      <p>
        The <Term word="cosine" /> of two vectors says how similar their directions are. Bright cells are pairs that the model finds similar. On the
        diagonal is every text with itself.
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
          <div class="field">
            <label for="use-texts">Texts, one a line</label>
            <textarea
              id="use-texts"
              rows={9}
              spellcheck={false}
              value={linesText.value}
              aria-invalid={fault ? 'true' : undefined}
              aria-describedby={fault ? 'use-texts-error' : undefined}
              onInput={(event) => (linesText.value = event.currentTarget.value)}
            />
            {fault && (
              <p role="alert" id="use-texts-error" class="error">
                {fault}
              </p>
            )}
            {failure && (
              <p role="alert" class="error">
                The texts could not be compared. {failure}
              </p>
            )}
          </div>
          {current && <Nearest of={current} />}
        </div>
        {current && (
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
      {current && (
        <>
          {asTable && (
            <div class="use-lines">
              <SimilarityTable name="Cosine similarity" of={current} answers={current.all} />
              {current.without && <SimilarityTable name="Cosine similarity without the heads that are off" of={current} answers={current.without} />}
            </div>
          )}
        </>
      )}
    </Part>
  );
}

function Maps({ of }: { of: Lines }) {
  const { all, without } = of;
  const low = Math.min(...all.similarity.data, ...(without?.similarity.data ?? []));
  const chosen = Math.min(chosenLine.value, of.texts.length - 1);
  const choose = (row: number) => (chosenLine.value = row);
  const ramp = Array.from({ length: 9 }, (_, i) => colour(i / 8)).join(', ');
  return (
    <div>
      <div class="use-maps">
        <MatrixMap title={without ? 'All heads' : 'Similarity of the lines'} matrix={all.similarity} low={low} chosen={chosen} onChoose={choose} />
        {without && <MatrixMap title="Without the heads that are off" matrix={without.similarity} low={low} chosen={chosen} onChoose={choose} />}
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
      <ol class="ranked" aria-label="Lines by similarity">
        {neighboursOf(of, line).map(({ line: other, before, after }) => (
          <li key={other}>
            <span class="ranked-name">
              <span class="figure">{other + 1}</span> {of.texts[other]}
            </span>
            {of.without && <span class="change">was {fixed(before, 4)}</span>}
            <BarNumber value={after} />
          </li>
        ))}
      </ol>
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

const madeFor: Readonly<Partial<Record<Task, string>>> = {
  embedding: 'to compare texts',
  'token-classification': 'to sort tokens into classes',
  'fill-mask': 'to guess hidden words',
  'question-answering': 'to find answers in a text',
  'multiple-choice': 'to choose between endings',
};

function Classification({ of }: { of: LoadedModel }) {
  const made = lines.value.value;
  const current = made?.model === of ? made : undefined;
  const { labels } = of;
  return (
    <Part title="What does the classifier answer?">
      {!labels && (
        <p>
          {of.name} has no classifier: it was made {madeFor[of.task] ?? 'for something else'}, not to sort texts into classes. The sentiment
          classifier has one. Load it above to see its answers for these lines.
        </p>
      )}
      {labels && (
        <p>
          {answerFunction(of) === 'identity' ? (
            <>
              The same lines, each with the model’s <Term word="logits" />. It was trained to estimate numbers, and these are its estimates.
            </>
          ) : (
            <>
              The same lines, each with the probability of every answer. It is computed from the <Term word="logits" /> by{' '}
              {answerFunction(of) === 'softmax' ? <Term word="softmax" /> : 'the sigmoid, 1 / (1 + e⁻ˣ)'}, and says how sure the model is, not whether
              it is right.
              {of.id === 'sentiment' && <Measured />}
            </>
          )}
        </p>
      )}
      {labels && current?.all.probabilities && <Probabilities of={current} labels={labels} />}
      {labels && current && <WhyPart texts={current.texts} />}
    </Part>
  );
}

/** How often the bundled classifier is right. */
const Measured = () => (
  <>
    {' '}
    Of 100 sentences that the sentiment classifier never saw it gets {rightOf100.films} right where they are about films, {rightOf100.negations} of
    those that turn on a negation or a contrast, and {rightOf100.products} about products. Irony and comparisons often fool it.
  </>
);

function Probabilities({ of, labels }: { of: Lines; labels: readonly string[] }) {
  const before = of.all.probabilities!.data;
  const after = of.without?.probabilities?.data;
  const isValue = answerName(of.model) === 'value';
  return (
    <div class="use-lines">
      <NumberTable
        name={isValue ? 'Values' : 'Probabilities'}
        rows={{ kind: 'text', count: of.texts.length, label: (i) => of.texts[i]! }}
        columns={{ kind: 'answer', count: labels.length, label: (i) => labels[i]! }}
        cell={(i, j) => {
          const at = i * labels.length + j;
          return (
            <>
              {isValue ? fixed((after ?? before)[at]!, 4) : <BarNumber value={(after ?? before)[at]!} />}
              {after && <span class="working">was {fixed(before[at]!, 4)}</span>}
            </>
          );
        }}
      />
    </div>
  );
}

function Heads({ of }: { of: LoadedModel }) {
  const off = headsOff.value;
  const wanted = wantedOff.value;
  const made = lines.value.value;
  const current = made?.model === of && made.off === off ? made : undefined;
  const count = (length: number) => Array.from({ length }, (_, i) => i);
  return (
    <Part title="What if heads are switched off?">
      <p>
        A head that is switched off contributes nothing: its results are multiplied by 0 before the heads are put together. That is an{' '}
        <Term word="ablation">ablation</Term>. Press a button to switch its head off, everywhere on this page.
      </p>
      <div class="use-heads" role="group" aria-label="Heads that are off">
        {count(of.layers).map((layer) => (
          <div key={layer} class="use-heads-layer">
            <span aria-hidden="true">Layer {layer + 1}</span>
            {count(of.heads).map((head) => {
              const index = layer * of.heads + head;
              return (
                <button
                  key={head}
                  type="button"
                  aria-label={`Layer ${layer + 1}, head ${head + 1}`}
                  aria-pressed={wanted.includes(index)}
                  onClick={() => toggleHead(index)}
                >
                  {head + 1}
                </button>
              );
            })}
          </div>
        ))}
      </div>
      <div class="buttons">
        <button type="button" disabled={wanted.length === 0} onClick={() => update({ off: [] })}>
          Switch all heads on
        </button>
      </div>
      <p class="use-effect" aria-live="polite">
        {off.length === 0 ? 'All heads are on.' : current ? effectOf(current) : 'Computing …'}
      </p>
    </Part>
  );
}

/** In words: what the heads that are off change. */
function effectOf({ texts, all, off, without, model }: Lines): string {
  const { labels } = model;
  const similarity = furthest(all.similarity, without!.similarity);
  const [i, j] = [Math.floor(similarity.index / texts.length), similarity.index % texts.length];
  const now = without!.similarity.data[similarity.index]!;
  let text = `${counted(off.length, 'head')} off. The similarity of lines ${i + 1} and ${j + 1} changes most: ${fixed(now - similarity.difference, 4)} before, ${fixed(now, 4)} now (${signed(similarity.difference)}).`;
  if (labels && all.probabilities && without!.probabilities) {
    const probability = furthest(all.probabilities, without!.probabilities);
    const line = Math.floor(probability.index / labels.length);
    const changed = without!.probabilities.data[probability.index]!;
    const [was, is] = [largestOf(all.probabilities), largestOf(without!.probabilities)];
    const turned = texts.filter((_, each) => was[each] !== is[each]).length;
    text += ` The ${answerName(model)} that changes most is “${labels[probability.index % labels.length]}” of line ${line + 1}: ${fixed(changed - probability.difference, 4)} before, ${fixed(changed, 4)} now. ${turned === 0 ? 'No answer changes.' : `${counted(turned, 'answer')} of ${texts.length} ${turned === 1 ? 'changes' : 'change'}.`}`;
  }
  return text;
}

function InTurn({ of }: { of: LoadedModel }) {
  const made = ablation.value?.model === of ? ablation.value : undefined;
  const progress = ablating.value;
  const data = made?.effects.data;
  const strongest = data ? data.reduce((best, value, i) => (Math.abs(value) > Math.abs(data[best]!) ? i : best), 0) : 0;
  const [layer, head] = [Math.floor(strongest / of.heads), strongest % of.heads];
  const most = Math.abs(data?.[strongest] ?? 0);
  return (
    <Part title="Which heads matter?">
      <p>
        {of.labels
          ? 'Each head is switched off alone, and the classifier answers again for the sentence at the top of the page.'
          : 'Each head is switched off alone, and the vector of the sentence at the top of the page is compared with what it was before.'}{' '}
        Often a model can do without most of its heads, but not without a few of them (
        <Paper of="Michel et al. 2019" />
        ).
      </p>
      <div class="use-turn">
        <button type="button" disabled={progress !== undefined} onClick={() => void switchEachOff()}>
          Switch each head off in turn
        </button>
        {progress && (
          <>
            <progress max={progress.total} value={progress.done} aria-label="Heads tried" />
            <span class="figure">
              {progress.done} of {progress.total}
            </span>
            <button type="button" onClick={progress.cancel}>
              Cancel
            </button>
          </>
        )}
      </div>
      {ablationFailure.value && (
        <p role="alert" class="error">
          The heads could not be tried. {ablationFailure.value}
        </p>
      )}
      {made && (
        <>
          <p>
            {!isCurrent(made) && 'The text or the model has changed since then: try them again. '}
            {made.answer
              ? `With all heads the answer is “${made.answer.label}”, ${answerName(of)} ${fixed(made.answer.probability, 4)}. The table shows how much that ${answerName(of)} changes without each head.`
              : 'The table shows how far the cosine with the vector of all heads falls below 1 without each head.'}{' '}
            The largest change comes from layer {layer + 1}, head {head + 1}: {signed(data![strongest]!)}.
          </p>
          <p class="buttons">
            <button type="button" onClick={() => update({ layer, head })}>
              Put layer {layer + 1}, head {head + 1} in focus
            </button>
          </p>
          <NumberTable
            name="Effect of each head"
            rows={{ kind: 'layer', count: of.layers }}
            columns={{ kind: 'head', count: of.heads }}
            cell={(i, j) => signed(made.effects.data[i * of.heads + j]!)}
            tint={(i, j) => (most > 0 ? Math.abs(made.effects.data[i * of.heads + j]!) / most : 0)}
          />
          <p class="note">
            Text: “{made.pair === undefined ? made.text : `${made.text} / ${made.pair}`}”. All other heads are on, and nothing is masked.
          </p>
        </>
      )}
    </Part>
  );
}
