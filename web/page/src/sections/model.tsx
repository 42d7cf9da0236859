/** The loaded model, the ways to load another, and dropped files. */
import { useEffect, useLayoutEffect, useState } from 'preact/hooks';
import { hubHost, isGguf, readAddress } from '../model/address.ts';
import { decoders, encoders, wordsOf } from '../model/errors.ts';
import { megabytes, wholeMegabytes } from '../formats/numbers.ts';
import { longestHash } from '../state/hash.ts';
import { expectedBytes, knownModels, nameInSentence, nameOf, openingModels, otherHostOf, sentenceName } from '../model/known.ts';
import type { LoadedModel, DType } from '../model/loaded.ts';
import { chooseDType, chooseFiles, chooseModel, chooseOnHub, keepLoaded, restart } from '../state/load_model.ts';
import { beside, failure, loading, model, type Failure } from '../state/model.ts';
import { status } from '../state/status.ts';
import { update, view } from '../state/view.ts';
import '../styles/model.css';
import { droppedFiles } from '../ui/dropped_files.ts';
import { Progress } from '../ui/progress.tsx';
import { Term } from '../ui/term.tsx';
import { Alert } from '../ui/alert.tsx';

export function Model() {
  const [more, setMore] = useState(false);
  const loaded = model.value;
  const wanted = view.value.model;
  const known = knownModels.find((each) => 'repository' in each)!;
  const choose = (id: string) => void chooseModel(id);
  // Stays open after a failure, for the next attempt.
  useLayoutEffect(() => setMore(false), [loaded]);
  const others = wanted !== loaded?.id && !loading.value;
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
      {loaded?.note && <p class="note">{loaded.note}</p>}
      {loaded && others && <Offer id={wanted} onChoose={choose} loaded={loaded} />}
      {loaded && isOtherDType && <OtherDType of={loaded} />}
      {loading.value && loaded && <Progress of={loading.value} />}
      {failure.value && <Problem of={failure.value} />}
      <Address onChoose={choose} />
      {!loading.value && (
        <div class="buttons">
          {loaded?.id !== known.id && wanted !== known.id && (
            <button type="button" onClick={() => choose(known.id)}>
              {loadKnown(known.id)}
            </button>
          )}
          {loaded &&
            openingModels
              .filter((id) => id !== loaded.id)
              .map((id) => (
                <button key={id} type="button" onClick={() => choose(id)}>
                  {openingModels.some((each) => each === loaded.id) ? 'Change' : 'Back'} to the {nameOf(id)}
                </button>
              ))}
          <Weights isLabelled={loaded !== undefined && loaded.id !== 'sentiment'} />
        </div>
      )}
      <div id="other-model" hidden={!more || !!loading.value}>
        <Files />
      </div>
    </div>
  );
}

/** With the size, and with the host if it is not the page's. */
function loadKnown(id: string): string {
  const host = otherHostOf(id);
  return `Load ${nameOf(id)}, ${wholeMegabytes(expectedBytes(id, view.value.dtype)!)}${host ? ` from ${host}` : ''}, runs locally`;
}

function origin({ dtype, isStoredAsInt8, bytes }: LoadedModel): string {
  const size = `of ${megabytes(bytes)}`;
  if (dtype === 'int8') return isStoredAsInt8 ? `from files ${size}` : `converted here from files ${size}`;
  return isStoredAsInt8 ? `from int8 files ${size}` : `from files ${size}`;
}

/** Applies to the next model that is loaded. The label is hidden next to the load button. */
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

/** A different kind of weights was chosen; nothing is loaded without a click. */
function OtherDType({ of }: { of: LoadedModel }) {
  const { dtype } = view.value;
  const bytes = of.id === 'files' ? undefined : expectedBytes(of.id, dtype);
  return (
    <div class="notice">
      <p>
        {sentenceName(of)} is loaded with {of.dtype} weights.
      </p>
      <div class="buttons">
        <button type="button" onClick={() => void chooseDType()}>
          {beside.value ? `Change to ${dtype}` : `Load it as ${dtype}${bytes === undefined ? '' : `, ${wholeMegabytes(bytes)}`}`}
        </button>
        <button type="button" class="quiet" onClick={() => update({ dtype: of.dtype })}>
          Keep {of.dtype}
        </button>
      </div>
    </div>
  );
}

/** A link may name another model, which is never loaded without a click. */
function Offer({ id, loaded, onChoose }: { id: string; loaded: LoadedModel; onChoose: (id: string) => void }) {
  const known = knownModels.find((each) => each.id === id);
  const host = otherHostOf(id);
  return (
    <div class="notice">
      <p>
        {id === 'files'
          ? 'The sender of this link used a model from files. Choose the same files to see the same numbers.'
          : `The sender of this link used the model ${nameOf(id)}${host && !known ? `. Its files are at ${host}` : ''}.`}
      </p>
      <div class="buttons">
        {id !== 'files' && (
          <button type="button" onClick={() => onChoose(id)}>
            {known ? loadKnown(id) : 'Load it from there'}
          </button>
        )}
        <button type="button" class="quiet" onClick={keepLoaded}>
          Keep {nameInSentence(loaded)}
        </button>
      </div>
    </div>
  );
}

