/** Generates the reference of the C++ and C library from doc comments: Doxygen's XML becomes a page per subject. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { DOMParser } from '@xmldom/xmldom';

const source = fileURLToPath(new URL('../../src', import.meta.url));

/** Pages with their headers in this order. Every header of attn.hpp must be on a page. */
const pages = {
  attention: {
    title: 'Attention',
    headers: [
      'ops/attention',
      'ops/score_functions',
      'ops/mask',
      'ops/mask_view',
      'ops/fully_masked',
      'ops/attention_plan',
      'ops/trace',
      'ops/attention_trace',
    ],
  },
  functions: {
    title: 'Functions and losses',
    headers: ['ops/linear', 'ops/norm', 'ops/softmax', 'ops/activation', 'kernels/activation_name', 'ops/positions', 'ops/pooling', 'ops/losses'],
  },
  layers: {
    title: 'Layers',
    headers: [
      ...['layers/module', 'layers/multi_head_attention', 'layers/transformer_encoder_layer', 'layers/transformer_encoder'],
      ...[
        'layers/transformer_classifier',
        'layers/encoder_forward',
        'layers/encoder_backward',
        'layers/embedding_layer',
        'layers/norm_layer',
        'ops/init',
      ],
    ],
  },
  models: {
    title: 'Models and tokenizers',
    headers: [
      'models/text_model',
      'models/text_model_options',
      'models/text_tasks',
      'models/text_generation',
      'models/sampling',
      'models/output_logits',
      'models/task',
      'models/attribution',
      'models/image_model',
      'models/image_view',
      'models/image_pooling',
      'io/tokenizer',
      'io/side',
      'io/old_token_files',
      'memory/key_value_cache',
    ],
  },
  lens: { title: 'Lens', namespace: 'attn::lens', headers: ['models/lens'] },
  training: {
    title: 'Gradients and training',
    headers: [
      ...['ops/attention_backward', 'ops/score_functions_backward', 'ops/linear_backward', 'ops/norm_backward', 'ops/softmax_backward'],
      ...['ops/activation_backward', 'ops/rotary_backward'],
      ...['train/optimizer', 'train/sgd', 'train/adam', 'train/clip_grad_norm', 'train/schedules', 'train/module_ref'],
    ],
  },
  tensors: {
    title: 'Tensors and files',
    headers: ['tensor/tensor', 'tensor/view', 'tensor/shape', 'tensor/state', 'io/safetensors', 'io/file_path'],
  },
  context: { title: 'Threads, memory, errors', headers: ['context', 'parallel/executor', 'parallel/thread_pool', 'tensor/error'] },
};

