/// <reference lib="dom" />
/**
 * `attn/search-element`: the element `<attn-search>`, a search field for an index that `npx attn index` made. Once the
 * field has the focus, the element loads the model and the index into a worker. The import has no side effects: call
 * {@link defineAttnSearch} to register the element.
 *
 * ```html
 * <attn-search src="index.safetensors" model="model" base="pages"></attn-search>
 * <script type="module">
 *   import { defineAttnSearch } from 'attn/search-element';
 *   defineAttnSearch();
 * </script>
 * ```
 * @packageDocumentation
 */
import type { Hit } from './search.js';

/**
 * The element `<attn-search>`. Attributes, with addresses relative to the page:
 *
 * - `src`: the index
 * - `model`: the folder of the model that the index was made with
 * - `base`: the folder that was indexed. Default the folder of the page
 * - `k`: maximal number of results. Default 5
 * - `label`: name of the field. Default `Search`
 * - `placeholder`: text of the empty field
 *
 * The results are links to the sections of the documents, found by meaning and by words. The arrow keys move between
 * the field and the results, Escape clears the field. Style the parts `label`, `input`, `status`, `results`, `result`,
 * `link` and `text` with `::part()`.
 *
 * If loading or a search fails, the element shows the message and dispatches `error` with an ErrorEvent. The next focus
 * or search tries again.
 *
 * @example
 * ```ts
 * import { defineAttnSearch } from 'attn/search-element';
 *
 * defineAttnSearch();
 * const search = document.createElement('attn-search');
 * search.setAttribute('label', 'Search the manual');
 * document.body.append(search);
 * console.log(search.shadowRoot!.querySelector('label')!.textContent); // Search the manual
 * ```
 */
export class AttnSearch extends HTMLElement {
  /**
   * Returns the address of a result. By default the `path` and `anchor` of the document in the folder `base`, as
   * `attn index` writes them.
   */
  hrefOf: (hit: Hit) => string;
  /**
   * Loads the model and the index now instead of when the field gets the focus.
   *
   * @throws {AttnError} as `loadModel` and `Index.load`; `ABORTED` if `src` or `model` changes or the element is removed
   * @throws {Error} if `src` or `model` is missing or no address, or the index cannot be fetched
   *
   * @example
   * ```ts
   * import { defineAttnSearch } from 'attn/search-element';
   *
   * defineAttnSearch();
   * const search = document.createElement('attn-search');
   * search.setAttribute('src', 'index.safetensors');
   * await search.load().catch(({ message }) => console.log(message)); // attn-search: the attribute model is missing
   * ```
   */
  load(): Promise<void>;
}

/**
 * Registers the element. If the name is already registered, nothing changes.
 *
 * @param name default `attn-search`
 * @returns the class of the element
 *
 * @example
 * ```ts
 * import { defineAttnSearch } from 'attn/search-element';
 *
 * defineAttnSearch('site-search');
 * console.log('hrefOf' in document.createElement('site-search')); // true
 * ```
 */
export function defineAttnSearch(name?: string): typeof AttnSearch;

/** Attributes of `<attn-search>` in JSX. */
export interface AttnSearchAttributes {
  src?: string | undefined;
  model?: string | undefined;
  base?: string | undefined;
  k?: string | number | undefined;
  label?: string | undefined;
  placeholder?: string | undefined;
  hrefOf?: ((hit: Hit) => string) | undefined;
}

// JSX of each framework. If its module is missing, TypeScript reports an error, hence @ts-ignore.
/* eslint-disable @typescript-eslint/ban-ts-comment, @typescript-eslint/no-redundant-type-constituents */
// @ts-ignore
declare module 'react' {
  namespace JSX {
    interface IntrinsicElements {
      // @ts-ignore
      'attn-search': AttnSearchAttributes & DetailedHTMLProps<HTMLAttributes<AttnSearch>, AttnSearch>;
    }
  }
}
// @ts-ignore
declare module 'preact' {
  namespace JSX {
    interface IntrinsicElements {
      // @ts-ignore
      'attn-search': AttnSearchAttributes & import('preact').HTMLAttributes<AttnSearch>;
    }
  }
}
// @ts-ignore
declare module 'solid-js/jsx-runtime' {
  namespace JSX {
    interface IntrinsicElements {
      // @ts-ignore
      'attn-search': AttnSearchAttributes & HTMLAttributes<AttnSearch>;
    }
  }
}
/* eslint-enable */

declare global {
  interface HTMLElementTagNameMap {
    'attn-search': AttnSearch;
  }
}
