// node build.mjs FILE: bundles <attention-map> and <attention-image> as a classic script.
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';

const bundled = await rolldown({
  input: fileURLToPath(new URL('define.mjs', import.meta.url)),
  resolve: { extensionAlias: { '.js': ['.ts', '.js'] } },
  transform: { target: 'es2022' },
});
const { output } = await bundled.generate({ format: 'iife', minify: true, codeSplitting: false });
const [{ code }] = output;
// attn.show() puts it into a script tag.
if (/<\/script|<!--/i.test(code)) throw new Error('the script of the elements would end its own tag');
writeFileSync(process.argv[2], code);