function checkPages() {
  const listed = new Set(Object.values(pages).flatMap(({ headers }) => headers));
  const included = [...readFileSync(join(source, 'attn/attn.hpp'), 'utf8').matchAll(/#include "attn\/(.*)\.hpp"/g)].map(([, name]) => name);
  const missing = included.filter((name) => !listed.has(name));
  if (missing.length > 0) throw new Error(`attn.hpp includes what no page of the C++ reference has: ${missing.join(', ')}`);
}

function readHeaders() {
  const folder = mkdtempSync(join(tmpdir(), 'attn-doxygen-'));
  try {
    const settings = {
      INPUT: join(source, 'attn'),
      RECURSIVE: 'YES',
      FILE_PATTERNS: '*.hpp c.h',
      MACRO_EXPANSION: 'YES',
      EXPAND_ONLY_PREDEF: 'YES',
      PREDEFINED: 'ATTN_API= ATTN_INT=',
      STRIP_FROM_PATH: join(source, 'attn'),
      OUTPUT_DIRECTORY: folder,
      GENERATE_XML: 'YES',
      XML_PROGRAMLISTING: 'NO',
      GENERATE_HTML: 'NO',
      GENERATE_LATEX: 'NO',
      EXTRACT_ALL: 'YES',
      // The comments are plain text, so formulas must not be read as markup.
      MARKDOWN_SUPPORT: 'NO',
      AUTOLINK_SUPPORT: 'NO',
      EXCLUDE_SYMBOLS: 'attn::detail* attn::parallel*',
      QUIET: 'YES',
      WARNINGS: 'NO',
      // Overloads share a comment, which names the arguments of all.
      WARN_IF_DOC_ERROR: 'NO',
    };
    writeFileSync(
      join(folder, 'Doxyfile'),
      Object.entries(settings)
        .map(([name, value]) => `${name} = ${value}\n`)
        .join(''),
    );
    execFileSync('doxygen', [join(folder, 'Doxyfile')], { stdio: ['ignore', 'ignore', 'inherit'] });
    return readdirSync(join(folder, 'xml'))
      .filter((name) => /^(namespaceattn(_1_1(lens|kernels))?|c_8h|(class|struct)attn_(1_1|_).*)\.xml$/.test(name))
      .map((name) => new DOMParser().parseFromString(readFileSync(join(folder, 'xml', name), 'utf8'), 'text/xml').documentElement);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const children = (node, name) => Array.from(node.childNodes).filter(({ nodeName }) => nodeName === name);
const child = (node, name) => children(node, name)[0];
const textOf = (node, name) => child(node, name)?.textContent.trim() ?? '';

const tidy = (type) =>
  type
    .replace(/\s+/g, ' ')
    .replace(/< /g, '<')
    .replace(/ >/g, '>')
    .replace(/ ([&*])/g, '$1')
    .replace(/([&*])(?=\w)/g, '$1 ');

const headerOf = (node) =>
  child(node, 'location')
    ?.getAttribute('file')
    .replace(/\.(hpp|h)$/, '') ?? '';

/** Escapes text as Markdown, and sets names of code as such. */
function prose(text) {
  const escaped = (part) =>
    part
      .replace(/[\\*_[\]|{}#]/g, '\\$&')
      .replace(/&/g, '&amp;')
      .replace(/</g, '&lt;');
  const name = /(?:\b\w+(?:::\w+)*\(\)|\b(?:[a-z]\w*\.)*[a-zA-Z]\w*_\w*\b|\b\w+::\w+(?:::\w+)*)/g;
  let [result, at] = ['', 0];
  for (const { 0: found, index } of text.matchAll(name)) {
    result += `${escaped(text.slice(at, index))}\`${found}\``;
    at = index + found.length;
  }
  return result + escaped(text.slice(at));
}

const plain = (node) => node.textContent.replace(/\s+/g, ' ').trim();

/** Text in which Doxygen's <sp/> is a space. */
const textWithSpaces = (node) =>
  node.nodeName === 'sp' ? ' ' : node.childNodes?.length > 0 ? Array.from(node.childNodes, textWithSpaces).join('') : (node.nodeValue ?? '');

const listing = (node) =>
  children(node, 'codeline')
    .map((line) => textWithSpaces(line).trimEnd())
    .join('\n');

const tags = {
  parameterlist(node) {
    const items = children(node, 'parameteritem').map((item) => [
      children(item, 'parameternamelist')
        .flatMap((list) => children(list, 'parametername').map(plain))
        .join(', '),
      prose(plain(child(item, 'parameterdescription'))),
    ]);
    return node.getAttribute('kind') === 'exception'
      ? `Throws ${items.map((words) => words.join(' ').replace(/\b[A-Z][A-Z\\_]{2,}\b/g, (code) => `\`${code.replaceAll('\\', '')}\``)).join('; ')}.`
      : items.map(([name, about]) => `- \`${name}\`: ${about}`).join('\n');
  },
  simplesect: (node) => `${node.getAttribute('kind') === 'return' ? 'Returns' : 'See'} ${prose(plain(node))}.`,
  programlisting: (node) => `\`\`\`cpp\n${listing(node)}\n\`\`\``,
};

function parts(para) {
  const found = [];
  let text = '';
  const end = () => {
    found.push(...sentences(text).map(prose));
    text = '';
  };
  for (const node of Array.from(para.childNodes)) {
    const tag = tags[node.nodeName];
    if (!tag) text += node.textContent;
    else {
      end();
      found.push(tag(node));
    }
  }
  end();
  return found;
}

const sentences = (text) =>
  text
    .replace(/\s+/g, ' ')
    .trim()
    .split(/(?<=[.)]) (?=Throws\b|Traces: |State, torch)|(?<=\([^()]*(?:\d{4}|torch)[^()]*\)) (?=[a-z])/)
    .filter(Boolean);

const description = (node) =>
  ['briefdescription', 'detaileddescription'].flatMap((name) => children(child(node, name) ?? node, 'para').flatMap(parts));

const cell = (text) => text.replaceAll('\n', ' ').replaceAll('|', '\\|');
const code = (text) => (text ? `\`${text.replaceAll('|', '\\|')}\`` : '');

function signature(member) {
  const parameters = child(member, 'templateparamlist');
  const template = parameters
    ? `template <${children(parameters, 'param')
        .map((each) => {
          const [type, name, value] = ['type', 'declname', 'defval'].map((part) => tidy(textOf(each, part)));
          return `${type}${name && !type.endsWith(name) ? ` ${name}` : ''}${value ? ` = ${value}` : ''}`;
        })
        .join(', ')}>\n`
    : '';
  const isStatic = member.getAttribute('static') === 'yes' ? 'static ' : '';
  const name = `${isStatic}${tidy(textOf(member, 'type'))} ${textOf(member, 'name')}`.trim();
  const declared = name + tidy(textOf(member, 'argsstring')).replace(/=(?=\S)/g, ' = ');
  const each = children(member, 'param').map((param) => {
    const value = tidy(textOf(param, 'defval'));
    return `${tidy(textOf(param, 'type'))} ${textOf(param, 'declname')}`.trim() + (value ? ` = ${value}` : '');
  });
  const [, after] = /(\)[^)]*)$/.exec(declared) ?? [];
  const long = declared.length > 90 && each.length > 1 ? `${name}(\n    ${each.join(',\n    ')}${after}` : declared;
  return `${template}${long};`;
}

