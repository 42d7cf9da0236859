import { useRef, useState } from 'preact/hooks';
import { counted } from '../numbers.ts';
import { longestHash, linkHash, unread } from '../state/hash.ts';
import { answerFunction, model } from '../state/model.ts';
import { answers, baseline, cancelRun, run, runAgain, runsLong, type Run } from '../state/run.ts';
import { textNotes } from '../state/text_notes.ts';
import { isChanged, setText, undoChanges, view, type View } from '../state/view.ts';
import '../styles/bar.css';
import { Term } from '../ui/term.tsx';
import { DropZone, Model } from './model.tsx';

const examples: readonly { readonly what: string; readonly text: string; readonly pair?: string }[] = [
  { what: 'Praise and blame', text: 'A film with wonderful actors and a terrible script.' },
  { what: 'Negation', text: 'Not a bad film at all, and never boring.' },
  { what: 'Pronouns', text: 'The actress thanked the director because she loved his script.' },
  { what: 'Repeated words', text: 'The best of the best: the best cast in the best film of the year.' },
  { what: 'Rare words', text: 'An unputdownable, heartwarming, swashbuckling whodunit.' },
  { what: 'A question and an answer', text: 'Was the story any good?', pair: 'No, but the acting was brilliant.' },
];
const secondText = 'The story was dull, but the acting was brilliant.';

export function Bar() {
  return (
    <section id="sentence" aria-labelledby="sentence-title">
      <div class="bar-head">
        <h1 id="sentence-title">Which words look at which?</h1>
        <p>
          A Transformer, the kind of model behind chat and search, lets every word of a text take something from the others. How much it takes from
          each is its <Term word="attention weight">attention</Term>: where a cell is bright, the word of the <span class="as-query">row</span> looks
          at the word of the <span class="as-key">column</span>. <strong>Try:</strong> point at a word, then change the sentence.
        </p>
      </div>
      <div class="bar-body">
        <Texts />
        <div class="bar-model">
          {run.value && <Answer of={run.value} before={isChanged.value ? baseline.value : undefined} />}
          <Model />
        </div>
      </div>
      <Changed />
      <Unread />
      <DropZone />
    </section>
  );
}

function Texts() {
  const { text, pair } = view.value;

  const second = useRef<HTMLTextAreaElement>(null);
  const chosen = examples.findIndex((each) => each.text === text && each.pair === pair);
  const compare = () => {
    setText(text, secondText);
    requestAnimationFrame(() => second.current?.select());
  };
  return (
    <div class="bar-texts">
      <label class="field">
        <span>Sentence</span>
        <textarea rows={2} spellcheck={false} value={text} onInput={(event) => setText(event.currentTarget.value, pair)} />
      </label>
      {pair !== undefined && (
        <label class="field">
          <span>Second text</span>
          <textarea ref={second} rows={2} spellcheck={false} value={pair} onInput={(event) => setText(text, event.currentTarget.value)} />
        </label>
      )}
      <div class="buttons">
        <RunButton />
        <label class="inline-field">
          <span>Examples</span>
          <select
            value={String(chosen)}
            onChange={(event) => {
              const example = examples[Number(event.currentTarget.value)];
              if (example) setText(example.text, example.pair);
            }}
          >
            <option value="-1" disabled hidden>
              your own
            </option>
            {examples.map(({ what }, i) => (
              <option key={i} value={String(i)}>
                {what}
              </option>
            ))}
          </select>
        </label>
        {pair === undefined ? (
          <button type="button" onClick={compare}>
            Compare two texts
          </button>
        ) : (
          <button type="button" onClick={() => setText(text, undefined)}>
            One text only
          </button>
        )}
        <Share />
      </div>
      {run.value &&
        textNotes(run.value).map((note) => (
          <p key={note} class="note" role="note">
            {note}
          </p>
        ))}
    </div>
  );
}

/** What is typed runs by itself; a run that takes long can be cancelled, and begun again. */
function RunButton() {
  return runsLong.value ? (
    <button type="button" onClick={cancelRun}>
      Cancel
    </button>
  ) : (
    <button type="button" disabled={!model.value} onClick={runAgain}>
      Run
    </button>
  );
}

