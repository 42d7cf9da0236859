import { strict as assert } from 'node:assert';
import { test } from 'node:test';
import { current, limits, run } from './processes.mjs';

// A busy machine gives a process little of each second.
Object.assign(limits, { idleMinutes: 5 / 60, progressSeconds: 0.02, checkSeconds: 0.5 });
const patience = { timeout: 120_000 };

async function outcome(program) {
  const said = [];
  const { code } = await current.run({ say: (text) => said.push(text) }, () => run(process.execPath, ['-e', program]));
  return { code, said: said.join('') };
}

test('a process that neither prints nor computes is stopped, with its children', patience, async () => {
  const { code, said } = await outcome("require('child_process').spawnSync('sleep', ['600'])");
  assert.notEqual(code, 0);
  assert.match(said, /stopped, no output and no processor time/);
});

test('a process that computes silently continues', patience, async () => {
  assert.equal((await outcome('const end = Date.now() + 12000; while (Date.now() < end);')).code, 0);
});

test('a process that waits but prints occasionally continues', patience, async () => {
  assert.equal((await outcome("setTimeout(() => clearInterval(t), 12000); const t = setInterval(() => console.log('.'), 500)")).code, 0);
});

test('a process that computes endlessly is stopped', patience, async () => {
  const { cpuMinutes } = limits;
  limits.cpuMinutes = 2 / 60;
  try {
    assert.match((await outcome('for (;;);')).said, /stopped, more than .* minutes of processor time/);
  } finally {
    limits.cpuMinutes = cpuMinutes;
  }
});

test('the processor time of a step is that of its own processes', { ...patience, skip: process.platform !== 'linux' }, async () => {
  const busy = (seconds) => `while (process.cpuUsage().user < ${seconds * 1e6}) for (let i = 0; i < 1e6; i++);`;
  const steps = [0, 1, 2].map(() => ({ say: () => {} }));
  await Promise.all(steps.map((step, i) => i > 0 && current.run(step, () => run(process.execPath, ['-e', busy(i)]))));
  assert.ok(steps[1].processorSeconds >= 1 && steps[1].processorSeconds < 1.9, `${steps[1].processorSeconds}`);
  assert.ok(steps[2].processorSeconds >= 2 && steps[2].processorSeconds < 2.9, `${steps[2].processorSeconds}`);
});

test('a program that does not exist fails with a message', patience, async () => {
  const said = [];
  const { code } = await current.run({ say: (text) => said.push(text) }, () => run('attn-no-such-program', []));
  assert.equal(code, 127);
  assert.match(said.join(''), /ENOENT/);
});
