/**
 * The public interface by language: { 'attn/worker': { 'TextModel.embed': [declaration, …] } }, without comments and,
 * in C and C++, without argument names; one declaration per overload.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { DOMParser } from '@xmldom/xmldom';
import ts from 'typescript';

const inOneLine = (text) => text.replace(/\s+/g, ' ').trim();

function add(surface, name, declaration) {
  (surface[name] ??= []).push(inOneLine(declaration));
}

const sorted = (surface) =>
  Object.fromEntries(
    Object.keys(surface)
      .sort()
      .map((name) => [name, surface[name].sort()]),
  );

/**
 * Interface of .d.ts files, { entry: path }. Names that an entry re-exports from an earlier one are listed only
 * there.
 */
export function typescriptSurface(entries) {
  const program = ts.createProgram(Object.values(entries), {
    target: ts.ScriptTarget.ES2022,
    module: ts.ModuleKind.NodeNext,
    lib: ['lib.es2022.d.ts', 'lib.dom.d.ts', 'lib.esnext.disposable.d.ts'],
    types: [],
  });
  const checker = program.getTypeChecker();
  const printer = ts.createPrinter({ removeComments: true });
  const print = (node) => printer.printNode(ts.EmitHint.Unspecified, node, node.getSourceFile());
  const listed = new Map();
  return Object.fromEntries(
    Object.entries(entries).map(([entry, path]) => {
      const surface = {};
      const module = checker.getSymbolAtLocation(program.getSourceFile(path));
      if (!module) throw new Error(`${path} exports nothing`);
      for (const exported of checker.getExportsOfModule(module)) {
        const name = exported.getName();
        const symbol = exported.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(exported) : exported;
        if (listed.has(symbol)) {
          add(surface, name, `as in ${listed.get(symbol)}`);
          continue;
        }
        listed.set(symbol, `${entry}: ${symbol.getName()}`);
        if (!symbol.declarations) throw new Error(`${path} exports ${name}, which is declared nowhere`);
        for (const node of symbol.declarations) {
          if (!ts.isInterfaceDeclaration(node) && !ts.isClassDeclaration(node)) {
            add(surface, name, print(node));
            continue;
          }
          const generic = node.typeParameters ? `<${node.typeParameters.map(print).join(', ')}>` : '';
          const bases = (node.heritageClauses ?? []).map(print).join(' ');
          // Callers construct options, so a new required member breaks programs; a new member of a result does not.
          const required = node.members
            .filter((member) => name.endsWith('Options') && member.name && !member.questionToken)
            .map((member) => print(member.name));
          add(
            surface,
            name,
            `${ts.isClassDeclaration(node) ? 'class' : 'interface'} ${name}${generic} ${bases} ${required.length ? `{ ${required.join(', ')} }` : ''}`,
          );
          for (const member of node.members) {
            if (ts.getCombinedModifierFlags(member) & ts.ModifierFlags.Private) continue;
            add(
              surface,
              `${name}.${member.name ? print(member.name) : member.kind === ts.SyntaxKind.Constructor ? 'constructor' : '()'}`,
              print(member),
            );
          }
        }
      }
      return [entry, sorted(surface)];
    }),
  );
}

