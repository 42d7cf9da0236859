import { useRef } from 'preact/hooks';
import { examples, exampleInView, openExample, type Example } from '../state/examples.ts';
import { isDecoder, type LoadedModel } from '../model/loaded.ts';
import { model } from '../state/model.ts';
import { cancelRun, run, runAgain, runsLong } from '../state/run.ts';
import { setText, view } from '../state/view.ts';

const secondTextOf = (of: LoadedModel | undefined) =>
  of?.maskToken === undefined ? 'The story was dull, but the acting was brilliant.' : 'It was hot.';

export function Texts() {
  const { text, pair } = view.value;
  const second = useRef<HTMLTextAreaElement>(null);
  const compare = () => {
    setText(text, secondTextOf(model.value));
    requestAnimationFrame(() => second.current?.select());
  };
  return (
    <div class="texts">
      <div class="texts-fields">
        {pair !== undefined && (
          <label class="field">
            <span>Second text</span>
            <textarea
              ref={second}
              rows={2}
              spellcheck={false}
              dir="auto"
              aria-describedby="pair-note"
              value={pair}
              onInput={(event) => setText(text, event.currentTarget.value)}
            />
          </label>
        )}
        {pair !== undefined && (
          <p class="note" id="pair-note">
            The model reads both texts as one input, as for a question and its answer, and gives one answer to both. Part 6 compares texts.
          </p>
        )}
      </div>
      <div class="texts-tools">
        {model.value?.id === 'sentiment' && <Examples />}
        <div class="buttons">
          {model.value && isDecoder(model.value) ? null : pair === undefined ? (
            <button type="button" onClick={compare}>
              Add a second text
            </button>
          ) : (
            <button type="button" onClick={() => setText(text, undefined)}>
              One text only
            </button>
          )}
          <RunButton />
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

/** While the model reads, and after a run was cancelled. */
const isStale = (): boolean => run.value !== undefined && (run.value.view.text !== view.value.text || run.value.view.pair !== view.value.pair);

/** Typing runs the model automatically; a long run can be cancelled and started again. Keeps its room, so that nothing moves. */
function RunButton() {
  return runsLong.value ? (
    <button type="button" class="run-button" onClick={cancelRun}>
      Cancel
    </button>
  ) : (
    <button type="button" class={isStale() ? 'run-button' : 'run-button unneeded'} onClick={runAgain}>
      Run
    </button>
  );
}
