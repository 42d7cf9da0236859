import { readFileSync, readdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Application, Converter } from 'typedoc';

const lib = fileURLToPath(new URL('../../web/lib', import.meta.url));
const modules = ['attn', 'worker', 'element', 'lens', 'search', 'search-element', 'tokenizer', 'chunk', 'static', 'cache'];

/** Replaces the @throws tags of a comment by one with a list of all errors, which gets one heading. */
function listErrors(comment) {
  const [first, ...others] = comment.blockTags.filter(({ tag }) => tag === '@throws');
  if (others.length === 0) return;
  const item = (i) => ({ kind: 'text', text: i > 0 ? '\n- ' : '- ' });
  first.content = [first, ...others].flatMap(({ content }, i) => [item(i), ...content]);
  comment.blockTags = comment.blockTags.filter((block) => !others.includes(block));
}

/** VitePress takes a link to Index.md, the page of a class, as a link to its folder. */
function renameIndexPage(folder) {
  renameSync(join(folder, 'classes/Index.md'), join(folder, 'classes/SearchIndex.md'));
  for (const name of readdirSync(folder, { recursive: true }).filter((each) => each.endsWith('.md'))) {
    const path = join(folder, name);
    writeFileSync(path, readFileSync(path, 'utf8').replaceAll(/\bIndex\.md\b/g, 'SearchIndex.md'));
  }
}

export async function writeJsReference(out) {
  const application = await Application.bootstrapWithPlugins({
    plugin: ['typedoc-plugin-markdown'],
    out,
    entryPoints: modules.map((name) => join(lib, `src/${name}.d.ts`)),
    tsconfig: join(lib, 'tsconfig.json'),
    readme: 'none',
    disableSources: true,
    // The members that elements inherit from HTMLElement.
    excludeExternals: true,
    sort: ['source-order'],
    logLevel: 'Warn',
    // In attn/worker classes accept modules of attn/worker; the type for that is internal.
    intentionallyNotExported: ['OptimizerClass'],
    treatWarningsAsErrors: true,
    hideBreadcrumbs: true,
    hidePageHeader: true,
    entryFileName: 'index',
    parametersFormat: 'table',
    excludeScopesInPaths: true,
  });
  application.converter.on(Converter.EVENT_RESOLVE_END, ({ project }) => {
    for (const { comment } of Object.values(project.reflections)) if (comment) listErrors(comment);
  });
  const project = await application.convert();
  if (!project) throw new Error('TypeDoc could not read the types');
  await application.generateOutputs(project);
  renameIndexPage(join(out, 'search'));
  if (application.logger.hasErrors() || application.logger.hasWarnings()) throw new Error('TypeDoc: see above');
}
