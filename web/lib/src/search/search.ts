/** attn/search: an index of texts with the vectors of a text model. */
export { AttnError } from '../args/error.js';
export { Index } from './text_index.js';
