/**
 * Serves the built page with the headers that it is made for: the CSP, and cross-origin isolation, which threads need.
 * As a program: node tools/serve.mjs (PORT, default 8080; HOST, default 127.0.0.1).
 */
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { preview } from 'vite';

const built = fileURLToPath(new URL('../build/page', import.meta.url));

export const headers = {
  'Content-Security-Policy': "script-src 'self' 'wasm-unsafe-eval'; object-src 'none'; base-uri 'none'; require-trusted-types-for 'script'",
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Embedder-Policy': 'require-corp',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'Cache-Control': 'no-cache',
};

/** Resolves to { url, close }. Rejects with a sentence when the port is taken or nothing is built. */
export async function serve({ port = 8080, host = '127.0.0.1', root = built } = {}) {
  if (!existsSync(root)) throw new Error('The page is not built yet. `make demo` builds and serves it.');
  let server;
  try {
    server = await preview({
      configFile: false,
      logLevel: 'silent',
      // Not a single-page fallback: what is missing answers 404.
      appType: 'mpa',
      build: { outDir: root },
      preview: { port, host, strictPort: true, open: false, headers },
    });
  } catch (error) {
    if (/port .* in use/i.test(error.message) || error.code === 'EADDRINUSE') {
      throw new Error(`Port ${port} is taken. Choose another one: PORT=${port + 1} make demo`, { cause: error });
    }
    if (error.code === 'EACCES') throw new Error(`Port ${port} needs more rights. Choose one above 1023: PORT=8080 make demo`, { cause: error });
    throw error;
  }
  const address = server.httpServer.address();
  return { url: `http://${host === '127.0.0.1' ? 'localhost' : host}:${address.port}/`, close: () => server.close() };
}

/** PORT as a number; a sentence when it is none. */
export function portFromEnvironment() {
  const text = process.env.PORT || '8080';
  const port = Number(text);
  if (!Number.isInteger(port) || port < 1 || port > 65535) throw new Error(`PORT is ${text}; it has to be a whole number from 1 to 65535.`);
  return port;
}

if (process.argv[1] && fileURLToPath(import.meta.url) === process.argv[1]) {
  try {
    const { url } = await serve({ port: portFromEnvironment(), host: process.env.HOST || '127.0.0.1' });
    console.log(`The page is at ${url} (Ctrl+C stops it)`);
  } catch (error) {
    console.error(error.message);
    process.exitCode = 1;
  }
}
