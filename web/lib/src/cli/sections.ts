/** Sections of HTML and Markdown files as plain text. */
import { Parser } from 'htmlparser2';
import { Marked } from 'marked';

/** The text from a heading, which is part of it, to the next. */
export interface Section {
  /** Without `#`; '' before the first heading, and for a heading without an anchor. */
  readonly anchor: string;
  readonly heading: string;
  readonly text: string;
}

export interface Page {
  readonly title: string | undefined;
  readonly sections: readonly Section[];
}

const setOf = (names: string) => new Set(names.split(' '));
const headings = setOf('h1 h2 h3 h4 h5 h6');
const blocks = setOf(
  'address article aside blockquote body caption dd details dialog div dl dt fieldset figcaption figure form h1 h2 h3 h4 h5 h6 header hgroup ' +
    'hr legend li main ol p pre section summary table tbody tfoot thead tr ul',
);
const skipped = setOf('audio button canvas datalist footer iframe nav noscript object script select style svg template textarea video');

const gaps = ['', ' ', '\n', '\n\n'] as const;
const [NONE, SPACE, LINE, PARAGRAPH] = [0, 1, 2, 3];

interface Element {
  readonly name: string;
  readonly isRead: boolean;
  readonly isMain: boolean;
  readonly isPre: boolean;
  /** Start of the text, if this is a link in a heading to the same page. */
  readonly link: number | undefined;
}

const root: Element = { name: '', isRead: true, isMain: false, isPre: false, link: undefined };
const hasWord = (text: string) => /[\p{L}\p{N}]/u.test(text);

/** The anchor that GitHub gives a heading. */
const slugOf = (heading: string) =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{M}\p{N}\p{Pc}\- ]/gu, '')
    .replaceAll(' ', '-');

class Reader {
  readonly #makesAnchors: boolean;
  readonly #slugs = new Map<string, number>();
  readonly #stack: Element[] = [root];
  #sections = [{ anchor: '', heading: '', text: '' }];
  #gap = NONE;
  #isPreStart = false;
  /** The last id without text after it. */
  #id = '';
  /** The size of the stack inside the open heading, or 0. */
  #headingDepth = 0;
  #ownAnchor = false;
  #hasMain = false;
  #title = '';
  #h1: string | undefined;

  /** `makesAnchors`: headings without an id get one, as in Markdown. */
  constructor(makesAnchors: boolean) {
    this.#makesAnchors = makesAnchors;
  }

