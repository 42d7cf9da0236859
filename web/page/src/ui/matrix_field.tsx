import type { Tensor } from 'attn';
import { useState } from 'preact/hooks';
import { explain } from '../engine.ts';
import { matrixText } from '../matrix_text.ts';
import { NpyError, parseNpy } from '../npy.ts';
import { shapeText, shortestFloat32 } from '../numbers.ts';

/** What a field holds: text, or an array from a file that is too long to print. */
export interface FieldValue {
  readonly text: string;
  readonly file?: { readonly label: string; readonly tensor: Tensor };
}

/** More numbers than this are kept aside, not printed into the field. */
const maximumPrinted = 4096;

interface Props {
  readonly name: string;
  readonly hint: string;
  readonly value: FieldValue;
  readonly error: string | undefined;
  readonly optional?: boolean;
  /** 1 for a mask, where one list is enough. */
  readonly minRank: number;
  readonly onChange: (value: FieldValue) => void;
  readonly onError: (message: string) => void;
  readonly onRun: () => void;
}

/** An array as text, or from a .npy file that is chosen or dropped. */
export function MatrixField({ name, hint, value, error, optional, minRank, onChange, onError, onRun }: Props) {
  const [over, setOver] = useState(false);
  const id = `lab-${name}`;

  const read = async (file: File | undefined) => {
    if (!file) return;
    try {
      const tensor = parseNpy(new Uint8Array(await file.arrayBuffer()));
      if (tensor.dims.length < minRank || tensor.dims.length > 4) {
        throw new NpyError(`the array has shape ${shapeText(tensor.dims)}; rows are needed. For one row save a.reshape(1, -1).`);
      }
      if (tensor.data.length <= maximumPrinted) onChange({ text: matrixText(tensor, shortestFloat32) });
      else {
        const label = `${file.name}, shape ${shapeText(tensor.dims)}`;
        onChange({ text: label, file: { label, tensor } });
      }
    } catch (failure) {
      onError(`${file.name}: ${explain(failure)}`);
    }
  };

  return (
    <div class={over ? 'matrix-field over' : 'matrix-field'}>
      <div class="matrix-field-head">
        <label for={id}>{name}</label>
        <span class="note" id={`${id}-hint`}>
          {hint}
          {optional ? ', may stay empty' : ''}
        </span>
        <label class="file">
          <input
            type="file"
            accept=".npy"
            aria-label={`Read ${name} from a .npy file`}
            onChange={(event) => {
              void read(event.currentTarget.files?.[0]);
              // The same file may be chosen again after it was changed.
              event.currentTarget.value = '';
            }}
          />
          <span aria-hidden="true">.npy …</span>
        </label>
      </div>
      <textarea
        id={id}
        rows={4}
        spellcheck={false}
        autocomplete="off"
        autocapitalize="off"
        aria-describedby={error ? `${id}-error ${id}-hint` : `${id}-hint`}
        aria-invalid={error ? 'true' : undefined}
        value={value.text}
        onInput={(event) => onChange({ text: event.currentTarget.value })}
        onKeyDown={(event) => {
          if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
            event.preventDefault();
            onRun();
          }
        }}
        onDragOver={(event) => {
          event.preventDefault();
          setOver(true);
        }}
        onDragLeave={() => setOver(false)}
        onDrop={(event) => {
          setOver(false);
          const file = event.dataTransfer?.files[0];
          // Dropped text goes into the field as ever.
          if (!file) return;
          event.preventDefault();
          void read(file);
        }}
      />
      {error && (
        <p role="alert" id={`${id}-error`} class="error">
          {error}
        </p>
      )}
    </div>
  );
}
