/**
 * Reads the words after ```: a name in brackets becomes the block's title (in a code group, its tab), and `live` makes
 * it a program that readers edit and run.
 */
export function fences(markdown) {
  const plain = markdown.renderer.rules.fence;
  markdown.renderer.rules.fence = (tokens, index, options, environment, self) => {
    const { info, content } = tokens[index];
    const code = plain(tokens, index, options, environment, self);
    if (/\blive\b/.test(info)) return `<live-code v-pre data-code="${markdown.utils.escapeHtml(content)}">${code}</live-code>`;
    const [, name] = /\[([^\]]+)\]/.exec(info) ?? [];
    const group = tokens.slice(0, index).findLast(({ type }) => type.startsWith('container_code-group'));
    if (group?.nesting === 1) return code; // the names are its tabs
    return name ? `<div class="named-code"><p>${markdown.utils.escapeHtml(name)}</p>${code}</div>` : code;
  };
}