function functionsText(functions, level) {
  const names = [...new Set(functions.map((each) => textOf(each, 'name')))];
  return names.map((name) => {
    const overloads = [];
    for (const each of functions.filter((one) => textOf(one, 'name') === name)) {
      const about = description(each);
      if (about.length === 0 && overloads.length > 0) overloads.at(-1).declared.push(signature(each));
      else overloads.push({ declared: [signature(each)], about });
    }
    const text = overloads.flatMap(({ declared, about }) => [`\`\`\`cpp\n${declared.join('\n')}\n\`\`\``, ...about]);
    return [`${'#'.repeat(level)} ${prose(name)}`, ...text].join('\n\n');
  });
}

const enumText = (node, level) =>
  [
    `${'#'.repeat(level)} ${textOf(node, 'name')}`,
    ...description(node),
    '| value | what it means |\n|---|---|\n' +
      children(node, 'enumvalue')
        .map((value) => `| ${code(textOf(value, 'name'))} | ${cell(description(value).join(' '))} |`)
        .join('\n'),
  ].join('\n\n');

const typedefsText = (typedefs) =>
  '| name | of | what it is |\n|---|---|---|\n' +
  typedefs.map((each) => `| ${code(textOf(each, 'name'))} | ${code(tidy(textOf(each, 'type')))} | ${cell(description(each).join(' '))} |`).join('\n');

const variablesText = (variables) =>
  '| member | type | what it is |\n|---|---|---|\n' +
  variables
    .map((each) => {
      const value = textOf(each, 'initializer').replace(/^=?\s*/, '');
      const type = tidy(textOf(each, 'type') + textOf(each, 'argsstring'));
      return `| ${code(textOf(each, 'name'))} | ${code(value && value !== '{}' && value !== 'std::nullopt' ? `${type} = ${value}` : type)} | ${cell(description(each).join(' '))} |`;
    })
    .join('\n');

/** Members with internal types are for the library itself unless their parameters are documented, such as those of plan(). */
const isInternal = (member) => /\b(detail|parallel)::/.test(member.textContent) && member.getElementsByTagName('parameterlist').length === 0;

const membersOf = (compound) =>
  children(compound, 'sectiondef')
    .flatMap((section) => children(section, 'memberdef'))
    .filter((each) => each.getAttribute('prot') === 'public' && !isInternal(each) && !textOf(each, 'name').startsWith('~'));

const isC = (node) => headerOf(node) === 'c';

