import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { cut } from '../cut.ts';
import { counted } from '../numbers.ts';
import { modelFiles } from '../model_folder.ts';
import { longestHash, linkHash, unread } from '../state/hash.ts';
import {
  answerFunction,
  beside,
  chooseDType,
  chooseFiles,
  chooseModel,
  expectedBytes,
  failure,
  keepLoaded,
  knownModels,
  loading,
  model,
  nameOf,
  restart,
  type Failure,
  type LoadedModel,
} from '../state/model.ts';
import { answers, baseline, cancelRun, run, runAgain, runsLong, type Run } from '../state/run.ts';
import { status } from '../state/status.ts';
import { isChanged, setText, undoChanges, update, view, type DType, type View } from '../state/view.ts';
import '../styles/bar.css';
import { droppedFiles } from '../ui/dropped_files.ts';
import { Progress } from '../ui/progress.tsx';
import { Term } from '../ui/term.tsx';

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
  const encoding = run.value?.encoding;
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
      {encoding?.truncated[0] && (
        <p class="note" role="note">
          Only the first {counted(encoding.tokens[0]!.length, 'token')} are read: this model takes no more.
        </p>
      )}
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

/** Of a model from a link: its host and its folder can be seen. */
const longestAddress = 300;

/** What is loaded, and what else can be. */
function Model() {
  const [more, setMore] = useState(false);
  const loaded = model.value;
  const wanted = view.value.model;
  const known = knownModels.find(({ id }) => id !== 'sentiment')!;
  const choose = (id: string) => void chooseModel(id);
  // Where it failed, the next attempt is at hand.
  useLayoutEffect(() => setMore(false), [loaded]);
  const others = wanted !== loaded?.id && wanted !== 'sentiment' && !loading.value;
  const isOtherDType = wanted === loaded?.id && wanted !== 'sentiment' && view.value.dtype !== loaded.dtype && !loading.value;
  return (
    <div class="model">
      <div class="model-name">
        <p>
          {loaded ? (
            <>
              {loaded.name}, {loaded.layers} × {loaded.heads} heads, <Term word={loaded.dtype} />
              {loaded.id !== 'sentiment' && <span class="muted"> {origin(loaded)}</span>}
            </>
          ) : (
            <>
              <strong>Model:</strong> {status.value.failed ? 'none' : 'starting …'}
            </>
          )}
        </p>
        <button type="button" class="quiet" aria-expanded={more} aria-controls="other-model" onClick={() => setMore(!more)}>
          Another model
        </button>
      </div>
      {loaded && others && <Offer id={wanted} onChoose={choose} loaded={loaded} />}
      {loaded && isOtherDType && <OtherDType of={loaded} />}
      {loading.value && loaded && <Progress of={loading.value} />}
      {failure.value && <Problem of={failure.value} />}
      {!loading.value && (
        <div class="buttons">
          {loaded?.id !== known.id && wanted !== known.id && (
            <button type="button" onClick={() => choose(known.id)}>
              {loadKnown(known.id)}
            </button>
          )}
          {loaded && loaded.id !== 'sentiment' && (
            <button type="button" onClick={() => choose('sentiment')}>
              Back to the sentiment classifier
            </button>
          )}
          <Weights isLabelled={loaded !== undefined && loaded.id !== 'sentiment'} />
        </div>
      )}
      <div id="other-model" hidden={!more || !!loading.value}>
        <Other onChoose={choose} />
      </div>
    </div>
  );
}

const wholeMegabytes = (bytes: number) => `${Math.round(bytes / 1e6)} MB`;
const loadKnown = (id: string) => `Load ${nameOf(id)}, ${wholeMegabytes(expectedBytes(id, view.value.dtype)!)}, runs locally`;

/** What its weights were made of. */
function origin({ dtype, isStoredAsInt8, bytes }: LoadedModel): string {
  const size = `of ${(bytes / 1e6).toFixed(1)} MB`;
  if (dtype === 'int8') return isStoredAsInt8 ? `from files ${size}` : `made here from files ${size}`;
  return isStoredAsInt8 ? `from int8 files ${size}` : `from files ${size}`;
}

/** How models are loaded from here on. What is here stays as it is until it is loaded anew. Beside the button that loads, it needs no label to be seen. */
function Weights({ isLabelled }: { isLabelled: boolean }) {
  return (
    <label class={isLabelled ? 'inline-field' : 'inline-field unlabelled'}>
      <span>Weights of the model</span>
      <select
        value={view.value.dtype}
        title="Weights of the model: int8 is a quarter of float32"
        onChange={(event) => update({ dtype: event.currentTarget.value as DType })}
      >
        <option value="int8">int8</option>
        <option value="float32">float32</option>
      </select>
    </label>
  );
}

/** Another kind of weights was chosen than the model here has: nothing is loaded unasked. */
function OtherDType({ of }: { of: LoadedModel }) {
  const { dtype } = view.value;
  const bytes = of.id === 'files' ? undefined : expectedBytes(of.id, dtype);
  return (
    <div class="notice">
      <p>
        {of.name} is here with {of.dtype} weights.
      </p>
      <div class="buttons">
        <button type="button" onClick={() => void chooseDType()}>
          {beside.value ? `Change to ${dtype}` : `Load it as ${dtype}${bytes === undefined ? '' : `, ${wholeMegabytes(bytes)}`}`}
        </button>
        <button type="button" class="quiet" onClick={() => update({ dtype: of.dtype })}>
          Stay with {of.dtype}
        </button>
      </div>
    </div>
  );
}

