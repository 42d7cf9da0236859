/** What is loaded, what else can be, and files that are dropped. */
import { useEffect, useLayoutEffect, useState } from 'preact/hooks';
import { cut } from '../cut.ts';
import { modelFiles } from '../model_folder.ts';
import { longestHash } from '../state/hash.ts';
import {
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
import { status } from '../state/status.ts';
import { update, view, type DType } from '../state/view.ts';
import '../styles/model.css';
import { droppedFiles } from '../ui/dropped_files.ts';
import { Progress } from '../ui/progress.tsx';
import { Term } from '../ui/term.tsx';

/** Of a model from a link: its host and its folder can be seen. */
const longestAddress = 300;

export function Model() {
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