function compoundText(compound) {
  const name = textOf(compound, 'compoundname').replace(/^attn::/, '');
  const members = membersOf(compound);
  const of = (kind) => members.filter((each) => each.getAttribute('kind') === kind);
  const functions = of('function').filter(
    (each) => !/=\s*(delete|default)\s*$/.test(textOf(each, 'argsstring')) && !/^operator=/.test(textOf(each, 'name')),
  );
  const variables = of('variable');
  return [
    `## ${name}`,
    `\`\`\`cpp\n#include <attn/${headerOf(compound)}.${isC(compound) ? 'h' : 'hpp'}>\n\`\`\``,
    ...description(compound),
    ...(variables.length > 0 ? [variablesText(variables)] : []),
    ...of('enum').map((each) => enumText(each, 3)),
    ...functionsText(functions, 3),
  ].join('\n\n');
}

export function writeCppReference(out) {
  checkPages();
  const documents = readHeaders();
  const compounds = documents.flatMap((each) => children(each, 'compounddef'));
  const namespaces = new Map(
    compounds.filter((each) => each.getAttribute('kind') === 'namespace').map((each) => [textOf(each, 'compoundname'), each]),
  );
  const inNamespace = [...namespaces.values()].flatMap(membersOf).filter((each) => !/^operator/.test(textOf(each, 'name')));
  const types = compounds.filter(
    (each) =>
      each.getAttribute('kind') !== 'namespace' &&
      ['public', null, ''].includes(each.getAttribute('prot')) &&
      !textOf(each, 'compoundname').includes('<'),
  );
  mkdirSync(out, { recursive: true });
  for (const [file, { title, namespace, headers }] of Object.entries(pages)) {
    const parts = namespace ? description(namespaces.get(namespace)) : [];
    for (const header of headers) {
      const here = (each) => headerOf(each) === header;
      const [functions, enums] = ['function', 'enum'].map((kind) => inNamespace.filter((each) => here(each) && each.getAttribute('kind') === kind));
      // Undocumented types are used only by the library's templates.
      const classes = types.filter(
        (each) => here(each) && (description(each).length > 0 || membersOf(each).some((member) => description(member).length > 0)),
      );
      parts.push(...functionsText(functions, 2), ...classes.map(compoundText), ...enums.map((each) => enumText(each, 2)));
    }
    const typedefs = headers.flatMap((header) => inNamespace.filter((each) => headerOf(each) === header && each.getAttribute('kind') === 'typedef'));
    if (typedefs.length > 0) parts.push(`## Other names\n\n${typedefsText(typedefs)}`);
    writeFileSync(join(out, `${file}.md`), `# ${title}\n\n${parts.join('\n\n')}\n`);
  }
  const header = compounds.find((each) => textOf(each, 'compoundname') === 'c.h');
  const structs = compounds.filter((each) => each.getAttribute('kind') === 'struct' && headerOf(each) === 'c');
  const [functions, enums] = ['function', 'enum'].map((kind) => membersOf(header).filter((each) => each.getAttribute('kind') === kind));
  writeFileSync(
    join(out, 'c.md'),
    `# C\n\n${[...description(header), ...functionsText(functions, 2), ...structs.map(compoundText), ...enums.map((each) => enumText(each, 2))].join('\n\n')}\n`,
  );
  writeFileSync(
    join(out, 'index.md'),
    `# C++ reference

All of it is in namespace \`attn\` and comes with \`#include <attn/attn.hpp>\`, without xtensor with \`<attn/core.hpp>\`. The
comments are those of the headers. Examples print with \`#include <iostream>\` and \`<xtensor/xio.hpp>\`. Dimension letters: \`B\` batch, \`H\` heads, \`L\` query length, \`S\` key length, \`E\` model
width, \`D\` head width, \`Dv\` value head width, \`F\` feed-forward width. Whatever fails throws \`attn::Error\` before anything
is written. [How to build and link it](../../guide/cpp.md).

${Object.entries(pages)
  .map(([file, { title }]) => `- [${title}](./${file}.md)`)
  .join('\n')}

For C and other languages there is [attn/c.h](./c.md), in a shared library of its own.
`,
  );
}
