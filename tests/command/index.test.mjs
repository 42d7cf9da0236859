/** Tests `npx attn index` and `npx attn search`. Needs web/lib/dist. */
import { strict as assert } from 'node:assert';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, cpSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { load } from 'attn';
import { Index } from 'attn/search';
import { limit } from '../../wasm-tests/support/node_tests.mjs';
import { at } from '../../wasm-tests/support/paths.mjs';
import { bert, controls, programs, removeWork, run, runWith, work } from './programs.mjs';

after(removeWork);

const npx = (...args) => run('npx', ...args);
const sentiment = at('testdata/models/sentiment');

function folderOf(name, files) {
  for (const [file, content] of Object.entries(files)) {
    const path = join(work, name, file);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, content);
  }
  return join(work, name);
}

/** Returns the documents in an index file, and the text of each of its vectors. */
function contentsOf(file) {
  const bytes = readFileSync(file);
  const size = Number(bytes.readBigUInt64LE(0));
  const header = JSON.parse(bytes.subarray(8, 8 + size));
  const tensor = (name) => bytes.subarray(...header[name].data_offsets.map((offset) => 8 + size + offset));
  const documents = JSON.parse(tensor('documents'));
  const places = tensor('places');
  const passages = Array.from({ length: places.length / 12 }, (_, row) => {
    const [document, start, end] = [0, 4, 8].map((offset) => places.readInt32LE(12 * row + offset));
    return { ...documents[document], text: documents[document].text.slice(start, end) };
  });
  return { documents, passages, type: header.vectors.dtype };
}

/** Runs `attn index` on files, and returns what it wrote without the ids. */
function indexed(name, files, ...args) {
  const out = join(work, `${name}.safetensors`);
  const { status, stdout, stderr } = npx('index', folderOf(name, files), '--model', bert, '--out', out, ...args);
  assert.deepEqual([status, stdout], [0, ''], stderr);
  const { documents, ...rest } = contentsOf(out);
  return { documents: documents.map(({ id, ...each }) => (assert.equal(typeof id, 'number'), each)), stderr, ...rest };
}

test('index: a section of Markdown is a document with path, anchor, title and heading', limit, () => {
  const { documents } = indexed('markdown', {
    'guide/start.md': `---
title: "Getting *started*"
tags: [a]
---

Before the *first* [heading](https://example.com "tip").

# Install & run

Some \`code\`, a &lt;tag&gt; and an ![image](a.png).

\`\`\`sh
# no heading
npm  install
\`\`\`

## What's new?

- one
- two
  wrapped

## What's new?

| a | b |
|---|---|
| 1 | 2 |

## Own name {#own}

<script>alert(1)</script><!-- hidden -->
<a id="inside"></a>Last.

Setext
------
`,
    'plain.markdown': 'No heading\nat all.',
  });
  const [path, title] = ['guide/start.md', 'Getting *started*'];
  assert.deepEqual(documents, [
    { text: 'Before the first heading.', path, anchor: '', title, heading: '' },
    {
      text: 'Install & run\n\nSome code, a <tag> and an .\n\n# no heading\nnpm  install',
      path,
      anchor: 'install--run',
      title,
      heading: 'Install & run',
    },
    { text: "What's new?\n\none\n\ntwo wrapped", path, anchor: 'whats-new', title, heading: "What's new?" },
    { text: "What's new?\n\na b\n\n1 2", path, anchor: 'whats-new-1', title, heading: "What's new?" },
    { text: 'Own name\n\nLast.', path, anchor: 'own', title, heading: 'Own name' },
    { text: 'Setext', path, anchor: 'setext', title, heading: 'Setext' },
    { text: 'No heading at all.', path: 'plain.markdown', anchor: '', title: 'plain.markdown', heading: '' },
  ]);
});

test('index: front matter gives the title only, and a thematic break is no front matter', limit, () => {
  const { documents } = indexed('front', {
    'a.md': '+++\ntags = [\n  "x",\n]\ntitle = "TOML" # comment\n[params]\ntitle = "of params"\n+++\nA',
    'b.md': '---\ntítulo: x\ntitle: "YAML" # comment\nlist:\n- one\n  two\n---\nB',
    'c.md': '---\ntitle: >\n  folded\n---\nC',
    'd.md': '---\nNote: this is text\n\nmore text\n\n---\nrest',
    'e.md': '+++\n[params]\ntitle = "of params"\n+++\nE',
  });
  assert.deepEqual(
    documents.map(({ path, title, text }) => [path, title, text.replace(/\s+/g, ' ')]),
    [
      ['a.md', 'TOML', 'A'],
      ['b.md', 'YAML', 'B'],
      ['c.md', 'c.md', 'C'],
      ['d.md', 'd.md', 'Note: this is text more text rest'],
      ['e.md', 'e.md', 'E'],
    ],
  );
});

