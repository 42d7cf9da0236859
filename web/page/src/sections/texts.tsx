import { useRef, useState } from 'preact/hooks';
import { examples, exampleInView, openExample, type Example } from '../state/examples.ts';
import { linkHash, longestHash } from '../state/hash.ts';
import { model } from '../state/model.ts';
import { cancelRun, run, runAgain, runsLong } from '../state/run.ts';
import { textNotes } from '../state/text_notes.ts';
import { setText, view } from '../state/view.ts';

const secondText = 'The story was dull, but the acting was brilliant.';

export function Texts() {
  const { text, pair } = view.value;
  const second = useRef<HTMLTextAreaElement>(null);
  const compare = () => {
    setText(text, secondText);
    requestAnimationFrame(() => second.current?.select());
  };
  return (
    <div class="texts">
      <div class="texts-fields">
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
        {run.value &&
          textNotes(run.value).map((note) => (
            <p key={note} class="note" role="note">
              {note}
            </p>
          ))}
      </div>
      <div class="texts-tools">
        <Examples />
        <div class="buttons">
          <RunButton />
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
      </div>
    </div>
  );
}

function Examples() {
  const option = (each: Example) => {
    const i = examples.indexOf(each);
    return (
      <option key={i} value={String(i)}>
        {each.what ?? each.text}
      </option>
    );
  };
  return (
    <label class="inline-field examples">
      <span>Examples</span>
      <select
        value={String(exampleInView.value)}
        onChange={(event) => {
          const example = examples[Number(event.currentTarget.value)];
          if (example) openExample(example);
        }}
      >
        <option value="-1" disabled hidden>
          your own sentence
        </option>
        <optgroup label="What heads attend to">{examples.filter(({ breaks }) => !breaks).map(option)}</optgroup>
        <optgroup label="Change the answer: switch one head off">{examples.filter(({ breaks }) => breaks).map(option)}</optgroup>
      </select>
    </label>
  );
}

/** Typing runs the model automatically; a long run can be cancelled and started again. */
function RunButton() {
  return runsLong.value ? (
    <button type="button" class="run-button" onClick={cancelRun}>
      Cancel
    </button>
  ) : (
    <button type="button" class="run-button" disabled={!model.value} onClick={runAgain}>
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
      return void setSaid(`The link would have ${hash.length} characters, and many programs cut such links. Shorten the text or undo some changes.`);
    const address = new URL(hash ? `#${hash}` : '', location.href.replace(/#.*/, '')).href;
    try {
      await navigator.clipboard.writeText(address);
      setLink(undefined);
      setSaid(`Copied. The link contains your text: anyone with the link can read it.${filesNote()}`);
    } catch {
      setLink(address);
      setSaid(`Copy the link from here. It contains your text: anyone with the link can read it.${filesNote()}`);
    }
  };
  return (
    <div class="share">
      <button type="button" aria-describedby="share-note" onClick={() => void share()}>
        Share
      </button>
      <span class={said ? 'note' : 'note unsaid'} id="share-note" aria-live="polite">
        {said || 'Links contain your text.'}
      </span>
      {link && <input type="text" readOnly aria-label="Link to this view" value={link} onFocus={(event) => event.currentTarget.select()} />}
    </div>
  );
}

const filesNote = () => (view.value.model === 'files' ? ' It does not contain the model from your files.' : '');
