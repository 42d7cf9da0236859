/**
 * <live-code data-code="…">: a program with buttons to run and edit it. It runs in a frame of this site (run.html),
 * which shows its output and its document.
 */
export function defineLiveCode(runner) {
  if (customElements.get('live-code')) return;

  const make = (name, properties) => Object.assign(document.createElement(name), properties);

  class LiveCode extends HTMLElement {
    #shown = false;
    #frame;
    #text;
    #run = make('button', { type: 'button', textContent: 'Run' });
    #change = make('button', { type: 'button', textContent: 'Change it' });
    #status = make('p', { role: 'status' });

    connectedCallback() {
      if (this.#shown) return;
      this.#shown = true;
      this.#run.addEventListener('click', () => this.#start());
      this.#change.addEventListener('click', () => this.#edit());
      const bar = make('div', { className: 'live-bar' });
      bar.append(this.#run, this.#change, this.#status);
      this.append(bar);
      addEventListener('message', this.#hear);
      this.dataset.state = 'ready';
    }

    disconnectedCallback() {
      removeEventListener('message', this.#hear);
    }

    get #code() {
      return this.#text?.value ?? this.dataset.code;
    }

    /** Switches between editing and the original program. */
    #edit() {
      const shown = this.querySelector('div[class*=language-]');
      if (this.#text) {
        this.#text.remove();
        this.#text = undefined;
        shown.hidden = false;
      } else {
        const rows = this.dataset.code.trimEnd().split('\n').length;
        this.#text = make('textarea', { value: this.dataset.code.trimEnd(), rows, spellcheck: false, ariaLabel: 'Program' });
        shown.after(this.#text);
        shown.hidden = true;
        this.#text.focus();
      }
      this.#change.textContent = this.#text ? 'As it was' : 'Change it';
    }

    #start() {
      this.#frame?.remove();
      this.#frame = make('iframe', { title: 'What the program shows', src: runner });
      this.append(this.#frame);
      this.#say('running', 'Running …');
    }

    #say(state, text) {
      this.dataset.state = state;
      this.#status.textContent = text;
    }

    #hear = ({ source, origin, data }) => {
      if (origin !== location.origin || source === null || source !== this.#frame?.contentWindow) return;
      if (data.state === 'ready') source.postMessage({ code: this.#code, dark: document.documentElement.classList.contains('dark') }, origin);
      if (data.height !== undefined) this.#frame.height = String(data.height);
      if (data.state === 'done') this.#say('done', `Done in ${Math.round(data.milliseconds)} ms.`);
      if (data.state === 'failed') this.#say('failed', 'It ended with an error.');
    };
  }

  customElements.define('live-code', LiveCode);
}
