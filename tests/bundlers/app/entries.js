import { load } from 'attn';
import { cache } from 'attn/cache';
import { Index } from 'attn/search';
import { defineAttnSearch } from 'attn/search-element';
import { assert } from './check.js';

/** Searches an index with the element, which loads a worker by itself, and deletes the model from the cache. */
export async function checkEntries(source) {
  const attn = await load();
  const model = await attn.loadModel(source);
  const index = await Index.from(model, ['a warm film', 'a cold soup']);
  const file = URL.createObjectURL(new Blob([await index.save()]));
  attn.dispose();

  defineAttnSearch();
  const search = document.createElement('attn-search');
  search.setAttribute('src', file);
  search.setAttribute('model', source);
  document.body.append(search);
  await search.load();
  const input = search.shadowRoot.querySelector('input');
  input.value = 'warm film';
  input.dispatchEvent(new Event('input'));
  const results = () => search.shadowRoot.querySelectorAll('li').length;
  for (let i = 0; i < 200 && results() === 0; ++i) await new Promise((done) => setTimeout(done, 50));
  assert(results() === 2, `${results()} results`);
  search.remove();

  const files = await cache.list();
  assert(files.length >= 3 && (await cache.size()) > 10000, files.length);
  assert((await cache.delete(source)) === files.length, 'deleted');
  assert((await cache.size()) === 0, 'the size');
}