function Problem({ of }: { of: Failure }) {
  const { what, code, onHub } = of;
  const { cause, fix, detail } = wordsOf(of);
  const stopped = code === 'INTERNAL' || code === 'ABORTED' || !model.value;
  const known = knownModels.find((each) => 'repository' in each && each.repository === onHub);
  return (
    <div role="alert" class="problem">
      <p>
        <strong>{what}</strong> {cause}
      </p>
      <p>{fix}</p>
      {detail && <p class="note">{detail}</p>}
      <div class="buttons">
        {stopped && (
          <button type="button" onClick={() => void restart()}>
            Restart
          </button>
        )}
        {known && (
          <button type="button" onClick={() => void chooseOnHub(known.id)}>
            Load it from {hubHost}, {wholeMegabytes(known.bytes)}
          </button>
        )}
        <button type="button" class="quiet" onClick={() => (failure.value = undefined)}>
          Close
        </button>
      </div>
    </div>
  );
}

function planOf(text: string): string | undefined {
  if (!text.trim()) return undefined;
  const known = knownModels.find(({ id, name }) => id === text.trim() || name === text.trim());
  if (known && !('repository' in known)) return `${loadKnown(known.id)}.`;
  try {
    const { name, host, hub, location: address } = readAddress(known && 'repository' in known ? known.repository : text, location.href);
    const bytes = knownModels.find((each) => 'repository' in each && each.repository === hub?.repository)?.bytes;
    if (known) return `${loadKnown(known.id)}.`;
    const size = bytes === undefined ? 'The page shows their size when the download begins.' : `${wholeMegabytes(bytes)}.`;
    return `Downloads ${isGguf(address) ? '' : 'config.json, tokenizer.json and model.safetensors of '}${name} from ${host}. ${size}`;
  } catch {
    return undefined;
  }
}

const examples = [
  'sentence-transformers/all-MiniLM-L6-v2',
  'BAAI/bge-small-en-v1.5',
  'google-bert/bert-base-uncased',
  'openai-community/gpt2',
  'HuggingFaceTB/SmolLM2-135M',
];

function Address({ onChoose }: { onChoose: (id: string) => void }) {
  const [address, setAddress] = useState('');
  const [error, setError] = useState('');
  const load = () => {
    try {
      const known = knownModels.find(({ id, name }) => id === address.trim() || name === address.trim());
      const { id } = known ?? readAddress(address.slice(0, longestHash), location.href);
      setError('');
      onChoose(id);
    } catch (failed) {
      setError((failed as Error).message);
    }
  };
  const plan = planOf(address);
  return (
    <form
      class="model-address"
      onSubmit={(event) => {
        event.preventDefault();
        load();
      }}
    >
      <label class="inline-field">
        <span>Model</span>
        <input
          type="text"
          inputMode="url"
          spellcheck={false}
          autocomplete="off"
          autocapitalize="off"
          placeholder="owner/name or URL"
          list="model-examples"
          value={address}
          aria-invalid={error ? 'true' : undefined}
          aria-describedby={[error && 'address-error', plan && 'address-plan'].filter(Boolean).join(' ') || undefined}
          onInput={(event) => {
            setAddress(event.currentTarget.value);
            setError('');
          }}
        />
      </label>
      <datalist id="model-examples">
        {examples.map((each) => (
          <option key={each} value={each} />
        ))}
      </datalist>
      <button type="submit" disabled={!!loading.value}>
        Load model
      </button>
      {plan && !loading.value && (
        <p id="address-plan" class="note">
          {plan}
        </p>
      )}
      <Alert id="address-error" why={error} />
    </form>
  );
}

function Files() {
  const choose = (event: { currentTarget: HTMLInputElement }) => {
    const files = Array.from(event.currentTarget.files ?? [], (file) => [file.webkitRelativePath || file.name, file] as const);
    // Otherwise choosing the same files again would not fire an event.
    event.currentTarget.value = '';
    if (files.length > 0) void chooseFiles(files);
  };
  return (
    <div class="other-model">
      <div class="buttons">
        <label class="file">
          <input type="file" multiple aria-label="Choose files" onChange={choose} />
          <span aria-hidden="true">Choose files …</span>
        </label>
        <label class="file">
          <input type="file" {...{ webkitdirectory: true }} aria-label="Choose a folder" onChange={choose} />
          <span aria-hidden="true">Choose a folder …</span>
        </label>
        <span class="note">or drop them anywhere on the page. Your files are not uploaded.</span>
      </div>
      <p class="note">
        A Hugging Face model: config.json, tokenizer.json and model.safetensors, in one or several files, of an encoder ({encoders}) or of a decoder,
        which guesses the next word ({decoders}). Or a GGUF file of a decoder. In the field above, enter its name on the Hub, for example
        BAAI/bge-small-en-v1.5, its URL there, or the URL of a folder or of a .gguf file, for example https://example.org/models/my-bert/.
      </p>
    </div>
  );
}

export function DropZone() {
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
      droppedFiles(event.dataTransfer!).then(chooseFiles, () => chooseFiles([]));
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
      Drop a model folder, its files or a GGUF file to load the model
    </p>
  ) : null;
}
