// Similar words and analogies with hand-made word vectors.
import { load } from 'attn';

const attn = await load();
const table = {
  // royal, male, grown, human, simpson, animal, food
  king: [0.97, 0.42, 0.41, 0.8, 0, 0, 0],
  queen: [0.98, -0.38, 0.39, 0.81, 0, 0, 0],
  man: [0.02, 0.47, 0.45, 0.98, 0.03, 0, 0],
  woman: [0.03, -0.45, 0.44, 0.97, 0.02, 0, 0],
  bart: [0, 0.45, -0.55, 0.7, 0.98, 0, 0.02],
  lisa: [0.02, -0.46, -0.53, 0.73, 0.97, 0, 0.01],
  dog: [0, 0.08, 0.3, 0.12, 0.02, 0.96, 0],
  puppy: [0, 0.06, -0.62, 0.13, 0.01, 0.93, 0],
  bread: [0, 0, 0.05, 0.04, 0, 0.02, 0.97],
};
const words = Object.keys(table);
const id = (word) => words.indexOf(word);
const embedding = new attn.Embedding({ numEmbeddings: 9, embeddingDim: 7 });
embedding.loadStateDict({ weight: { data: new Float32Array(Object.values(table).flat()), dims: [9, 7] } });

const text = (found) => found.map((each) => `${words[each.id]} ${each.similarity.toFixed(3)}`).join(' ');
console.log('king is nearest to', text(embedding.nearest(id('king'), 3)));
console.log('king and bread:', embedding.similarity(id('king'), id('bread')).toFixed(3));
console.log('man : king :: woman :', text(embedding.analogy(id('man'), id('king'), id('woman'), 1)));
console.log('man : bart :: woman :', text(embedding.analogy(id('man'), id('bart'), id('woman'), 1)));
attn.dispose();
