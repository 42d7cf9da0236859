/** Shared code of the elements. */

/** Without a DOM the module can still be imported. */
export const Base = (globalThis as { HTMLElement?: typeof HTMLElement }).HTMLElement ?? (function () {} as unknown as typeof HTMLElement);

/** Attaches a shadow root with these styles, which a content security policy cannot block. */
export function attachStyledRoot(host: HTMLElement, styles: string): ShadowRoot {
  const root = host.attachShadow({ mode: 'open' });
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(styles);
  root.adoptedStyleSheets = [sheet];
  return root;
}

/** Registers `Element` under a name; returns the class that has the name. */
export function define<T extends CustomElementConstructor>(name: string, usual: string, Element: T): T {
  const known = customElements.get(name);
  if (known) return known as T;
  // A class can be registered under one name only, so each further name needs its own class.
  const own = name === usual ? Element : (class extends (Element as CustomElementConstructor) {} as T);
  customElements.define(name, own);
  return own;
}
