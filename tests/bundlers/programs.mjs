import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { bin, model, nodeProgram, printed, run, says, serving, write } from './apps.mjs';

const program = `import { load } from 'attn';
import { load as loadInWorker } from 'attn/worker';
import { check } from './check.js';
console.log(JSON.stringify(await check(load, loadInWorker, ${JSON.stringify(model)})));
process.exit(0);
`;
const started = (find) => async (folder) => {
  write(folder, 'main.mjs', program);
  return printed(await run(folder, ...(await find(folder)), 'main.mjs'));
};

const required = program
  .replace(/import { (load.*) } from '(.*)';/g, (_, names, from) => `const { ${names.replace(' as ', ': ')} } = require('${from}');`)
  .replace("import { check } from './check.js';", '')
  .replace('await check(', "await (await import('./check.js')).check(");
const commonJsRow = {
  name: 'Node 20.0.0, require()',
  line: 'Node 20 to 26',
  says: says.program,
  async run(folder) {
    write(folder, 'main.cjs', `(async () => {\n${required}})();`);
    return printed(await run(folder, await nodeProgram('20.0.0'), 'main.cjs'));
  },
};

const nodes = ['20.0.0', '20.11.1', '22.12.0', '24.0.0', '26.10.0'].map((version) => ({
  name: `Node ${version}`,
  line: 'Node 20 to 26',
  gate: version === '22.12.0',
  says: says.program,
  run: started(async () => [await nodeProgram(version)]),
}));

const deno = `@deno/linux-${process.arch}-glibc`;
const workerdProgram = `@cloudflare/workerd-linux-${process.arch === 'x64' ? '64' : process.arch}`;

async function workerd(folder) {
  const dist = join(folder, 'node_modules/attn/dist');
  const files = readdirSync(dist).filter((name) => /\.m?js$/.test(name) && !readFileSync(join(dist, name), 'utf8').includes('node:'));
  write(
    folder,
    'main.js',
    `import { load } from './node_modules/attn/dist/index.js';
import wasm from './node_modules/attn/dist/attn-simd.wasm';
import { check } from './check.js';
const names = ${JSON.stringify(readdirSync(model))};
export default {
  async fetch(request, env) {
    const model = {};
    for (const name of names) model[name] = new Uint8Array(await (await env.model.fetch('http://model/' + name)).arrayBuffer());
    return Response.json(await check(load, undefined, model, { wasm }));
  },
};
`,
  );
  const modules = ['main.js', 'check.js', ...files.map((name) => `node_modules/attn/dist/${name}`)].map(
    (name) => `(name = "${name}", esModule = embed "${name}")`,
  );
  write(
    folder,
    'config.capnp',
    `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = .attn),
    (name = "model", disk = (path = ${JSON.stringify(model)})),
  ],
  sockets = [(name = "http", address = "127.0.0.1:5198", http = (), service = "main")],
);
const attn :Workerd.Worker = (
  modules = [
    ${modules.join(',\n    ')},
    (name = "node_modules/attn/dist/attn-simd.wasm", wasm = embed "node_modules/attn/dist/attn-simd.wasm"),
  ],
  compatibilityDate = "2025-01-01",
  bindings = [(name = "model", service = "model")],
);
`,
  );
  return serving(
    folder,
    join(folder, 'node_modules', workerdProgram, 'bin/workerd'),
    ['serve', 'config.capnp'],
    'http://127.0.0.1:5198/',
    async (url) => (await fetch(url)).json(),
  );
}

const testing = (imports, out) => `${imports}
test('attn', async () => writeFileSync(${JSON.stringify(out)}, JSON.stringify(await check(load, loadInWorker, ${JSON.stringify(model)}))), 60000);
`;
const esm = `import { writeFileSync } from 'node:fs';
import { load } from 'attn';
import { load as loadInWorker } from 'attn/worker';
import { check } from './check.js';`;
const commonJs = `const { writeFileSync } = require('node:fs');
const { load } = require('attn');
const { load: loadInWorker } = require('attn/worker');
const { check } = require('./check.cjs');`;

const jest =
  (kind, environment, ...flags) =>
  async (folder) => {
    const out = join(folder, 'said.json');
    const text = `/** @jest-environment ${environment} */\n${testing(kind === 'cjs' ? commonJs : esm, out)}`;
    write(folder, kind === 'cjs' ? 'a.test.cjs' : 'a.test.js', text);
    write(
      folder,
      'check.cjs',
      readFileSync(join(folder, 'check.js'), 'utf8').replaceAll(/export (async )?function (\w+)/g, 'exports.$2 = $2;\n$1function $2'),
    );
    write(folder, 'jest.config.json', '{ "transform": {} }');
    await run(folder, process.execPath, ...flags, join(folder, 'node_modules/jest/bin/jest.js'), '--ci');
    return JSON.parse(readFileSync(out, 'utf8'));
  };

async function vitest(folder) {
  const out = join(folder, 'said.json');
  write(folder, 'a.test.js', `import { test } from 'vitest';\n${testing(esm, out)}`);
  await bin(folder, 'vitest/vitest.mjs', 'run', '--reporter=dot');
  return JSON.parse(readFileSync(out, 'utf8'));
}

/** Threads need import(), which Jest supports only with this flag; workers are unaffected. */
const withoutImport = { ...says.program, threads: 'one thread instead of 2: ' };
const noFetch = 'ENVIRONMENT: load: this host has no fetch';
const withoutFetch = { ...says.alone, attention: noFetch, model: noFetch, threads: noFetch };

const esmJest = 'node --experimental-vm-modules node_modules/.bin/jest';

export const programs = [
  ...nodes,
  commonJsRow,
  { name: 'Bun', tool: 'bun', says: says.program, run: started((folder) => [join(folder, `node_modules/@oven/bun-linux-${process.arch}/bin/bun`)]) },
  { name: 'Deno', tool: 'deno', says: says.program, run: started((folder) => [join(folder, 'node_modules', deno, 'deno'), 'run', '-A']) },
  {
    name: 'workerd',
    tool: 'workerd',
    setting: "import wasm from 'attn/attn-simd.wasm'",
    says: { ...says.withoutWorker, threads: 'one thread instead of 2: ' },
    run: workerd,
  },
  { name: 'Jest (ES modules)', tool: 'jest', setting: esmJest, says: says.program, run: jest('esm', 'node', '--experimental-vm-modules') },
  { name: 'Jest (ES modules, jsdom)', tool: 'jest', says: withoutFetch, run: jest('esm', 'jsdom', '--experimental-vm-modules') },
  { name: 'Jest', tool: 'jest', says: withoutImport, run: jest('cjs', 'node') },
  { name: 'Jest (jsdom)', tool: 'jest', says: withoutImport, run: jest('cjs', 'jsdom') },
  { name: 'Vitest', tool: 'vitest', gate: true, says: says.program, run: vitest },
];
