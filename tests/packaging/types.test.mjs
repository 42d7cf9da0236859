/** Tests the TypeScript declarations of the npm package; their examples run in doc_examples.test.mjs. */
import { strict as assert } from 'node:assert';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { before, test } from 'node:test';
import ts from 'typescript';
import { limit } from '../../wasm-tests/support/node_tests.mjs';
import { at } from '../../wasm-tests/support/paths.mjs';
import { project, tsc } from './consumer.mjs';
import { differences, openModule } from './signatures.mjs';

const { consumer, installed, install, node } = project('types');
before(install);

/** Members beyond the contract, and members of the contract that they change. */
const additions = {
  LoadOptions: ['training'],
  RuntimeInfo: ['training'],
  Attn: ['peak', 'writeSafetensors', 'loadModel', 'info', 'Embedding', 'SGD', 'Adam', 'AdamW'],
  Embedding: ['forward'],
  Optimizer: ['setLearningRate', '[dispose]'],
  TextModel: [
    'wordEmbeddings',
    'parameterShapes',
    'stateDict',
    'getParameter',
    'loadStateDict',
    'forward',
    'task',
    'decode',
    'classifyTokens',
    'fillMask',
    'classifyZeroShot',
    'answer',
    'rank',
    'export',
    'embed',
    'classify',
    'notes',
    'prompts',
    'maskToken',
    'generate',
    'nextToken',
    'scoreTokens',
    'applyChatTemplate',
    'createCache',
    'unembed',
    'gradients',
  ],
  TextModelOutput: ['trace'],
  TextModelGradients: ['trace'],
  ModelOptions: ['request', 'onProgress', 'cacheDir'],
};

/** Types that callers pass in: those of the contract must be usable as the package's. All others are used the other way round. */
const passedIn = ['LoadOptions', 'ModelOptions'];

/**
 * Generates a file that compiles only if every type of the contract equals the package's, including optional members;
 * also returns the compared names. With additions the rest must be equal, and the package's type assignable to the
 * contract's.
 */
function comparison(contract) {
  const source = ts.createSourceFile('contract.d.ts', contract, ts.ScriptTarget.ES2022);
  const names = source.statements.filter((node) => ts.isInterfaceDeclaration(node) || ts.isTypeAliasDeclaration(node)).map((node) => node.name.text);
  const same = (name) => {
    const rest = (of) =>
      `Omit<${of}.${name}, ${additions[name].map((member) => (member === '[dispose]' ? 'typeof Symbol.dispose' : `'${member}'`)).join(' | ')}>`;
    return additions[name]
      ? `check<Same<${rest('Package')}, ${rest('Contract')}>>();\ncheck<${passedIn.includes(name) ? `Contract.${name} extends Package.${name}` : `Package.${name} extends Contract.${name}`} ? true : false>();`
      : `check<Same<Package.${name}, Contract.${name}>>();`;
  };
  const text = `import type * as Package from 'attn';
import type * as Contract from './contract.js';

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const check = <T extends true>(): T => true as T;
${names.map(same).join('\n')}
check<Same<Omit<Package.AttnError, 'help'>, Omit<Contract.AttnError, 'help'>>>();
check<Package.AttnError extends Contract.AttnError ? true : false>();
check<Parameters<typeof Contract.load> extends Parameters<typeof Package.load> ? true : false>();
check<Same<ReturnType<typeof Package.load>, Promise<Package.Attn>>>();
`;
  return { names, text };
}

for (const [resolution, module] of [
  ['nodenext', 'nodenext'],
  ['bundler', 'esnext'],
])
  test(`the types equal those of contract.d.ts, with moduleResolution ${resolution}`, limit, async () => {
    for (const name of ['contract.d.ts', 'types.ts', 'exact.ts']) cpSync(at('tests/packaging', name), join(consumer, name));
    const { names, text } = comparison(readFileSync(join(consumer, 'contract.d.ts'), 'utf8'));
    assert.ok(names.length >= 20, `${names.length} types of the contract`);
    writeFileSync(join(consumer, 'same.ts'), text);
    const options = {
      strict: true,
      noEmit: true,
      target: 'es2022',
      module,
      moduleResolution: resolution,
      lib: ['es2022', 'dom', 'esnext.disposable'],
      types: [],
      exactOptionalPropertyTypes: false,
      skipLibCheck: false,
    };
    writeFileSync(join(consumer, 'tsconfig.json'), JSON.stringify({ compilerOptions: options, files: ['types.ts', 'same.ts'] }));
    await node([tsc, '-p', '.']);
    const exact = { ...options, exactOptionalPropertyTypes: true };
    writeFileSync(join(consumer, 'tsconfig.json'), JSON.stringify({ compilerOptions: exact, files: ['exact.ts'] }));
    await node([tsc, '-p', '.']);
  });

test('attn.d.ts and the WebAssembly module declare the same functions and arguments', limit, async () => {
  const file = join(installed, 'dist/attn.d.ts');
  const module = await openModule(join(installed, 'dist'));
  assert.deepEqual(differences(file, module), []);
  const planted = join(installed, 'dist/planted.d.ts'); // its imports are relative
  writeFileSync(planted, readFileSync(file, 'utf8').replace('  gated?: boolean', '  gate?: boolean'));
  assert.ok(differences(planted, module).includes('new TransformerEncoder.options: the types lack gated'), 'a difference is seen');
});

test('traceNames and encoderTraceNames list the names of the WebAssembly module in its order', limit, async () => {
  const { encoderTraceNames, traceNames } = await import(pathToFileURL(join(installed, 'dist/node.js')).href);
  const module = await openModule(join(installed, 'dist'));
  const inside = (list) => list.flatMap((argument) => [argument, ...inside(argument.members ?? [])]);
  const choices = JSON.parse(module.signatures()).flatMap((call) =>
    inside(call.arguments).flatMap((each) => (/^(trace|names)$/.test(each.kind) ? [each.choices.join()] : [])),
  );
  assert.deepEqual([...new Set(choices)].sort(), [encoderTraceNames.join(), traceNames.join()].sort());
});

test('the test suites type-check against the package', limit, () => node([tsc, '-p', at('wasm-tests')]));
