/** src/attn/io/tokenizer/other_tokens.cpp is the native counterpart. */
import { isPlainObject } from '../args/arrays.js';
import { Section } from './schema.js';

const named = ['bos', 'eos', 'unk', 'sep', 'pad', 'cls', 'mask'].map((name) => `${name}_token`);
const old = 'additional_special_tokens';
const flags = ['single_word', 'lstrip', 'rstrip', 'normalized', 'special'];

/** `old`: additional_special_tokens; `named`: another name. */
type Kind = 'usual' | 'named' | 'extra' | 'old';

function* specialTokens(config: Section): Generator<[value: unknown, path: string, kind: Kind]> {
  const given = (name: string, kind: Kind = 'named'): [unknown, string, Kind] => [config.get(name), config.at(name), kind];
  for (const name of named) if (config.has(name)) yield given(name, 'usual');
  const others = config.names().filter((name) => name.endsWith('_token') && !named.includes(name));
  for (const name of others) if (isPlainObject(config.get(name)) && config.section(name).has('__type')) yield given(name);
  for (const name of others) if (typeof config.get(name) === 'string') yield given(name);
  const [name, kind] = config.has('extra_special_tokens') ? (['extra_special_tokens', 'extra'] as const) : ([old, 'old'] as const);
  if (!config.has(name)) return;
  const extra = config.get(name);
  const list = new Section(Array.isArray(extra) ? { ...(extra as unknown[]) } : extra, config.at(name));
  for (const each of list.names()) yield [list.get(each), list.at(each), Array.isArray(extra) ? kind : 'named'];
}

/** As transformers' from_pretrained, in its order. */
function withOtherTokens(own: readonly Section[], config: Section, ids: Section | undefined): Section[] {
  const all = [...own];
  const keyOf = (token: Section) => flags.map((flag) => token.get(flag) === true).join();
  const known = new Map(own.map((token) => [token.get('content'), keyOf(token)]));
  const read = (value: unknown, path: string) => new Section(typeof value === 'string' ? { content: value } : value, path);
  const add = (given: Section, isSpecial: boolean) => {
    const content = given.string('content');
    const set = (flag: string) => (flag === 'special' ? isSpecial : given.boolean(flag, flag === 'normalized' && !isSpecial));
    const token = given.with(Object.fromEntries(flags.map((flag) => [flag, set(flag)])));
    if (known.get(content) === keyOf(token)) return;
    known.set(content, keyOf(token));
    all.push(token);
  };
  const special = Array.from(specialTokens(config), ([value, path, kind]) => {
    const token = read(value, path);
    return { token, content: token.string('content'), isText: typeof value === 'string', kind };
  });
  const areAny = (...kinds: readonly Kind[]) => new Set(special.filter(({ kind }) => kinds.includes(kind)).map(({ content }) => content));
  const withName = areAny('usual', 'named');
  if (config.has('added_tokens_decoder')) {
    const decoder = config.section('added_tokens_decoder');
    for (const id of decoder.names()) {
      const token = decoder.section(id);
      add(token, token.boolean('special', false) || withName.has(token.string('content')));
    }
  } else if (ids) {
    const [taken, listed] = [new Set(own.map((token) => token.get('id'))), areAny('usual', 'extra')];
    const order = ids.names().map((content) => [ids.id(content), content] as const);
    for (const [id, content] of order.sort(([a], [b]) => a - b)) if (!taken.has(id)) add(read(content, ids.at(content)), listed.has(content));
  }
  for (const { token, content, isText } of special) if (!known.has(content)) add(token, token.boolean('special', isText) || withName.has(content));
  return all;
}

/** transformers merges only without an added_tokens_decoder. */
function withSpecialTokens(config: Section, map: Section | undefined): Section {
  const values: Record<string, unknown> = {};
  const extra = 'extra_special_tokens';
  const listOf = (value: unknown) => (Array.isArray(value) ? (value as unknown[]) : undefined);
  if (config.has(old) && (!config.has(extra) || listOf(config.get(extra))?.length === 0)) values[extra] = config.get(old);
  values[old] = undefined;
  if (!map || config.has('added_tokens_decoder')) return config.with(values);
  for (const name of map.names()) {
    const value = map.get(name);
    const before = values[extra] ?? config.get(extra) ?? undefined;
    if (name === extra) values[extra] = listOf(before) && listOf(value) ? [...listOf(before)!, ...listOf(value)!] : value;
    else if (name === old) values[old] = value;
    else if (name.endsWith('_token')) values[name] = isPlainObject(value) ? { ...value, special: true, __type: 'AddedToken' } : value;
  }
  return config.with(values);
}

export function readOtherTokens(
  own: readonly Section[],
  config: Section | undefined,
  map: Section | undefined,
  ids: Section | undefined,
): readonly [config: Section, tokens: Section[]] {
  const all = withSpecialTokens(config ?? new Section({}, 'tokenizer_config.json'), map);
  return [all, withOtherTokens(own, all, ids)];
}
