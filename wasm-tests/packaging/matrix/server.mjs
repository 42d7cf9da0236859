/** Serves a built folder, and tiny-bert at /model, as hosts do that let threads run: cross-origin isolated. */
import { createReadStream, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join, normalize } from 'node:path';
import { types } from '../../../tools/content_types.mjs';
import { repository } from '../../support/steps.mjs';

const isolation = {
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-embedder-policy': 'require-corp',
};

/** Resolves to { url, close }. `pages` are answers by path, each [type, text]; `headers` come with all. */
export function serve(root, { pages = {}, headers = {} } = {}) {
  const server = createServer((request, response) => {
    const path = decodeURIComponent(new URL(request.url, 'http://localhost').pathname);
    for (const [name, value] of Object.entries({
      ...isolation,
      'cross-origin-resource-policy': 'cross-origin',
      'access-control-allow-origin': '*',
      ...headers,
    }))
      response.setHeader(name, value);
    if (Object.hasOwn(pages, path)) return void response.writeHead(200, { 'content-type': pages[path][0] }).end(pages[path][1]);
    const file = path.startsWith('/model/') ? join(repository, 'testdata/models/tiny-bert', path.slice(6)) : join(root, normalize(path));
    for (const each of [file, join(file, 'index.html'), `${file}.html`])
      try {
        if (!statSync(each).isFile()) continue;
        response.writeHead(200, { 'content-type': types[extname(each)] ?? 'application/octet-stream' });
        return void createReadStream(each).pipe(response);
      } catch {
        // The next one.
      }
    response.writeHead(404, { 'content-type': 'text/html' }).end('<!doctype html><title>not found</title>');
  });
  return new Promise((done) =>
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      done({ port, url: `http://127.0.0.1:${port}/`, close: () => new Promise((closed) => (server.close(closed), server.closeAllConnections())) });
    }),
  );
}
