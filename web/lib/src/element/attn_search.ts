import type { ModelOptions } from '../attn.js';
import type { Hit } from '../search.js';
import type { Index } from '../search/search.js';
import type { AttnSearch as Contract } from '../search-element.js';
import type { Attn } from '../worker.js';

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

/** Without a DOM the module can still be imported. */
const Base = (globalThis as { HTMLElement?: typeof HTMLElement }).HTMLElement ?? (function () {} as unknown as typeof HTMLElement);

const defaultResults = 5;

/** What `attn index` knows about a section. */
interface Section {
  readonly path?: unknown;
  readonly anchor?: unknown;
  readonly title?: unknown;
  readonly heading?: unknown;
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

function element<Name extends keyof HTMLElementTagNameMap>(name: Name, part = ''): HTMLElementTagNameMap[Name] {
  const made = document.createElement(name);
  if (part) made.setAttribute('part', part);
  return made;
}

interface Loaded {
  readonly attn: Attn;
  readonly index: Index;
}

export class AttnSearch extends Base implements Contract {
  static readonly observedAttributes: readonly string[] = ['label', 'placeholder', 'src', 'model'];

  hrefOf: (hit: Hit) => string = ({ document: section }) => {
    const { path, anchor } = section as Section;
    const folder = `${this.getAttribute('base') ?? '.'}/`.replace(/\/+$/, '/');
    return `${folder}${textOf(path).split('/').map(encodeURIComponent).join('/')}${textOf(anchor) && `#${encodeURIComponent(textOf(anchor))}`}`;
  };

  readonly #label = element('label', 'label');
  readonly #input = element('input', 'input');
  readonly #status = element('p', 'status');
  readonly #results = element('ol', 'results');
  #loaded: Promise<Loaded> | undefined;
  /** The query whose results are wanted, while a search runs. */
  #next: string | undefined;
  #searching = false;

  constructor() {
    super();
    const root = this.attachShadow({ mode: 'open', delegatesFocus: true });
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(styles);
    root.adoptedStyleSheets = [sheet];
    this.#input.type = 'search';
    this.#input.id = 'query';
    this.#input.autocomplete = 'off';
    this.#label.htmlFor = 'query';
    this.#label.textContent = 'Search';
    this.#status.setAttribute('role', 'status');
    root.append(this.#label, this.#input, this.#status, this.#results);
    this.#input.addEventListener('focus', () => void this.load().catch(() => {}));
    this.#input.addEventListener('input', () => void this.#search());
    root.addEventListener('keydown', (event) => this.#key(event as KeyboardEvent));
  }

  attributeChangedCallback(name: string, before: string | null, value: string | null): void {
    if (name === 'label') this.#label.textContent = value ?? 'Search';
    else if (name === 'placeholder') this.#input.placeholder = value ?? '';
    else if (before !== value) this.#dispose();
  }

  disconnectedCallback(): void {
    // An element that is only moved keeps its model.
    setTimeout(() => {
      if (!this.isConnected) this.#dispose();
    });
  }

  async load(): Promise<void> {
    await this.#load();
  }

  #load(): Promise<Loaded> {
    if (this.#loaded) return this.#loaded;
    const loading = this.#open();
    this.#loaded = loading;
    loading.then(
      () => this.#loaded === loading && this.#say(''),
      (error: unknown) => {
        if (this.#loaded !== loading) return;
        this.#loaded = undefined;
        this.#fail(error);
      },
    );
    return loading;
  }

  async #open(): Promise<Loaded> {
    const [src, model] = ['src', 'model'].map((name) => {
      const value = this.getAttribute(name);
      if (!value) throw new Error(`attn-search: the attribute ${name} is missing`);
      return new URL(value, document.baseURI);
    }) as [URL, URL];
    this.#say('Loading …');
    const [{ load }, { Index }, bytes] = await Promise.all([import('../worker-web.js'), import('../search/search.js'), fetched(src)]);
    const attn = await load();
    try {
      const onProgress: ModelOptions['onProgress'] = ({ loaded, total }) => {
        if (total) this.#say(`Loading … ${Math.floor((100 * loaded) / total)} %`);
      };
      return { attn, index: await Index.load(await attn.loadModel(model, { onProgress }), bytes) };
    } catch (error) {
      void attn.dispose();
      throw error;
    }
  }

  #dispose(): void {
    const loaded = this.#loaded;
    this.#loaded = undefined;
    loaded?.then(
      ({ attn, index }) => {
        index.dispose();
        void attn.dispose();
      },
      () => {},
    );
  }

  #say(text: string): void {
    this.#status.textContent = text;
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
    try {
      while (this.#next !== undefined) {
        const query: string = this.#next;
        this.#next = undefined;
        const hits = query === '' ? [] : await this.#find(query);
        if (this.#next !== undefined) continue;
        this.#results.replaceChildren(...hits.map((hit) => this.#resultOf(hit)));
        this.#say(query === '' ? '' : hits.length === 1 ? '1 result' : `${hits.length} results`);
      }
    } catch (error) {
      // load() has reported its own.
      if (this.#loaded) this.#fail(error);
    } finally {
      this.#searching = false;
    }
  }

  async #find(query: string): Promise<Hit[]> {
    const { index } = await this.#load();
    const k = Number(this.getAttribute('k') ?? defaultResults);
    return index.search(query, { k: Number.isSafeInteger(k) && k > 0 ? k : defaultResults, hybrid: true });
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
    const stops = [this.#input, ...this.#results.querySelectorAll('a')];
    const at = stops.indexOf(event.target as HTMLInputElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Escape: 0 }[event.key];
    if (to === undefined || at < 0 || event.isComposing || !stops[to]) return;
    event.preventDefault();
    stops[to].focus();
    if (event.key !== 'Escape' || this.#input.value === '') return;
    this.#input.value = '';
    void this.#search();
  }
}

async function fetched(url: URL): Promise<ArrayBuffer> {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`attn-search: ${url.href} answered ${response.status} ${response.statusText}`.trimEnd());
  return response.arrayBuffer();
}

export function defineAttnSearch(name = 'attn-search'): typeof AttnSearch {
  const known = customElements.get(name);
  if (known) return known as typeof AttnSearch;
  const own = name === 'attn-search' ? AttnSearch : class extends AttnSearch {};
  customElements.define(name, own);
  return own;
}
