/** Links to papers. */
const papers = {
  'Bahdanau et al. 2015': 'https://arxiv.org/abs/1409.0473',
  'Clark et al. 2019': 'https://arxiv.org/abs/1906.04341',
  'Devlin et al. 2019': 'https://arxiv.org/abs/1810.04805',
  'Jain and Wallace 2019': 'https://aclanthology.org/N19-1357/',
  'Jalili Sabet et al. 2020': 'https://arxiv.org/abs/2004.08728',
  'Luong et al. 2015': 'https://arxiv.org/abs/1508.04025',
  'Michel et al. 2019': 'https://arxiv.org/abs/1905.10650',
  'Mikolov et al. 2013': 'https://aclanthology.org/N13-1090/',
  'Schwaller et al. 2021': 'https://doi.org/10.1126/sciadv.abe4166',
  'Raimi Karim 2019': 'https://towardsdatascience.com/illustrated-self-attention-2d627e33b20a',
  'Reimers and Gurevych 2019': 'https://arxiv.org/abs/1908.10084',
  'Vaswani et al. 2017': 'https://arxiv.org/abs/1706.03762',
} as const;
export type PaperName = keyof typeof papers;

/** Shows the key unless there are other words. */
export const Paper = ({ of, children = of }: { of: PaperName; children?: string }) => (
  <a href={papers[of]} rel="noreferrer">
    {children}
  </a>
);
