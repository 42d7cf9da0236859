/** Runs the program that the page around this frame sends, once, and shows what it prints. */
const tell = (message) => parent.postMessage(message, location.origin);

/** As consoles show it. */
function written(value) {
  if (typeof value === 'string') return value;
  if (value instanceof Error) return value.code ? `${value.code}: ${value.message}` : String(value);
  if (value instanceof Map) return `Map(${value.size})`;
  if (ArrayBuffer.isView(value)) return written(Array.from(value));
  if (Array.isArray(value)) return `[${value.map(written).join(', ')}]`;
  return typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value);
}

function print(kind, parts) {
  const line = document.createElement('pre');
  line.className = kind;
  line.textContent = parts.map(written).join(' ');
  document.body.append(line);
}

for (const kind of ['log', 'error']) {
  const real = console[kind];
  console[kind] = (...parts) => {
    real.call(console, ...parts);
    print(kind, parts);
  };
}

async function run({ code, dark }) {
  document.documentElement.dataset.theme = dark ? 'dark' : 'light';
  const address = URL.createObjectURL(new Blob([code], { type: 'text/javascript' }));
  const start = performance.now();
  try {
    await import(address);
    tell({ state: 'done', milliseconds: performance.now() - start });
  } catch (error) {
    print('error', [error]);
    tell({ state: 'failed' });
  } finally {
    URL.revokeObjectURL(address);
  }
}

// A page that shows this one by itself has nothing to run.
if (parent !== globalThis) {
  addEventListener('message', ({ source, origin, data }) => {
    if (origin === location.origin && source === parent) run(data);
  });
  new ResizeObserver(() => tell({ height: document.documentElement.offsetHeight })).observe(document.documentElement);
  tell({ state: 'ready' });
}
