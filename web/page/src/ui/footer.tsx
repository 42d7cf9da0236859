import { megabytes } from '../formats/numbers.ts';
import { Paper, type PaperName } from './papers.tsx';

/** The repository in package.json (card/plugin.ts). */
const source = String(import.meta.env['ATTN_SOURCE'] ?? '');
/** The page was built with the documentation. */
const hasDocs = Boolean(import.meta.env['ATTN_DOCS']);
/** Size of the package next to the page; 0 without it. */
const packageBytes = Number(import.meta.env['ATTN_PACKAGE_BYTES'] ?? 0);

const papers: readonly (readonly [name: PaperName, title: string, what: string])[] = [
  ['Vaswani et al. 2017', 'Attention Is All You Need', 'the Transformer and its scaled dot product'],
  ['Bahdanau et al. 2015', 'Neural Machine Translation by Jointly Learning to Align and Translate', 'additive scores'],
  ['Luong et al. 2015', 'Effective Approaches to Attention-based Neural Machine Translation', 'dot and general scores'],
  ['Devlin et al. 2019', 'BERT', 'the kind of model on this page'],
  ['Clark et al. 2019', 'What Does BERT Look At?', 'kinds of heads'],
  ['Michel et al. 2019', 'Are Sixteen Heads Really Better than One?', 'switching heads off'],
  ['Reimers and Gurevych 2019', 'Sentence-BERT', 'vectors of sentences'],
  ['Mikolov et al. 2013', 'Linguistic Regularities in Continuous Space Word Representations', 'analogies of words'],
  ['Schwaller et al. 2021', 'Extraction of organic chemistry grammar from unsupervised learning of chemical reactions', 'the reaction model'],
  ['Raimi Karim 2019', 'Illustrated: Self-Attention', 'the numbers of “Attention by hand”'],
];

export function Footer() {
  return (
    <footer>
      <p>
        Everything runs in this page. Your text stays in your browser unless you share a link, which contains it. A content security policy enforces
        this: the page contacts other hosts only for the files of a model that you choose. The sentiment classifier, the entity model and the mask
        model come with attn; their embedding matrices started from that of sentence-transformers/all-MiniLM-L6-v2 (Apache-2.0). The reaction model is
        RXNMapper’s (MIT, © 2020 RXN4Chemistry team). The film reviews under “Train” come from vaderSentiment (MIT, © 2016 C.J. Hutto).
      </p>
      <details>
        <summary>Papers behind this page</summary>
        <ul>
          {papers.map(([name, title, what]) => (
            <li key={name}>
              <Paper of={name}>{title}</Paper> ({name}): {what}
            </li>
          ))}
        </ul>
      </details>
      <p class="footer-links">
        {hasDocs && <a href="./docs/">Documentation</a>}
        {source && (
          <a href={source} rel="noreferrer">
            Source code
          </a>
        )}
        {packageBytes > 0 && (
          <a href="./attn.tgz" download="">
            npm package, {megabytes(packageBytes)}
          </a>
        )}
        <a href="./LICENSE.txt">Licence: Apache 2.0</a>
        <a href="./NOTICES.txt">Third-party notices</a>
      </p>
    </footer>
  );
}