test('index: of an HTML page the main part is read, without navigation, scripts and permalinks', limit, () => {
  const { documents } = indexed('html', {
    'a.html': `<!doctype html><html><head><title>A page | Site</title><style>p { color: red }</style></head><body>
<nav><h2>Menu</h2><a href="/">Home</a></nav>
<main><h1 id="top">A page <a class="headerlink" href="#top">¶</a></h1><p>First<br>line &eacute; &amp;
 more.<p>Second
<section id="two"><h2><a href="#two">Two</a></h2><pre>
  a
    b</pre><button>Copy</button><ul><li>x<li>y</ul></section>
<h3><a name="old"></a>Old <em>anchor</em></h3><template>no</template><div hidden>no</div>text
<table><tr><td>1<td>2</table></main><footer>Legal</footer></body></html>`,
    'b.htm': '<title>Only a title</title><p>Body without main.</p><script>if (a < b) "<p>no</p>"</script>',
    'c.html': '<h4>No id</h4>x',
  });
  const [path, title] = ['a.html', 'A page'];
  assert.deepEqual(documents, [
    { text: 'A page\n\nFirst\nline é & more.\n\nSecond', path, anchor: 'top', title, heading: 'A page' },
    { text: 'Two\n\n  a\n    b\n\nx\n\ny', path, anchor: 'two', title, heading: 'Two' },
    { text: 'Old anchor\n\ntext\n\n1 2', path, anchor: 'old', title, heading: 'Old anchor' },
    { text: 'Body without main.', path: 'b.htm', anchor: '', title: 'Only a title', heading: '' },
    { text: 'No id\n\nx', path: 'c.html', anchor: '', title: 'c.html', heading: 'No id' },
  ]);
});

test('index: hidden folders, node_modules, links and other files are left out, and the order is fixed', limit, () => {
  const files = { 'b.txt': 'b', 'a/z.txt': 'z', 'B.TXT': 'B', 'a.txt': '\ufeffa\r\nline' };
  const folder = folderOf('chosen', {
    ...files,
    '.git/x.txt': 'no',
    '.hidden.txt': 'no',
    'a/node_modules/x/README.md': 'no',
    'c.js': 'no',
    'empty.txt': ' \n',
    'd.txt/e.txt': 'a folder with such a name',
  });
  folderOf('elsewhere', { 'x.txt': 'no' });
  symlinkSync(join(work, 'elsewhere'), join(folder, 'linked'));
  symlinkSync(join(work, 'elsewhere/x.txt'), join(folder, 'linked.txt'));
  symlinkSync(folder, join(work, 'to-chosen'));
  const out = join(work, 'chosen.safetensors');
  for (const from of [folder, join(work, 'to-chosen')]) {
    const { status, stderr } = npx('index', from, '--model', bert, '--out', out);
    assert.equal(status, 0, stderr);
    assert.match(stderr, /^attn: 6 files, 5 passages, \d+ bytes, \d+\.\d s\n$/);
    assert.deepEqual(
      contentsOf(out).documents.map(({ path, text }) => [path, text]),
      [
        ['B.TXT', 'B'],
        ['a.txt', 'a\nline'],
        ['a/z.txt', 'z'],
        ['b.txt', 'b'],
        ['d.txt/e.txt', 'a folder with such a name'],
      ],
    );
    assert.ok(stderr.includes(` ${statSync(out).size} bytes`), stderr);
  }
});

