import { decodeUtf8 } from '../platform/utf8.js';
import type { ModelState } from './model_state.js';

export interface ChatFiles {
  /** Jinja templates by name; a single one is 'default'. */
  readonly templates: Readonly<Record<string, string>>;
  /** Special tokens by their name in a template, such as bos_token. */
  readonly tokens: Readonly<Record<string, string>>;
}

type Json = Readonly<Record<string, unknown>>;

/** tokenizer.json and these files were checked when the model was loaded. */
export function readChatFiles({ files, base }: ModelState): ChatFiles {
  const text = (name: string) => {
    const bytes = files.get(base + name);
    return bytes && decodeUtf8(bytes).replace(/^\ufeff/, '');
  };
  const json = (name: string) => JSON.parse(text(name) ?? '{}') as Json;
  const config = json('tokenizer_config.json');
  const tokens: Record<string, string> = {};
  for (const [name, value] of [...Object.entries(json('special_tokens_map.json')), ...Object.entries(config)]) {
    const token = typeof value === 'object' && value !== null && 'content' in value ? value.content : value;
    if (name.endsWith('_token') && typeof token === 'string') tokens[name] = token;
  }
  const given = config['chat_template'];
  const named = Array.isArray(given) ? (given as readonly Json[]).map(({ name, template }) => [name, template]) : [['default', given]];
  const file = text('chat_template.jinja');
  if (file !== undefined) named.push(['default', file]);
  return { templates: Object.fromEntries(named.filter(([, template]) => typeof template === 'string')) as Record<string, string>, tokens };
}
