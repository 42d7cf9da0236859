import { computed } from '@preact/signals';
import { capitalized, headName } from '../../formats/names.ts';
import { counted, fixed } from '../../formats/numbers.ts';
import { answerName, isDecoder, type LoadedModel } from '../../model/loaded.ts';
import { ablating, ablation, ablationFailure, isCurrent, switchEachOff } from '../../state/ablation.ts';
import { headsOff } from '../../state/background.ts';
import { toggleHead } from '../../state/heads.ts';
import { furthest, largestOf, lines, type Lines } from '../../state/compare_texts.ts';
import { run } from '../../state/run.ts';
import { blanksOf } from '../../state/strongest.ts';
import { update, view } from '../../state/view.ts';
import { NumberTable } from '../../ui/number_table.tsx';
import { Paper } from '../../ui/papers.tsx';
import { Term } from '../../ui/term.tsx';
import { Part } from '../../ui/part.tsx';
import { Alert } from '../../ui/alert.tsx';
import { guessText } from '../guess_text.ts';

/** Only this part of the view matters here. */
const wantedOff = computed(() => view.value.off);

const signed = (value: number): string => {
  const text = fixed(value, 4);
  return text.startsWith('-') || Number(text) === 0 ? text : `+${text}`;
};

export function Heads({ of }: { of: LoadedModel }) {
  const off = headsOff.value;
  const wanted = wantedOff.value;
  const made = lines.value.value;
  const current = made?.model === of && made.off === off ? made : undefined;
  const count = (length: number) => Array.from({ length }, (_, i) => i);
  return (
    <Part class="use-part" title="What if heads are switched off?">
      <p>
        A head that is switched off contributes nothing: its results are multiplied by 0 before the heads are concatenated. This is called{' '}
        <Term word="ablation">ablation</Term>. Press a button to switch its head off, everywhere on this page.
      </p>
      <div class="use-heads" role="group" aria-label="Heads that are off">
        {count(of.layers).map((layer) => (
          <div key={layer} class="use-heads-layer">
            <span aria-hidden="true">Layer {layer + 1}</span>
            <div>
              {count(of.heads).map((head) => {
                const index = layer * of.heads + head;
                return (
                  <button
                    key={head}
                    type="button"
                    aria-label={capitalized(headName(layer, head))}
                    aria-pressed={wanted.includes(index)}
                    onClick={() => toggleHead(index)}
                  >
                    {head + 1}
                  </button>
                );
              })}
            </div>
          </div>
        ))}
      </div>
      <div class="buttons">
        <button type="button" disabled={wanted.length === 0} onClick={() => update({ off: [] })}>
          Switch all heads on
        </button>
      </div>
      <p class="use-effect" aria-live="polite">
        {off.length === 0 ? 'All heads are on.' : (guessText() ?? (current ? effectOf(current) : 'Computing …'))}
      </p>
    </Part>
  );
}

function effectOf({ texts, all, off, without, model }: Lines): string {
  const { labels } = model;
  const similarity = furthest(all.similarity, without!.similarity);
  const [i, j] = [Math.floor(similarity.index / texts.length), similarity.index % texts.length];
  const now = without!.similarity.data[similarity.index]!;
  let text = `${counted(off.length, 'head')} off. Of the texts in part 6, the similarity of lines ${i + 1} and ${j + 1} changes most: ${fixed(now - similarity.difference, 4)} before, ${fixed(now, 4)} now (${signed(similarity.difference)}).`;
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

function againFor(of: LoadedModel): string {
  const guesses = isDecoder(of) || (run.value?.model === of && blanksOf(run.value).length > 0);
  if (of.labels) return 'classifies the sentence at the top of the page again.';
  if (guesses) return `lets the model guess the ${isDecoder(of) ? 'next word' : 'blank'} at the top of the page again.`;
  return 'compares the vector of the sentence at the top of the page with the original one.';
}

export function InTurn({ of }: { of: LoadedModel }) {
  const made = ablation.value?.model === of ? ablation.value : undefined;
  const progress = ablating.value;
  const data = made?.effects.data;
  const strongest = data ? data.reduce((best, value, i) => (Math.abs(value) > Math.abs(data[best]!) ? i : best), 0) : 0;
  const [layer, head] = [Math.floor(strongest / of.heads), strongest % of.heads];
  const most = Math.abs(data?.[strongest] ?? 0);
  return (
    <Part class="use-part" title="Which heads matter?">
      <p>
        This switches off each head on its own and {againFor(of)} Most heads can be switched off one at a time with little effect, because others do
        similar work; a few cannot (
        <Paper of="Michel et al. 2019" />
        ). A head may also argue for another answer: without it, the first guess gains.
      </p>
      <div class="use-turn">
        <button type="button" disabled={progress !== undefined} onClick={() => void switchEachOff()}>
          Switch each head off in turn
        </button>
        {progress && (
          <>
            <progress max={progress.total} value={progress.done} aria-label="Heads tested" />
            <span class="figure">
              {progress.done} of {progress.total}
            </span>
            <button type="button" onClick={progress.cancel}>
              Cancel
            </button>
          </>
        )}
      </div>
      <Alert what="The heads could not be tested." why={ablationFailure.value} />
      {made && (
        <>
          <p>
            {!isCurrent(made) && 'The text or the model has changed since. Run the test again. '}
            {made.answer
              ? `With all heads the ${of.labels ? 'answer' : 'guess'} is “${made.answer.label}”, ${answerName(of)} ${fixed(made.answer.probability, 4)}. The table shows how much that ${answerName(of)} changes without each head.`
              : 'The table shows the cosine with the original vector minus 1, for each head.'}{' '}
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
            isSigned
            tint={(i, j) => (most > 0 ? made.effects.data[i * of.heads + j]! / most : 0)}
          />
          <p class="note">
            Text: “{made.pair === undefined ? made.text : `${made.text} / ${made.pair}`}”. All other heads are on, and there are no masks. Violet:
            larger without the head; gold: smaller.
          </p>
        </>
      )}
    </Part>
  );
}