test('index: passages have at most --max-tokens tokens and end as --by asks', limit, async () => {
  const text = 'The film is good. The end is bad.\n\nHe is sad. She is not.';
  const passages = (...args) => indexed('passages', { 'a.txt': text }, ...args).passages.map((each) => each.text);
  assert.deepEqual(passages(), [text]);
  assert.deepEqual(passages('--max-tokens', '40', '--by', 'paragraph'), [text]);
  const attn = await load({ threads: 1 });
  const model = await attn.loadModel(bert);
  const count = (each) => model.tokenize(each).dims[1];
  const threeSentences = text.replace(' She is not.', '');
  const most = String(count(threeSentences));
  assert.deepEqual(passages('--max-tokens', most), [threeSentences, 'She is not.']);
  assert.deepEqual(passages('--max-tokens', most, '--by', 'paragraph'), text.split('\n\n'));
  const sentences = text.split(/(?<=\.)\s+/);
  assert.deepEqual(passages('--max-tokens', String(Math.max(...sentences.map(count)))), sentences);
  const repeated = passages('--max-tokens', '12', '--overlap', '6', '--by', 'token');
  assert.ok(repeated.length > 2 && repeated.every((each) => count(each) <= 12), repeated.join('|'));
  assert.ok(repeated.join('').length > text.length, 'some text is repeated');
  // More tokens than the model reads at a time.
  const long = `${text} `.repeat(40).trim();
  const parts = indexed('long', { 'a.txt': long }).passages.map((each) => each.text);
  assert.ok(!parts.some((part) => model.tokenize(part).truncated[0]), 'a passage is truncated');
  assert.equal(parts.join(' ').replace(/\s+/g, ' '), long.replace(/\s+/g, ' '));
  await attn.dispose();
});

test('index: the vectors are those of Index.from, as int8 or float32, on standard output as well', limit, async () => {
  const folder = folderOf('vectors', { 'a.md': '# A\n\ngood film', 'b.txt': 'bad film' });
  const attn = await load({ threads: 1, variant: 'simd' });
  const model = await attn.loadModel(bert);
  const documents = [
    { path: 'a.md', anchor: 'a', title: 'A', heading: 'A', text: 'A\n\ngood film' },
    { path: 'b.txt', anchor: '', title: 'b.txt', heading: '', text: 'bad film' },
  ];
  for (const vectors of ['int8', 'float32']) {
    const expected = Buffer.from(await (await Index.from(model, documents, { vectors })).save());
    const out = join(work, 'vectors.safetensors');
    assert.equal(npx('index', folder, '--model', bert, '--vectors', vectors, '--out', out).status, 0);
    assert.deepEqual(readFileSync(out), expected);
    const [node, ...first] = programs.npx;
    const piped = spawnSync(node, [...first, 'index', folder, '--model', bert, '--vectors', vectors], {
      env: { ...process.env, ATTN_VARIANT: 'simd' },
    });
    assert.deepEqual(piped.stdout, expected);
  }
  await attn.dispose();
});

test('index: a file that is not UTF-8 is named and skipped', limit, () => {
  const { documents, stderr } = indexed('latin1', { 'a.txt': 'good', 'old\x1b.txt': Buffer.from('caf\xe9', 'latin1') });
  assert.deepEqual(documents.map(({ path }) => path), ['a.txt']); // prettier-ignore
  assert.match(stderr, /^attn: old\\u001b\.txt is not UTF-8 and is skipped\nattn: 1 file, 1 passage, \d+ bytes, \d+\.\d s\n$/);
});

