import type { Tensor } from 'attn';
import { useState } from 'preact/hooks';
import { truncate, longestName } from '../formats/truncate.ts';
import { matrixText } from '../formats/matrix_text.ts';
import { shapeText, shortestFloat32 } from '../formats/numbers.ts';
import type { FieldValue } from '../state/lab.ts';
import { engine } from '../state/model.ts';
import { codeOf, explain } from '../state/status.ts';
import { Alert } from './alert.tsx';

/** Larger arrays are stored instead of printed into the field. */
const maximumPrinted = 4096;

interface Props {
  readonly name: string;
  readonly hint: string;
  readonly value: FieldValue;
  readonly error: string | undefined;
  readonly optional?: boolean;
  /** 1 for masks, which may be a single list. */
  readonly minRank: number;
  readonly onChange: (value: FieldValue) => void;
  readonly onError: (message: string) => void;
  readonly onRun: () => void;
}

/** The tensors of a file with several, and the selected one. */
interface Choices {
  readonly fileName: string;
  readonly tensors: ReadonlyMap<string, Tensor>;
  readonly chosen: string;
}

export function MatrixField({ name, hint, value, error, optional, minRank, onChange, onError, onRun }: Props) {
  const [over, setOver] = useState(false);
  const [choices, setChoices] = useState<Choices>();
  const id = `lab-${name.replace(' ', '-')}`;

  const take = (fileName: string, tensor: Tensor) => {
    if (tensor.dims.length < minRank || tensor.dims.length > 4) {
      const needed = minRank > 1 ? 'expected rows. For one row save a.reshape(1, -1)' : 'expected one to four dimensions';
      onError(`${fileName}: the array has shape ${shapeText(tensor.dims)}; ${needed}.`);
    } else if (tensor.data.length === 0) onError(`${fileName}: the array has shape ${shapeText(tensor.dims)} and no numbers.`);
    else if (tensor.data.length <= maximumPrinted) onChange({ text: matrixText(tensor, shortestFloat32) });
    else {
      const label = `${fileName}, shape ${shapeText(tensor.dims)}`;
      onChange({ text: label, file: { label, tensor } });
    }
  };
  const choose = ({ fileName, tensors }: Choices, chosen: string) => {
    setChoices({ fileName, tensors, chosen });
    take(`${fileName}, ${truncate(chosen, longestName)}`, tensors.get(chosen)!);
  };

  const read = async (file: File | undefined) => {
    if (!file) return;
    setChoices(undefined);
    const fileName = truncate(file.name, longestName);
    try {
      const { arraysIn, nameFor } = await import('../formats/array_files.ts');
      const tensors = await arraysIn(file, minRank, (bytes) => {
        if (!engine.value) throw new Error('The module is starting. Try again in a moment.');
        return engine.value.parseSafetensors(bytes);
      });
      const names = [...tensors.keys()];
      if (names.length === 0) throw new Error('The file contains no array of floating-point numbers.');
      const chosen = nameFor(name, names);
      if (names.length === 1) take([fileName, truncate(chosen, longestName)].filter(Boolean).join(', '), tensors.get(chosen)!);
      else choose({ fileName, tensors, chosen }, chosen);
    } catch (failure) {
      const isOther = codeOf(failure) === 'FORMAT' && !/\.safetensors$/i.test(file.name);
      onError(
        isOther
          ? `${fileName} is neither a .npy nor a safetensors file, nor JSON or CSV. Save the array with numpy.save, or paste its rows into the field.`
          : `${fileName}: ${explain(failure)}`,
      );
    }
  };

  return (
    <div class={over ? 'matrix-field over' : 'matrix-field'}>
      <div class="matrix-field-head">
        <label for={id}>{name}</label>
        <span class="note" id={`${id}-hint`}>
          {hint}
          {optional ? ', optional' : ''}
        </span>
        <label class="file">
          <input
            type="file"
            accept=".npy,.safetensors,.json,.csv,.tsv,.txt"
            aria-label={`Read ${name} from a file`}
            onChange={(event) => {
              void read(event.currentTarget.files?.[0]);
              // Otherwise choosing the same file again would not fire an event.
              event.currentTarget.value = '';
            }}
          />
          <span aria-hidden="true">File …</span>
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
        onInput={(event) => {
          setChoices(undefined);
          onChange({ text: event.currentTarget.value });
        }}
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
          // The browser inserts dropped text.
          if (!file) return;
          event.preventDefault();
          void read(file);
        }}
      />
      {choices && (
        <label class="field">
          <span>
            Array of {choices.fileName} for {name}
          </span>
          <select value={choices.chosen} onChange={(event) => choose(choices, event.currentTarget.value)}>
            {Array.from(choices.tensors, ([each, { dims }]) => (
              <option key={each} value={each}>
                {truncate(each, longestName)} {shapeText(dims)}
              </option>
            ))}
          </select>
        </label>
      )}
      <Alert id={`${id}-error`} why={error} />
    </div>
  );
}
