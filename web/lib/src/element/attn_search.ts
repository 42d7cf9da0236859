import type { ModelOptions } from '../attn.js';
import type { Hit } from '../search.js';
import type { Index } from '../search/search.js';
import type { AttnSearch as Contract } from '../search-element.js';
import type { Attn } from '../worker.js';
import { attachStyledRoot, Base, define } from './base.js';

const styles = `
:host { display: block; }
:host([hidden]) { display: none; }
label { display: block; }
input { box-sizing: border-box; width: 100%; padding: 0.5em; font: inherit; }
p { margin: 0.5em 0; min-height: 1.5em; line-height: 1.5; }
ol { margin: 0; padding: 0; list-style: none; }
li { margin: 0 0 1em; overflow-wrap: anywhere; }
li p { display: -webkit-box; margin: 0; overflow: hidden; -webkit-box-orient: vertical; -webkit-line-clamp: 3; }
`;

const defaultResults = 5;

/** What `attn index` knows about a section. */
interface Section {
  readonly path?: unknown;
  readonly anchor?: unknown;
  readonly title?: unknown;
  readonly heading?: unknown;
}

/** encodeURIComponent() does not accept lone surrogates. */
const textOf = (value: unknown): string => (typeof value === 'string' ? value.replace(/[\ud800-\udfff]/gu, '\ufffd') : '');

function element<Name extends keyof HTMLElementTagNameMap>(name: Name, part = ''): HTMLElementTagNameMap[Name] {
  const made = document.createElement(name);
  if (part) made.setAttribute('part', part);
  return made;
}

interface Loading {
  /** Aborted if the element is removed or has other attributes. */
  readonly controller: AbortController;
  readonly loaded: Promise<{ readonly attn: Attn; readonly index: Index }>;
}

export class AttnSearch extends Base implements Contract {
  static readonly observedAttributes: readonly string[] = ['label', 'placeholder', 'src', 'model'];