test('index: an invalid call is refused before anything is written', limit, () => {
  const folder = folderOf('refused', { 'a.txt': 'good film' });
  const none = folderOf('none', { 'a.js': '1' });
  const blank = folderOf('blank', { 'a.txt': '\n', 'b.html': '<script>1</script>' });
  const model = ['--model', bert];
  const out = join(work, 'refused.safetensors');
  for (const [status, args, message] of [
    [2, [folder], /^attn: --model is missing, expected a model$/m],
    [2, [...model], /^attn: index has 0 arguments, expected FOLDER$/m],
    [2, [folder, ...model, '--by', 'line'], /^attn: --by is line, expected one of sentence, paragraph, token$/m],
    [2, [folder, ...model, '--max-tokens', '0'], /^attn: --max-tokens is 0, expected a whole number from 1 to 999999$/m],
    [2, [folder, ...model, '--hybrid'], /^attn: index takes no --hybrid$/m],
    [
      2,
      [folder, ...model, '--out', join(folder, 'a.txt')],
      /^attn: --out is \S+a\.txt, which is one of the files that are read, expected another file$/m,
    ],
    [1, [join(work, 'nowhere'), ...model], /^attn: \S+nowhere: No such file or directory$/m],
    [1, [join(folder, 'a.txt'), ...model], /^attn: FOLDER is \S+a\.txt, which is not a folder, expected a folder of texts$/m],
    [1, [none, ...model], /^attn: FOLDER is \S+none, which has no texts, expected \.md, \.markdown, \.html, \.htm or \.txt files$/m],
    [1, [blank, ...model], /^attn: FOLDER is \S+blank, which has no texts, /m],
    [1, [folder, '--model', join(work, 'nowhere')], /^attn: \w+: .*nowhere/m],
    [1, [folder, ...model, '--max-tokens', '1000'], /^attn: --max-tokens is 1000, expected at most \d+, which the model reads$/m],
    [1, [folder, ...model, '--max-tokens', '10', '--overlap', '9'], /^attn: CONFIG: chunk: overlap is 9, expected a whole number below 8\./m],
    [1, [folder, ...model, '--out', join(work, 'no/such.file')], /^attn: \S+no\/such\.file: No such file or directory$/m],
  ]) {
    const all = args.includes('--out') ? args : [...args, '--out', out];
    const got = npx('index', ...all);
    assert.deepEqual([got.status, got.stdout], [status, ''], args.join(' '));
    assert.match(got.stderr, message);
    assert.ok(!existsSync(out));
  }
  assert.equal(readFileSync(join(folder, 'a.txt'), 'utf8'), 'good film');
  assert.deepEqual(readdirSync(work).filter((name) => name.includes('.attn-')), []); // prettier-ignore
});

test('index: a file that cannot be read is an error, which names it', limit, () => {
  const folder = folderOf('closed', { 'a.txt': 'good', 'b.md': `${'>'.repeat(20_000)} bad` });
  const index = () => npx('index', folder, '--model', bert, '--out', join(work, 'closed.safetensors'));
  const { status, stderr } = index();
  assert.equal(status, 1);
  assert.match(stderr, /^attn: \S+closed\/b\.md cannot be read as \.md \(.+\)\n$/);
  if (process.getuid?.() === 0) return; // root reads every file
  chmodSync(join(folder, 'a.txt'), 0);
  assert.deepEqual([index().status, index().stderr], [1, `attn: ${join(folder, 'a.txt')}: Permission denied\n`]);
});

test('index: passages leave room for the prompt of documents', limit, () => {
  const prompted = join(work, 'prompted');
  cpSync(bert, prompted, { recursive: true });
  const prompts = { document: 'one two three four five six seven eight' };
  writeFileSync(join(prompted, 'modules.json'), JSON.stringify([{ type: 'x.Transformer', path: '' }]));
  writeFileSync(join(prompted, 'config_sentence_transformers.json'), JSON.stringify({ prompts }));
  const folder = folderOf('long', { 'a.txt': 'good film '.repeat(200) });
  const largest = (model) =>
    Number(/expected at most (\d+)/.exec(npx('index', folder, '--model', model, '--out', out, '--max-tokens', '1000').stderr)[1]);
  const out = join(work, 'prompted.safetensors');
  assert.ok(largest(bert) - largest(prompted) >= 8, `${largest(bert)}, ${largest(prompted)}`);
});

test('index: a closed standard output ends it silently, and SIGINT leaves the old file', limit, async () => {
  const [node, ...first] = programs.npx;
  const folder = folderOf('ended', Object.fromEntries(Array.from({ length: 400 }, (_, i) => [`${i}.txt`, 'The film is good. '.repeat(60)])));
  const script = '"$@" | head -c 10 > /dev/null; echo "${PIPESTATUS[0]}"';
  const small = folderOf('small', { 'a.txt': 'good film '.repeat(20_000) });
  const piped = spawnSync('bash', ['-c', script, 'bash', node, ...first, 'index', small, '--model', bert], { encoding: 'utf8', cwd: work });
  assert.match(piped.stderr, /^(attn: 1 file, .*\n)?$/);
  assert.equal(piped.stdout, '0\n');
  const out = join(folderOf('kept', { 'x.safetensors': 'before' }), 'x.safetensors');
  const child = spawn(node, [...first, 'index', folder, '--model', bert, '--out', out], { stdio: 'ignore' });
  const ended = once(child, 'exit');
  while (child.exitCode === null && readdirSync(dirname(out)).length < 2) await sleep(20);
  child.kill('SIGINT');
  assert.deepEqual(await ended, [null, 'SIGINT']);
  assert.deepEqual([readdirSync(dirname(out)), readFileSync(out, 'utf8')], [['x.safetensors'], 'before']);
});