  open(name: string, attributes: Readonly<Record<string, string>>): void {
    const parent = this.#stack.at(-1)!;
    const isMainStart = name === 'main' || attributes['role'] === 'main';
    const isHidden = skipped.has(name) || attributes['hidden'] !== undefined || attributes['aria-hidden'] === 'true';
    const isMain = parent.isMain || isMainStart;
    if (parent.isRead && !isHidden && isMainStart && !this.#hasMain) this.#startMain();
    const isRead = parent.isRead && !isHidden && (isMain || !this.#hasMain || !blocks.has(name));
    const id = (attributes['id'] ?? (name === 'a' ? attributes['name'] : undefined)) || '';
    if (isRead) {
      if (headings.has(name)) this.#startHeading(id);
      else if (id) this.#meetId(id);
      if (blocks.has(name)) this.#separate(PARAGRAPH);
      else if (name === 'br') this.#separate(LINE);
      else if (name === 'td' || name === 'th') this.#separate(SPACE);
      if (name === 'pre') this.#isPreStart = true;
    }
    const isLink = name === 'a' && this.#headingDepth > 0 && attributes['href']?.startsWith('#');
    this.#stack.push({ name, isRead, isMain, isPre: parent.isPre || name === 'pre', link: isLink ? this.#section.text.length : undefined });
    if (isRead && headings.has(name)) this.#headingDepth = this.#stack.length;
  }

  add(text: string): void {
    const { name, isRead, isMain, isPre } = this.#stack.at(-1)!;
    if (name === 'title' && isRead) this.#title += text;
    else if (isRead && (isMain || !this.#hasMain)) this.#add(text, isPre);
  }

  close(): void {
    const { name, isRead, link } = this.#stack.at(-1)!;
    const section = this.#section;
    // A permalink, such as ¶.
    if (link !== undefined && !hasWord(section.text.slice(link))) section.text = section.text.slice(0, link);
    if (isRead && name === 'pre') section.text = section.text.trimEnd();
    if (isRead && blocks.has(name)) this.#separate(PARAGRAPH);
    if (this.#headingDepth === this.#stack.length) this.#endHeading(name);
    this.#stack.pop();
  }

  end(): Page {
    const title = this.#h1 ?? this.#title.replace(/\s+/g, ' ').trim();
    return { title: title || undefined, sections: this.#sections.filter(({ text }) => text.trim() !== '') };
  }

  get #section() {
    return this.#sections.at(-1)!;
  }

  #startMain(): void {
    this.#hasMain = true;
    this.#h1 = undefined;
    this.#sections = [{ anchor: '', heading: '', text: '' }];
    this.#gap = NONE;
  }

  #startHeading(id: string): void {
    this.#sections.push({ anchor: id || this.#id, heading: '', text: '' });
    this.#ownAnchor = id !== '';
    this.#gap = NONE;
  }

  #meetId(id: string): void {
    if (this.#headingDepth === 0) this.#id = id;
    else if (!this.#ownAnchor) {
      this.#section.anchor = id;
      this.#ownAnchor = true;
    }
  }

  #endHeading(name: string): void {
    this.#headingDepth = 0;
    this.#id = '';
    const section = this.#section;
    if (this.#makesAnchors && !this.#ownAnchor) this.#makeAnchor(section);
    section.heading = section.text.replace(/\s+/g, ' ');
    if (name === 'h1' && section.heading !== '') this.#h1 ??= section.heading;
  }

  /** `## Heading {#anchor}`, or the heading itself. */
  #makeAnchor(section: { anchor: string; text: string }): void {
    const [all, own] = /\s*\{#([^\s{}]+)\}$/.exec(section.text) ?? [];
    if (own !== undefined) {
      section.anchor = own;
      section.text = section.text.slice(0, -all!.length);
      return;
    }
    const slug = slugOf(section.text);
    let anchor = slug;
    for (let count = this.#slugs.get(slug) ?? 0; this.#slugs.has(anchor); anchor = `${slug}-${count}`) this.#slugs.set(slug, ++count);
    this.#slugs.set(anchor, 0);
    section.anchor = anchor;
  }

  #separate(gap: number): void {
    this.#gap = Math.max(this.#gap, gap);
  }

  #add(text: string, isPre: boolean): void {
    const part = isPre ? (this.#isPreStart ? text.replace(/^\r?\n/, '') : text) : text.replace(/[ \t\r\n\f]+/g, ' ');
    if (isPre) this.#isPreStart = false;
    else if (part.startsWith(' ')) this.#separate(SPACE);
    const words = isPre ? part : part.replace(/^ | $/g, '');
    if (words === '') return;
    const section = this.#section;
    section.text += (section.text === '' ? '' : gaps[this.#gap]!) + words;
    this.#gap = !isPre && part.endsWith(' ') ? SPACE : NONE;
    if (this.#headingDepth === 0) this.#id = '';
  }
}

function read(html: string, makesAnchors: boolean): Page {
  const reader = new Reader(makesAnchors);
  const parser = new Parser({
    onopentag: (name, attributes) => void reader.open(name, attributes),
    ontext: (text) => void reader.add(text),
    onclosetag: () => void reader.close(),
  });
  parser.end(html);
  return reader.end();
}

export const readHtml = (html: string): Page => read(html, false);

const unquoted = (value: string) =>
  /^"(.*)"$|^'(.*)'$/
    .exec(value)
    ?.slice(1)
    .find((each) => each !== undefined) ?? value;

/** Lines that YAML and TOML have at their outer level; indented lines belong to the one before. */
const yamlLine = /^(?:\s|$|#|- |["']?[\p{L}\p{N}_][^:]*:(?:\s|$))/u;
const tomlLine = /^\s*(?:$|#|\[|["'\]}]|[\p{L}\p{N}_-][^=]*=)/u;

/** Returns the front matter with its fences, and the part in which a title is that of the page; '' if there is none. */
function frontMatter(markdown: string): [all: string, top: string] {
  const [all = '', fence, text = ''] = /^(---|\+\+\+)[ \t]*\r?\n([^]*?\r?\n)\1[ \t]*(?:\r?\n|$)/.exec(markdown) ?? [];
  const isToml = fence === '+++';
  const lines = text.split(/\r?\n/);
  // After a thematic break there may be any text.
  if (!lines.every((line) => (isToml ? tomlLine : yamlLine).test(line)) || text.trim() === '') return ['', ''];
  return [all, isToml ? text.replace(/^\s*\[[^]*/m, '') : text];
}

/** Front matter (YAML or TOML) gives the title only. */
export function readMarkdown(markdown: string): Page {
  const [all, front] = frontMatter(markdown);
  const written = /^title\s*[:=][ \t]*("[^"]*"|'[^']*'|.*?)\s*(?: #.*)?$/m.exec(front)?.[1] ?? '';
  const title = /^[>|]/.test(written) ? '' : unquoted(written); // a YAML block has lines of its own
  const page = read(new Marked({ async: false }).parse(markdown.slice(all.length)) as string, true);
  return { ...page, title: title || page.title };
}
