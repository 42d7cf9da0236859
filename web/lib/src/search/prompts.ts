export interface Prompts {
  readonly document: string;
  readonly query: string;
}

export interface Prompted {
  readonly prompts: Readonly<Record<string, string>> | PromiseLike<Readonly<Record<string, string>>>;
}

/**
 * Finds the names that sentence-transformers' encode_query and encode_document look for. Unlike there, an empty prompt
 * `document`, which every model has, does not hide `passage` and `corpus`.
 */
export async function promptsOf(model: Prompted): Promise<Prompts> {
  const prompts = await model.prompts;
  const first = (...names: readonly string[]) => names.map((name) => prompts[name]).find(Boolean) ?? '';
  return { document: first('document', 'passage', 'corpus'), query: first('query') };
}
