/** Generates the package's reference from the doc comments of its types, a page per entry. */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Application } from 'typedoc';

const lib = fileURLToPath(new URL('../../web/lib', import.meta.url));
const modules = ['attn', 'worker', 'element', 'tokenizer'];

export async function writeJsReference(out) {
  const application = await Application.bootstrapWithPlugins({
    plugin: ['typedoc-plugin-markdown'],
    out,
    entryPoints: modules.map((name) => join(lib, `src/${name}.d.ts`)),
    tsconfig: join(lib, 'tsconfig.json'),
    readme: 'none',
    disableSources: true,
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
  const project = await application.convert();
  if (!project) throw new Error('TypeDoc could not read the types');
  await application.generateOutputs(project);
  if (application.logger.hasErrors() || application.logger.hasWarnings()) throw new Error('TypeDoc: see above');
}
