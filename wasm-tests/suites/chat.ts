/** Chat templates: conversations as transformers formats them. */
import { AttnError as WorkerError, load as loadWorker } from 'attn/worker';
import type { Attn, ChatTemplateOptions, TextModel } from 'attn';
import { assert } from 'chai';
import { bytes, loadHere, setup, url } from '../support/host.ts';
import { assertRejects } from '../support/errors.ts';

interface Case {
  readonly template: string;
  readonly messages: { readonly role: string; readonly content: unknown }[];
  readonly options: { readonly tools?: unknown[]; readonly documents?: unknown[]; readonly enable_thinking?: boolean };
  readonly addGenerationPrompt: boolean;
  readonly text: string;
}
interface Goldens {
  readonly tokens: Readonly<Record<string, string>>;
  readonly templates: Readonly<Record<string, string>>;
  readonly cases: readonly Case[];
}

const hello = [{ role: 'user', content: 'Hi' }];
const names = '{% for m in messages %}{{ m.role }}{{ eos_token }}{% endfor %}';

function optionsOf({ options, addGenerationPrompt }: Case): ChatTemplateOptions {
  const { tools, documents, ...variables } = options;
  return { addGenerationPrompt, tools, documents, variables };
}

describe('applyChatTemplate', () => {
  let attn: Attn;
  let goldens: Goldens;
  let folder: Readonly<Record<string, Uint8Array<ArrayBuffer>>>;
  const opened: TextModel[] = [];

  before(async () => {
    attn = await loadHere();
    goldens = JSON.parse(new TextDecoder().decode(await bytes('testdata/chat_templates.json'))) as Goldens;
    const files = ['config.json', 'tokenizer.json', 'model.safetensors'];
    folder = Object.fromEntries(await Promise.all(files.map(async (name) => [name, await bytes(`testdata/models/tiny-llama/${name}`)] as const)));
  });
  afterEach(() => opened.splice(0).forEach((model) => model.dispose()));
  after(() => attn.dispose());

  async function modelWith(config: object, files: Readonly<Record<string, string>> = {}): Promise<TextModel> {
    const model = await attn.loadModel({ ...folder, 'tokenizer_config.json': JSON.stringify({ ...goldens.tokens, ...config }), ...files });
    opened.push(model);
    return model;
  }

  it('formats conversations as transformers does', async () => {
    for (const [name, template] of Object.entries(goldens.templates)) {
      const model = await modelWith({ chat_template: template });
      const cases = goldens.cases.filter((each) => each.template === name);
      assert.isAbove(cases.length, 1);
      for (const each of cases) assert.equal(await model.applyChatTemplate(each.messages, optionsOf(each)), each.text, name);
    }
  });

  it('takes the template by name, tool_use with tools, a file, and a given template', async () => {
    const two = [
      { name: 'default', template: 'plain' },
      { name: 'tool_use', template: 'tools {{ tools | length }}' },
    ];
    const model = await modelWith({ chat_template: two });
    assert.equal(await model.applyChatTemplate(hello), 'plain');
    assert.equal(await model.applyChatTemplate(hello, { tools: [{}, {}] }), 'tools 2');
    assert.equal(await model.applyChatTemplate(hello, { tools: [{}], chatTemplate: 'default' }), 'plain');
    assert.equal(await model.applyChatTemplate(hello, { chatTemplate: names }), 'user</s>');
    assert.equal(await (await modelWith({}, { 'chat_template.jinja': names })).applyChatTemplate(hello), 'user</s>');
    const others = await modelWith({ chat_template: [{ name: 'rag', template: names }] });
    assert.equal(await others.applyChatTemplate(hello, { chatTemplate: 'rag' }), 'user</s>');
    await assertRejects(others.applyChatTemplate(hello), 'ARGUMENT', ['chatTemplate', 'rag']);
  });

  it('takes special tokens given as objects or in special_tokens_map.json', async () => {
    const map = JSON.stringify({ pad_token: { content: '<pad>', lstrip: false }, eos_token: 'unused' });
    const model = await modelWith({ bos_token: { content: '<b>' } }, { 'special_tokens_map.json': map });
    const chatTemplate = '{{ bos_token }}{{ eos_token }}{{ pad_token }}';
    assert.equal(await model.applyChatTemplate(hello, { chatTemplate }), '<b></s><pad>');
  });

  it('refuses wrong messages, options and templates', async () => {
    const model = await modelWith({ chat_template: goldens.templates['headers'] });
    const apply = (messages: unknown, options?: object) => model.applyChatTemplate(messages as never, options as ChatTemplateOptions);
    await assertRejects(apply('Hi'), 'ARGUMENT', ['messages', 'an Array']);
    await assertRejects(apply(['Hi']), 'ARGUMENT', ['messages[0]', 'role']);
    await assertRejects(apply([{ content: 'Hi' }]), 'ARGUMENT', ['messages[0].role', 'missing']);
    await assertRejects(apply([{ role: 'user', content: 1n }]), 'ARGUMENT', ['messages', 'JSON']);
    const started = Date.now();
    await assertRejects(apply(new Array(4e9)), 'ARGUMENT', ['messages', 'JSON']);
    await assertRejects(apply(hello, { variables: { deep: [1, { of: new Array(4e9) }] } }), 'ARGUMENT', ['variables', 'JSON']);
    assert.isBelow(Date.now() - started, 20_000, 'holes are not written');
    await assertRejects(apply([...hello, ...hello]), 'ARGUMENT', ['messages', 'must alternate']);
    await assertRejects(apply(hello, { addGenerationPromt: true }), 'ARGUMENT', ['Did you mean addGenerationPrompt']);
    await assertRejects(apply(hello, { addGenerationPrompt: 1 }), 'ARGUMENT', ['addGenerationPrompt', 'true or false']);
    await assertRejects(apply(hello, { tools: {} }), 'ARGUMENT', ['tools', 'an Array']);
    await assertRejects(apply(hello, { variables: [] }), 'ARGUMENT', ['variables', 'an object']);
    await assertRejects(apply(hello, { chatTemplate: '{% for %}' }), 'FORMAT', ['Jinja']);
    for (const chatTemplate of ['{% for i in range(200000000) %}{% endfor %}', '{% set r = range %}{{ r(0, 1000000000) }}', '{{ range(1, 2, 0) }}'])
      await assertRejects(apply(hello, { chatTemplate }), 'ARGUMENT', ['range()', '100000']);
    assert.equal(
      await apply(hello, { chatTemplate: '{{ range(3) }}{{ range(5, 1, -2) }}{{ x.range }}', variables: { x: { range: 7 } } }),
      '[0, 1, 2][5, 3]7',
    );
    await assertRejects((await modelWith({})).applyChatTemplate(hello), 'UNSUPPORTED', ['no chat template', 'generate()']);
    model.dispose();
    await assertRejects(apply(hello), 'DISPOSED', ['applyChatTemplate']);
  });

  it('does the same in attn/worker', async () => {
    const remote = await loadWorker(setup);
    const model = await remote.loadModel({ ...folder, 'tokenizer_config.json': JSON.stringify({ ...goldens.tokens, chat_template: names }) });
    assert.equal(await model.applyChatTemplate(hello), 'user</s>');
    await assertRejects(model.applyChatTemplate(['Hi'] as never), 'ARGUMENT', ['messages[0]'], WorkerError);
    await model.dispose();
    await assertRejects(model.applyChatTemplate(hello), 'DISPOSED', ['applyChatTemplate'], WorkerError);
    const base = await remote.loadModel(url('testdata/models/tiny-llama'), { cache: 'none' });
    await assertRejects(base.applyChatTemplate(hello), 'UNSUPPORTED', ['no chat template'], WorkerError);
    await remote.dispose();
  });
});
