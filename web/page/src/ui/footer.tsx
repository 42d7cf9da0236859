import { megabytes } from '../formats/numbers.ts';
import { Paper, type PaperName } from './papers.tsx';

/** Address of the repository, where package.json names one (card/plugin.ts). */
const source = String(import.meta.env['ATTN_SOURCE'] ?? '');
/** Whether the documentation stands beside the page. */
const hasDocs = Boolean(import.meta.env['ATTN_DOCS']);
/** Of the packed package beside the page; 0: there is none. */
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
  ['Raimi Karim 2019', 'Illustrated: Self-Attention', 'the numbers of “Attention by hand”'],
];

export function Footer() {
  return (
    <footer>
      <p>
        Everything runs in this page. What you type stays here, unless you share a link, which holds it. The browser is told to enforce that: other
        hosts are asked only for the files of a model whose address you give. The sentiment classifier, the entity and the mask model come with attn;
        their word tables started from that of sentence-transformers/all-MiniLM-L6-v2 (Apache-2.0). The film reviews under “Train” are those of
        vaderSentiment (MIT, © 2016 C.J. Hutto).
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
