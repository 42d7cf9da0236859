/** Runs in the page: finds elements by role and accessible name. Returns the helpers for functions of Page.tool(). */
export function makeTools() {
  /** Text of an element, or of the first match of a selector; '' if there is none. */
  const text = (what) => ((typeof what === 'string' ? document.querySelector(what) : what)?.textContent ?? '').replace(/\s+/g, ' ').trim();
  const visible = (element) => element.getClientRects().length > 0;
  /** The part of the accessible name computation that this page needs. */
  function nameOf(element) {
    const by = element.getAttribute('aria-labelledby');
    if (by)
      return by
        .split(/\s+/)
        .map((id) => text(document.getElementById(id)))
        .join(' ');
    if (element.hasAttribute('aria-label')) return element.getAttribute('aria-label').trim();
    if (element.tagName === 'TABLE' && element.caption) return text(element.caption);
    if (element.tagName === 'FIELDSET') return text(element.querySelector('legend'));
    const labels = element.labels ?? [];
    if (labels.length)
      return Array.from(labels, (label) => {
        const copy = label.cloneNode(true);
        for (const inner of copy.querySelectorAll('select, input, textarea, output, progress')) inner.remove();
        return text(copy);
      }).join(' ');
    return text(element) || element.title || '';
  }
  const roles = {
    textbox: 'textarea, input:not([type]), input[type=text], input[type=search], [role=textbox]',
    button: 'button, [role=button], input[type=button], input[type=submit]',
    table: 'table, [role=table]',
    combobox: 'select, [role=combobox]',
    slider: 'input[type=range], [role=slider]',
    spinbutton: 'input[type=number], [role=spinbutton]',
    checkbox: 'input[type=checkbox], [role=checkbox]',
    radio: 'input[type=radio], [role=radio]',
    tab: '[role=tab]',
    grid: '[role=grid]',
    group: '[role=group], fieldset',
    radiogroup: '[role=radiogroup]',
    list: 'ul, ol',
    img: 'img, [role=img]',
    progressbar: 'progress, [role=progressbar]',
    dialog: 'dialog, [role=dialog]',
    status: '[role=status], output',
    alert: '[role=alert]',
  };
  /** Resolves a selector, [role, name, place], or an element. */
  function placeOf(where) {
    const place = Array.isArray(where) ? find(...where) : typeof where === 'string' ? document.querySelector(where) : where;
    if (!place) throw new Error(`no element named ${where}`);
    return place;
  }
  /** All elements with a role; without a name, whatever their names. */
  const all = (role, name, where = document) =>
    [...placeOf(where).querySelectorAll(roles[role])].filter(
      (e) => (role === 'radio' || role === 'checkbox' || visible(e)) && ((name ?? undefined) === undefined || nameOf(e) === name),
    );
  function find(role, name, where) {
    const found = (Array.isArray(role) ? role : [role]).flatMap((r) => all(r, name, where));
    if (!found.length) throw new Error(`no ${role} named ${name}`);
    return found[0];
  }
  /** Marks an element so that the driver can select it. */
  let marks = 0;
  function mark(element) {
    element.dataset.testMark ??= String(++marks);
    return `[data-test-mark="${element.dataset.testMark}"]`;
  }
  const table = (name, where) => {
    const t = find('table', name, where);
    const body = [...t.tBodies].flatMap((b) => [...b.rows]);
    return {
      columns: Array.from(t.tHead.rows[0].querySelectorAll('th[scope=col]:not(.corner, .total)'), text),
      rows: body.map((row) => text(row.querySelector('th[scope=row]'))),
      // Edited cells show "edited" or the previous value after the number.
      cells: body.map((row) => Array.from(row.querySelectorAll('td:not(.total)'), (cell) => text(cell).replace(/ ?(edited|was .*)$/, ''))),
      totals: body.flatMap((row) => Array.from(row.querySelectorAll('td.total'), text)),
    };
  };
  function choose(element, value) {
    element.value = String(value);
    element.dispatchEvent(new Event('input', { bubbles: true }));
    element.dispatchEvent(new Event('change', { bubbles: true }));
  }
  return { text, visible, nameOf, all, find, mark, table, choose };
}
