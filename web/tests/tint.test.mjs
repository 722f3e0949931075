// Every module that the planner composes, judged by the browsers' WGSL compiler, Tint: it refuses
// what naga lets through.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

async function verdicts(folder) {
  const judge = fileURLToPath(new URL('tint.mjs', import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, [judge, folder]);
  return Object.entries(JSON.parse(stdout));
}

// After an hour it hangs.
test('Tint takes every module', { timeout: 3_600_000 }, async (t) => {
  // tests/shaders/ writes them.
  const all = await verdicts(process.env.WGSL ?? 'target/tmp/wgsl');
  assert.ok(all.length > 100, `${all.length} modules`);
  // Composed for adapters with more workgroup memory than every browser grants.
  const large = all.filter(([, { unfit }]) => /workgroup storage .* larger than/.test(unfit));
  const wrong = all.filter((row) => !large.includes(row) && Object.keys(row[1]).length > 0);
  t.diagnostic(`${all.length} modules, ${all.length - large.length} of them for every browser`);
  assert.deepEqual(wrong.slice(0, 5), []);
  assert.ok(large.length < all.length / 2);
});

test('Tint refuses a barrier that some invocations miss', async () => {
  const folder = await mkdtemp(path.join(tmpdir(), 'tint-'));
  const code = `
    @compute @workgroup_size(64)
    fn main(@builtin(local_invocation_index) index: u32) {
      if index > 3u { workgroupBarrier(); }
    }`;
  await writeFile(path.join(folder, 'barrier.wgsl'), code);
  const [[, { refused }]] = await verdicts(folder).finally(() => rm(folder, { recursive: true }));
  assert.match(refused, /uniform control flow/);
});
