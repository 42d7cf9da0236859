import { useEffect, useRef, useState } from 'preact/hooks';
import { explain, startEngine, type Engine } from './engine.ts';
import { fetchStoredLayer, openStoredLayer, type StoredLayer } from './layer.ts';
import { Explorer } from './sections/explorer.tsx';
import { Lab } from './sections/lab.tsx';
import { Steps } from './sections/steps.tsx';
import { Help } from './ui/help.tsx';
import { ThemeButton } from './ui/theme.tsx';

export interface Status {
  readonly text: string;
  readonly failed?: boolean;
}

export function App() {
  const [engine, setEngine] = useState<Engine>();
  const [layer, setLayer] = useState<StoredLayer>();
  const [status, setStatus] = useState<Status>({ text: 'Starting WebAssembly and reading the stored layer …' });
  const help = useRef<HTMLDialogElement>(null);

  useEffect(() => {
    (async () => {
      const files = fetchStoredLayer();
      // Its failure is reported where it is awaited, not as an unhandled rejection before.
      files.catch(() => undefined);
      const started = await startEngine();
      setEngine(started);
      setLayer(await openStoredLayer(started, await files));
    })().catch((error) => setStatus({ text: `The page could not start. ${explain(error)}`, failed: true }));
  }, []);

  return (
    <>
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <header class="bar">
        <p class="wordmark">attn</p>
        <nav aria-label="Sections">
          <a href="#sentence">A sentence</a>
          <a href="#steps">Step by step</a>
          <a href="#lab">Your numbers</a>
        </nav>
        <div class="bar-tools">
          <button type="button" class="quiet" onClick={() => help.current?.showModal()}>
            Keys
          </button>
          <ThemeButton />
        </div>
      </header>
      <p role="status" class={status.failed ? 'status failed' : 'status'}>
        {status.text}
      </p>
      <main id="main" tabIndex={-1}>
        <Explorer layer={layer} engine={engine} onStatus={setStatus} onHelp={() => help.current?.showModal()} />
        <Steps engine={engine} onStatus={setStatus} />
        <Lab engine={engine} onStatus={setStatus} />
      </main>
      <footer>
        <p>
          Everything runs in this page. What you type stays here. The stored weights are the first layer of sentence-transformers/all-MiniLM-L6-v2
          (Apache-2.0), in float16.
        </p>
      </footer>
      <Help dialog={help} />
    </>
  );
}
