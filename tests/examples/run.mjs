import { strict as assert } from 'node:assert';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { limit } from '../../wasm-tests/support/node_tests.mjs';
import { at, repository } from '../../wasm-tests/support/paths.mjs';

const execute = promisify(execFile);

/** An optional sentence model. */
export const miniLm = at('models/all-MiniLM-L6-v2');

/** Runs a program that must succeed; resolves to its output. */
export async function output(program, args, { input = '', ...options } = {}) {
  try {
    const running = execute(program, args, { cwd: repository, timeout: limit.timeout / 2, maxBuffer: 1 << 24, ...options });
    // The program may end before it reads its input.
    running.child.stdin.on('error', () => {}).end(input);
    return (await running).stdout;
  } catch (error) {
    throw new Error(`${program} ${args.join(' ')}: exit ${error.code}\n${error.stdout ?? ''}${error.stderr ?? ''}`, { cause: error });
  }
}

/** Runs a program that must fail; resolves to its exit code and output. */
export async function refusal(program, args, options = {}) {
  const error = await execute(program, args, { cwd: repository, timeout: limit.timeout / 2, ...options }).then(
    ({ stdout }) => assert.fail(`${args.join(' ')} ended well: ${stdout}`),
    (failure) => failure,
  );
  return { code: error.code, text: `${error.stdout}${error.stderr}` };
}
