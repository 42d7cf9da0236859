// Which atom comes from which? One attention head maps the atoms of a chemical reaction:
// node examples/node/reactions.mjs "CCO.CC(=O)O>>CC(=O)OCC"
import { fileURLToPath } from 'node:url';
import { load } from 'attn';

// Found by the authors of RXNMapper (Schwaller et al. 2021); numbers from 0.
const [LAYER, HEAD] = [10, 5];
const isAtom = (token) => /^(\[(?!CLS|SEP|UNK)|[A-Zbcnops])/.test(token);

const usage = `node examples/node/reactions.mjs [REACTION]

  REACTION  in SMILES, reactants>>products, in quotes`;

const [reaction = 'BrCc1ccccc1.CN>>CNCc1ccccc1', ...others] = process.argv.slice(2);
if (['--help', '-h'].includes(reaction)) {
  console.log(usage);
  process.exit();
}
if (others.length > 0 || !/^[^\s>]+>>[^\s>]+$/.test(reaction)) {
  console.error(usage);
  process.exit(2);
}

const attn = await load();
try {
  const model = await attn.loadModel(fileURLToPath(new URL('../../testdata/models/reactions', import.meta.url)));
  const inputs = model.tokenize([reaction]);
  const [tokens] = inputs.tokens;
  const arrow = tokens.indexOf('>>');
  const atoms = [...tokens.keys()].filter((i) => isAtom(tokens[i]));
  const { attentions } = model.forward(inputs, { outputAttentions: true });
  const [, , L] = attentions[LAYER].dims; // (B,H,L,L), here with B = 1
  const weight = (query, key) => attentions[LAYER].data[(HEAD * L + query) * L + key];

  console.log('product     reactant  weight');
  for (const atom of atoms.filter((i) => i > arrow)) {
    const from = atoms.filter((i) => i < arrow).reduce((best, i) => (weight(atom, i) > weight(atom, best) ? i : best));
    const [product, reactant] = [atom, from].map((i) => `${tokens[i]} ${atoms.indexOf(i) + 1}`);
    console.log(`${product.padEnd(10)}  ${reactant.padEnd(8)}  ${weight(atom, from).toFixed(2).padStart(6)}`);
  }
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
attn.dispose();