test(
  'index: a terminal gets a progress bar, and no file',
  { ...limit, skip: spawnSync('script', ['--version']).status !== 0 && 'no script(1)' },
  () => {
    const folder = folderOf('terminal', { 'a.txt': 'good film' });
    const shell = (...args) => {
      const line = [...programs.npx, 'index', folder, '--model', bert, ...args].map((word) => `'${word}'`).join(' ');
      return spawnSync('script', ['-qec', line, '/dev/null'], { encoding: 'utf8', cwd: work });
    };
    const { status, stdout } = shell();
    assert.deepEqual([status, stdout], [2, 'attn: standard output is a terminal, expected a file. Use --out PATH.\r\n']);
    assert.match(shell('--out', join(work, 'terminal.safetensors')).stdout, /\r\[#{30}\] 100 %, 1 passage\r\x1b\[Kattn: 1 file, 1 passage, /);
  },
);

test('search prints score, place and passage of the best hits', limit, () => {
  const folder = folderOf('site', {
    'a.md': '# Films\n\nA warm, funny and clever film.\n\n## Error E1047\n\nThe disc is dirty.',
    'b.txt': 'soup\u202e',
  });
  const index = join(work, 'site.safetensors');
  assert.equal(npx('index', folder, '--model', sentiment, '--out', index).status, 0);
  const search = (...args) => npx('search', index, ...args, '--model', sentiment);
  const { status, stdout, stderr } = search('E1047', '--hybrid', '--top-k', '1');
  assert.deepEqual([status, stderr], [0, '']);
  assert.match(stdout, /^0\.0\d+\ta\.md#error-e1047\tError E1047 The disc is dirty\.\n$/);
  const all = search('a warm film').stdout;
  assert.equal(all.trimEnd().split('\n').length, 3);
  assert.match(all, /^\d\.\d+\ta\.md#films\tFilms A warm/);
  assert.match(all, /\tb\.txt\tsoup\\u202e$/m);
  const json = search('a warm film', '--json', '--top-k', '2').stdout;
  assert.ok(!controls.test(json));
  const { hits } = JSON.parse(json);
  assert.equal(hits.length, 2);
  const { score, similarity, ...hit } = hits[0];
  assert.ok(Math.abs(score - similarity) < 1e-6 && score > 0);
  const text = 'Films\n\nA warm, funny and clever film.';
  assert.deepEqual(hit, { text, start: 0, end: text.length, document: { id: 0, path: 'a.md', anchor: 'films', title: 'Films', heading: 'Films' } });
  const piped = runWith('a warm film\n', 'npx', 'search', index, '-', '--model', sentiment);
  assert.equal(piped.stdout, all);
});

test('search refuses what is not an index, and an index of another model', limit, () => {
  const folder = folderOf('other', { 'a.txt': 'good film' });
  const index = join(work, 'other.safetensors');
  assert.equal(npx('index', folder, '--model', bert, '--out', index).status, 0);
  for (const [status, args, message] of [
    [2, [index, 'film'], /^attn: --model is missing, expected a model$/m],
    [2, [index, '', '--model', bert], /^attn: QUERY is empty$/m],
    [1, [join(work, 'nowhere'), 'film', '--model', bert], /^attn: \S+nowhere: No such file or directory$/m],
    [1, [work, 'film', '--model', bert], /^attn: \S+: Is a directory$/m],
    [1, [join(folder, 'a.txt'), 'film', '--model', bert], /^attn: FORMAT: Index\.load: /m],
    [1, [index, 'film', '--model', sentiment], /^attn: MISMATCH: Index\.load: /m],
  ]) {
    const got = npx('search', ...args);
    assert.deepEqual([got.status, got.stdout], [status, ''], args.join(' '));
    assert.match(got.stderr, message);
  }
});

test('the native program names the npm package for index and search', limit, () => {
  for (const args of [
    ['index', work, '--model', bert],
    ['search', 'index.safetensors', 'film', '--model', bert],
  ])
    assert.deepEqual(run('native', ...args), {
      status: 2,
      stdout: '',
      stderr: `attn: ${args[0]} is only in the npm package. Use npx attn ${args[0]}.\n`,
    });
});