function Share() {
  const [said, setSaid] = useState('');
  const [link, setLink] = useState<string>();
  const share = async () => {
    const hash = linkHash();
    if (hash.length > longestHash)
      return void setSaid(
        `The link would be ${hash.length} characters long, and many programs cut such links off. Shorten the text, or undo some changes.`,
      );
    const address = new URL(hash ? `#${hash}` : '', location.href.replace(/#.*/, '')).href;
    try {
      await navigator.clipboard.writeText(address);
      setLink(undefined);
      setSaid(`Copied. The text is part of the link: anyone who has the link can read it.${filesNote()}`);
    } catch {
      setLink(address);
      setSaid(`Copy the link from here. The text is part of it: anyone who has the link can read it.${filesNote()}`);
    }
  };
  return (
    <div class="share">
      <button type="button" aria-describedby="share-note" onClick={() => void share()}>
        Share
      </button>
      <span class={said ? 'note' : 'note unsaid'} id="share-note" aria-live="polite">
        {said || 'The link holds the text.'}
      </span>
      {link && <input type="text" readOnly aria-label="Link to this view" value={link} onFocus={(event) => event.currentTarget.select()} />}
    </div>
  );
}

const filesNote = () => (view.value.model === 'files' ? ' The model from your files is not part of it.' : '');

/** Of a classifier's answers so many are shown. */
const most = 3;

/** What a classifier says; where the visitor has changed something, what it said before. */
function Answer({ of, before }: { of: Run; before: Run | undefined }) {
  const now = answers(of);
  if (now.length === 0) return null;
  const then = before && before.model === of.model ? answers(before) : [];
  const isShare = answerFunction(of.model) !== 'identity';
  const shown = (score: number) => (isShare ? `${(100 * score).toFixed(1)} %` : score.toFixed(3));
  return (
    <ul class="answer" aria-label="The classifier's answer">
      {now.slice(0, most).map(({ label, score }) => {
        const old = then.find((each) => each.label === label);
        return (
          <li key={label}>
            <span>{label}</span>
            <span {...(isShare && { class: 'answer-bar', style: { '--share': `${100 * score}%` } })} aria-hidden="true" />
            <span class="figure">
              {shown(score)}
              {old && <span class="muted"> was {shown(old.score)}</span>}
            </span>
          </li>
        );
      })}
      {now.length > most && <li class="muted">and {counted(now.length - most, 'answer')} more</li>}
    </ul>
  );
}

/** A link that was too long to be read. */
function Unread() {
  if (unread.value === undefined) return null;
  return (
    <div role="alert" class="problem">
      <p>
        <strong>This link was not read.</strong> {unread.value}
      </p>
      <p>Ask its sender for a link with a shorter text or fewer edits.</p>
      <div class="buttons">
        <button type="button" class="quiet" onClick={() => (unread.value = undefined)}>
          Close
        </button>
      </div>
    </div>
  );
}

const scoreNames: Readonly<Record<string, string>> = { dot: 'plain products', general: 'Luong’s scores', additive: 'Bahdanau’s scores' };

/** In words, what is not as the model's authors published it. */
function changesIn({ causal, padding, drawn, off, weights, change }: View, perLayer: number): readonly string[] {
  const head = (number: number) => `${Math.floor(number / perLayer) + 1}.${(number % perLayer) + 1}`;
  return [
    causal && 'causal mask',
    padding.length > 0 && `${counted(padding.length, 'token')} hidden`,
    drawn.length > 0 && `${counted(drawn.length, 'cell')} masked`,
    off.length > 0 && `${off.length === 1 ? 'head' : 'heads'} ${off.length > 6 ? `(${off.length})` : off.map(head).join(', ')} off`,
    weights.length > 0 && `${counted(weights.length, 'weight')} edited`,
    change && change.factor !== 1 && `layer ${change.layer + 1}: scale × ${change.factor}`,
    change && change.score !== 'scaled_dot' && `layer ${change.layer + 1}: ${scoreNames[change.score]}`,
    change && change.dropout > 0 && `layer ${change.layer + 1}: dropout ${change.dropout}`,
    change && change.edits.length > 0 && `layer ${change.layer + 1}: ${counted(change.edits.length, 'number')} of its input edited`,
  ].filter((each) => typeof each === 'string');
}

function Changed() {
  if (!isChanged.value) return null;
  return (
    <p class="changed">
      <span>
        <strong>Changed:</strong> {changesIn(view.value, model.value?.heads ?? 1).join('; ')}.
      </span>
      <button type="button" onClick={undoChanges}>
        Undo all
      </button>
    </p>
  );
}
