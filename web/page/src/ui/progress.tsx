import type { Loading } from '../state/model.ts';

const megabytes = (bytes: number) => (bytes / 1e6).toFixed(1);

export function Progress({ of: { name, phase, file, loaded, total, progress, bytesPerSecond, cancel } }: { of: Loading }) {
  const bytes = loaded > 0 && `${megabytes(loaded)}${total ? ` of ${megabytes(total)}` : ''} MB`;
  const speed = bytesPerSecond > 0 && `${megabytes(bytesPerSecond)} MB/s`;
  return (
    <div class="progress">
      <label>
        <span>
          {name}: {phase}
          {file && ` ${file}`}
        </span>
        <progress {...(progress ? { value: progress } : {})} />
      </label>
      <span class="figure">{[bytes, speed].filter(Boolean).join(', ')}</span>
      <button type="button" onClick={cancel}>
        Cancel
      </button>
    </div>
  );
}