function publicHeaders(source) {
  const headers = new Set();
  const visit = (header) => {
    if (headers.has(header)) return;
    headers.add(header);
    for (const [, name] of readFileSync(join(source, header), 'utf8').matchAll(/^#include "(attn\/.*)"$/gm)) visit(name);
  };
  visit('attn/attn.hpp');
  return [...headers];
}

const children = (node, name) => Array.from(node.childNodes).filter(({ nodeName }) => nodeName === name);
const textOf = (node, name) => children(node, name)[0]?.textContent ?? '';

function compounds(source, headers) {
  const folder = mkdtempSync(join(tmpdir(), 'attn-surface-'));
  try {
    const settings = {
      INPUT: headers.map((header) => `"${join(source, header)}"`).join(' '),
      STRIP_FROM_PATH: `"${source}"`,
      OUTPUT_DIRECTORY: `"${folder}"`,
      GENERATE_XML: 'YES',
      XML_PROGRAMLISTING: 'NO',
      GENERATE_HTML: 'NO',
      GENERATE_LATEX: 'NO',
      EXTRACT_ALL: 'YES',
      MACRO_EXPANSION: 'YES',
      EXPAND_ONLY_PREDEF: 'YES',
      PREDEFINED: 'ATTN_API= ATTN_INT=',
      QUIET: 'YES',
      WARNINGS: 'NO',
    };
    const doxyfile = join(folder, 'Doxyfile');
    writeFileSync(
      doxyfile,
      Object.entries(settings)
        .map(([name, value]) => `${name} = ${value}\n`)
        .join(''),
    );
    execFileSync('doxygen', [doxyfile], { stdio: ['ignore', 'ignore', 'pipe'] });
    const xml = readdirSync(join(folder, 'xml')).filter((name) => /^(namespace|class|struct|c_8h)/.test(name));
    return xml.flatMap((name) => {
      const { documentElement } = new DOMParser().parseFromString(readFileSync(join(folder, 'xml', name), 'utf8'), 'text/xml');
      return children(documentElement, 'compounddef');
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const templateOf = (node) => {
  const [list] = children(node, 'templateparamlist');
  return list
    ? `template <${children(list, 'param').map((each) => `${textOf(each, 'type')}${textOf(each, 'defval') && ` = ${textOf(each, 'defval')}`}`)}> `
    : '';
};

function declarationOf(member) {
  const start = `${templateOf(member)}${textOf(member, 'definition')}`;
  if (member.getAttribute('kind') !== 'function') return `${start} ${textOf(member, 'initializer')}`;
  const values = children(member, 'param').map(
    (each) => `${textOf(each, 'type')}${textOf(each, 'array')}${textOf(each, 'defval') && ` = ${textOf(each, 'defval')}`}`,
  );
  const end = /\)([^)]*)$/.exec(textOf(member, 'argsstring'))?.[1] ?? '';
  return `${start}(${values.join(', ')})${end}`;
}

function addMembers(surface, compound, nameOf) {
  for (const section of children(compound, 'sectiondef')) {
    for (const member of children(section, 'memberdef')) {
      if (member.getAttribute('prot') !== 'public' || member.getAttribute('kind') === 'define') continue;
      const name = nameOf(member);
      if (member.getAttribute('kind') === 'enum') {
        for (const value of children(member, 'enumvalue'))
          add(surface, `${name}::${textOf(value, 'name')}`, `${textOf(value, 'name')} ${textOf(value, 'initializer')}`);
      } else add(surface, name, declarationOf(member));
    }
  }
}

/** C++: namespace attn as included by attn/attn.hpp; C: attn/c.h. */
export function headerSurface(root) {
  const source = join(root, 'src');
  const [cpp, c] = [{}, {}];
  for (const compound of compounds(source, [...publicHeaders(source), 'attn/c.h'])) {
    const name = textOf(compound, 'compoundname');
    const kind = compound.getAttribute('kind');
    if (kind === 'file') addMembers(c, compound, (member) => textOf(member, 'name'));
    else if (/^attn_\w+$/.test(name)) {
      // Compiled programs depend on the size and offsets of a struct, so a new member changes it.
      const variables = children(compound, 'sectiondef').flatMap((section) => children(section, 'memberdef'));
      add(
        c,
        name,
        `struct { ${variables.map((each) => `${textOf(each, 'type')} ${textOf(each, 'name')}${textOf(each, 'argsstring')};`).join(' ')} }`,
      );
    } else if (/^attn(::(?!detail\b|kernels\b|parallel\b).*)?$/.test(name) && compound.getAttribute('prot') !== 'private') {
      const bases = children(compound, 'basecompoundref').map((base) => `${base.getAttribute('prot')} ${base.textContent}`);
      if (kind !== 'namespace') add(cpp, name, `${templateOf(compound)}${kind} ${name}${bases.length ? ` : ${bases.join(', ')}` : ''}`);
      addMembers(cpp, compound, (member) => `${name}::${textOf(member, 'name')}`);
    }
  }
  return { 'attn/c.h': sorted(c), 'attn/attn.hpp': sorted(cpp) };
}

export function pythonSurface(wheel) {
  const script = join(dirname(fileURLToPath(import.meta.url)), 'python_surface.py');
  return { python: sorted(JSON.parse(execFileSync('python3', [script, wheel], { encoding: 'utf8', maxBuffer: 1 << 28 }))) };
}

export const typings = (root) =>
  Object.fromEntries(
    ['attn', 'worker', 'element', 'lens', 'search', 'search-element', 'tokenizer', 'chunk', 'static', 'cache'].map((name) => [
      name === 'attn' ? 'attn' : `attn/${name}`,
      join(root, 'web/lib/src', `${name}.d.ts`),
    ]),
  );
