// The part of @huggingface/jinja that is used: its own declarations do not resolve as node16. The build places the code.
export class Template {
  readonly parsed: unknown;
  constructor(template: string);
  render(variables: Readonly<Record<string, unknown>>): string;
}
