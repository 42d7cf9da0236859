import { signal } from '@preact/signals';
import { useEffect, useRef, useState } from 'preact/hooks';
import { formats, save } from '../export/save.ts';
import { selectionOf } from '../export/selection.ts';
import type { Run } from '../state/run.ts';
import { explain, status } from '../state/status.ts';
import { view } from '../state/view.ts';
import { Alert } from '../ui/alert.tsx';

const isOpen = signal(false);
/** Incremented when the keyboard opens the list, to focus its first button. */
const asked = signal(0);

export function openExport(): void {
  isOpen.value = true;
  asked.value += 1;
}

export function Export({ of }: { of: Run }) {
  const [message, setMessage] = useState('');
  const opener = useRef<HTMLButtonElement>(null);
  const first = useRef<HTMLButtonElement>(null);
  const times = asked.value;
  useEffect(() => {
    if (times > 0) first.current?.focus();
  }, [times]);
  const write = async (format: string) => {
    const selection = selectionOf(of, view.value);
    if (!selection) return;
    try {
      setMessage('');
      status.value = { text: `Saved ${await save(selection, format)}.` };
    } catch (error) {
      setMessage(`The file could not be saved. ${explain(error)} Try another format.`);
    }
  };
  return (
    <div
      class="export"
      onKeyDown={(event) => {
        if (event.key !== 'Escape' || !isOpen.value) return;
        isOpen.value = false;
        opener.current?.focus();
      }}
    >
      <button type="button" ref={opener} aria-expanded={isOpen.value} aria-controls="export-formats" onClick={() => (isOpen.value = !isOpen.value)}>
        Export
      </button>
      <div id="export-formats" class="buttons" role="group" aria-label="Save this map as" hidden={!isOpen.value}>
        {Object.keys(formats).map((format, i) => (
          <button key={format} type="button" ref={i === 0 ? first : null} onClick={() => void write(format)}>
            {format}
          </button>
        ))}
      </div>
      <Alert why={message} />
    </div>
  );
}