  /** May have been set before the element was defined. */
  hrefOf: (hit: Hit) => string = (this as Partial<AttnSearch>).hrefOf ?? ((hit) => this.#placeOf(hit.document as Section));

  readonly #label = element('label', 'label');
  readonly #input = element('input', 'input');
  readonly #status = element('p', 'status');
  readonly #results = element('ol', 'results');
  #loading: Loading | undefined;
  /** The query to search next. */
  #next: string | undefined;
  #searching = false;

  constructor() {
    super();
    const root = attachStyledRoot(this, styles);
    this.#input.type = 'search';
    this.#input.id = 'query';
    this.#input.autocomplete = 'off';
    this.#label.htmlFor = 'query';
    this.#label.textContent = 'Search';
    this.#status.setAttribute('role', 'status');
    // VoiceOver takes a list without markers for plain text.
    this.#results.setAttribute('role', 'list');
    this.#results.setAttribute('aria-label', 'Results');
    root.append(this.#label, this.#input, this.#status, this.#results);
    this.#input.addEventListener('focus', () => void this.load().catch(() => {}));
    this.#input.addEventListener('input', () => void this.#search());
    root.addEventListener('keydown', (event) => this.#key(event as KeyboardEvent));
  }

  attributeChangedCallback(name: string, before: string | null, value: string | null): void {
    if (name === 'label') this.#label.textContent = value ?? 'Search';
    else if (name === 'placeholder') this.#input.placeholder = value ?? '';
    else if (before !== value) {
      this.#dispose();
      if (this.#input.value.trim() !== '') void this.#search();
    }
  }

  disconnectedCallback(): void {
    // An element that is only moved keeps its model.
    setTimeout(() => {
      if (!this.isConnected) this.#dispose();
    });
  }

  override focus(options?: FocusOptions): void {
    this.#input.focus(options);
  }

  async load(): Promise<void> {
    await this.#load().loaded;
  }

  #load(): Loading {
    if (this.#loading) return this.#loading;
    const controller = new AbortController();
    const loading = { controller, loaded: this.#open(controller.signal) };
    this.#loading = loading;
    loading.loaded.then(
      () => {
        if (this.#loading === loading) this.#say('');
      },
      (error: unknown) => {
        if (this.#loading !== loading) return;
        this.#loading = undefined;
        this.#fail(error);
      },
    );
    return loading;
  }

  async #open(signal: AbortSignal): Loading['loaded'] {
    const [src, model] = [addressOf(this, 'src'), addressOf(this, 'model')];
    this.#say('Loading …');
    const [{ load }, { Index }, bytes] = await Promise.all([import('../worker-web.js'), import('../search/search.js'), fetched(src, signal)]);
    const attn = await load();
    try {
      const onProgress: ModelOptions['onProgress'] = ({ progress }) => {
        // A screen reader reads each step.
        if (!signal.aborted) this.#say(`Loading … ${10 * Math.floor(10 * progress)} %`);
      };
      return { attn, index: await Index.load(await attn.loadModel(model, { onProgress, signal }), bytes) };
    } catch (error) {
      void attn.dispose();
      throw error;
    }
  }

  #dispose(): void {
    const loading = this.#loading;
    this.#loading = undefined;
    loading?.controller.abort();
    loading?.loaded.then(
      ({ attn, index }) => {
        index.dispose();
        void attn.dispose();
      },
      () => {},
    );
    this.#results.replaceChildren();
    this.#say('');
  }

  #say(text: string): void {
    if (this.#status.textContent !== text) this.#status.textContent = text;
  }

  #fail(error: unknown): void {
    const message = error instanceof Error ? error.message : String(error);
    this.#say(message);
    this.dispatchEvent(new ErrorEvent('error', { error, message }));
  }

  /** One search at a time; what is typed meanwhile is searched after it. */
  async #search(): Promise<void> {
    this.#next = this.#input.value.trim();
    if (this.#searching) return;
    this.#searching = true;
    while (this.#next !== undefined) {
      const query: string = this.#next;
      this.#next = undefined;
      const hits = query === '' ? [] : await this.#find(query);
      if (this.#next !== undefined || !hits) continue;
      this.#results.replaceChildren(...hits.map((hit) => this.#resultOf(hit)));
      this.#say(query === '' ? '' : hits.length === 1 ? '1 result' : `${hits.length} results`);
    }
    this.#searching = false;
  }

  /** Returns nothing if it fails, which the status shows, or if the element was removed. */
  async #find(query: string): Promise<Hit[] | undefined> {
    const given = Number(this.getAttribute('k') ?? defaultResults);
    const k = Number.isSafeInteger(given) && given > 0 ? given : defaultResults;
    for (;;) {
      const loading = this.#load();
      const { signal } = loading.controller;
      try {
        const hits = await (await loading.loaded).index.search(query, { k, hybrid: true });
        if (!signal.aborted) return hits;
      } catch (error) {
        // load() has reported its own.
        if (this.#loading === loading) this.#fail(error);
        if (!signal.aborted) return undefined;
      }
      if (!this.isConnected) return undefined;
    }
  }

  #placeOf({ path, anchor }: Section): string {
    const folder = (this.getAttribute('base') || '.').replace(/\/*$/, '/');
    const parts = textOf(path).split('/').filter(Boolean);
    const place = textOf(anchor);
    return folder + parts.map(encodeURIComponent).join('/') + (place && `#${encodeURIComponent(place)}`);
  }

  #resultOf(hit: Hit): HTMLLIElement {
    const { title, heading, path } = hit.document as Section;
    const [item, link, text] = [element('li', 'result'), element('a', 'link'), element('p', 'text')];
    link.href = this.hrefOf(hit);
    const names = [textOf(title), textOf(heading)].filter(Boolean);
    link.textContent = [...new Set(names)].join(' › ') || textOf(path) || String(hit.id);
    text.textContent = hit.text;
    item.append(link, text);
    return item;
  }

  #key(event: KeyboardEvent): void {
    if (event.isComposing || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const stops = [this.#input, ...this.#results.querySelectorAll('a')];
    const at = stops.indexOf(event.target as HTMLInputElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Escape: 0 }[event.key];
    if (to === undefined || at < 0 || !stops[to]) return;
    event.preventDefault();
    stops[to].focus();
    if (event.key !== 'Escape' || this.#input.value === '') return;
    this.#input.value = '';
    void this.#search();
  }
}

function addressOf(search: AttnSearch, attribute: string): URL {
  const value = search.getAttribute(attribute);
  if (!value) throw new Error(`attn-search: the attribute ${attribute} is missing`);
  try {
    return new URL(value, document.baseURI);
  } catch {
    throw new Error(`attn-search: the attribute ${attribute} is ${JSON.stringify(value)}, expected an address`);
  }
}

async function fetched(url: URL, signal: AbortSignal): Promise<ArrayBuffer> {
  let why: string;
  try {
    const response = await fetch(url, { signal });
    if (response.ok) return await response.arrayBuffer();
    why = `answered ${response.status} ${response.statusText}`.trimEnd();
  } catch (error) {
    why = `could not be fetched (${String(error)})`;
  }
  throw new Error(`attn-search: ${url.href} ${why}`);
}

export const defineAttnSearch = (name = 'attn-search'): typeof AttnSearch => define(name, 'attn-search', AttnSearch);