/** A link may speak of another model than the one that is here. It is never loaded unasked. */
function Offer({ id, loaded, onChoose }: { id: string; loaded: LoadedModel; onChoose: (id: string) => void }) {
  const known = knownModels.find((each) => each.id === id);
  return (
    <div class="notice">
      <p>
        {id === 'files'
          ? 'This link was made with a model from files. Choose the same files to see what its sender saw.'
          : `This link was made with the model ${known?.name ?? cut(id, longestAddress)}.`}
      </p>
      <div class="buttons">
        {id !== 'files' && (
          <button type="button" onClick={() => onChoose(id)}>
            {known ? loadKnown(id) : 'Load it from there'}
          </button>
        )}
        <button type="button" class="quiet" onClick={keepLoaded}>
          Stay with the {loaded.name}
        </button>
      </div>
    </div>
  );
}

function Problem({ of: { what, cause, fix, code } }: { of: Failure }) {
  const stopped = code === 'INTERNAL' || code === 'ABORTED' || !model.value;
  return (
    <div role="alert" class="problem">
      <p>
        <strong>{what}</strong> {cause}
      </p>
      <p>{fix}</p>
      <div class="buttons">
        {stopped && (
          <button type="button" onClick={() => void restart()}>
            Restart
          </button>
        )}
        <button type="button" class="quiet" onClick={() => (failure.value = undefined)}>
          Close
        </button>
      </div>
    </div>
  );
}

function choosePaths(files: readonly (readonly [string, File])[]): void {
  const { folder, files: byName } = modelFiles(files);
  void chooseFiles(byName, folder);
}

function Other({ onChoose }: { onChoose: (id: string) => void }) {
  const [address, setAddress] = useState('');
  const [error, setError] = useState('');
  const load = () => {
    try {
      if (!address.trim() || address.length > longestHash) throw new Error();
      // A folder's address ends in a slash; relative ones are relative to the page.
      const url = new URL(address.trim().replace(/\/*$/, '/'), location.href.replace(/#.*/, ''));
      if (url.protocol !== 'https:' && url.protocol !== 'http:') throw new Error();
      setError('');
      onChoose(url.href);
    } catch {
      setError('This is no address. Enter the address of a folder, such as https://example.org/models/my-bert/.');
    }
  };
  const choose = (event: { currentTarget: HTMLInputElement }) => {
    const files = Array.from(event.currentTarget.files ?? [], (file) => [file.webkitRelativePath || file.name, file] as const);
    // The same files may be chosen again after they were changed.
    event.currentTarget.value = '';
    if (files.length === 0) return;
    choosePaths(files);
  };
  return (
    <div class="other-model">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          load();
        }}
      >
        <label class="field">
          <span>Address of a model’s folder</span>
          <input
            type="text"
            inputMode="url"
            spellcheck={false}
            autocomplete="off"
            value={address}
            aria-invalid={error ? 'true' : undefined}
            aria-describedby={error ? 'address-error' : undefined}
            onInput={(event) => setAddress(event.currentTarget.value)}
          />
        </label>
        <button type="submit">Load from there</button>
      </form>
      {error && (
        <p role="alert" id="address-error" class="error">
          {error}
        </p>
      )}
      <div class="buttons">
        <label class="file">
          <input type="file" multiple aria-label="Choose files" onChange={choose} />
          <span aria-hidden="true">Choose files …</span>
        </label>
        <label class="file">
          <input type="file" {...{ webkitdirectory: true }} aria-label="Choose a folder" onChange={choose} />
          <span aria-hidden="true">Choose a folder …</span>
        </label>
        <span class="note">or drop them anywhere on the page</span>
      </div>
      <p class="note">
        An encoder in Hugging Face’s format (config.json, tokenizer.json, model.safetensors) of the families BERT, DistilBERT, RoBERTa, XLM-RoBERTa,
        MPNet or ModernBERT. Your files stay on this computer.
      </p>
    </div>
  );
}

/** Files that are dropped where no field takes them are a model. */
function DropZone() {
  const [over, setOver] = useState(false);
  useEffect(() => {
    const hasFiles = (event: DragEvent) => event.dataTransfer?.types.includes('Files') ?? false;
    const dragover = (event: DragEvent) => {
      if (!hasFiles(event)) return;
      setOver(!event.defaultPrevented);
      event.preventDefault();
    };
    const dragleave = (event: DragEvent) => {
      if (!event.relatedTarget) setOver(false);
    };
    const drop = (event: DragEvent) => {
      setOver(false);
      if (event.defaultPrevented || !hasFiles(event)) return;
      event.preventDefault();
      droppedFiles(event.dataTransfer!).then(choosePaths, () => choosePaths([]));
    };
    addEventListener('dragover', dragover);
    addEventListener('dragleave', dragleave);
    addEventListener('drop', drop);
    return () => {
      removeEventListener('dragover', dragover);
      removeEventListener('dragleave', dragleave);
      removeEventListener('drop', drop);
    };
  }, []);
  return over ? (
    <p class="drop-hint" aria-hidden="true">
      Drop a model’s folder or its files to load it
    </p>
  ) : null;
}

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
