// The library's whole case table, and a real model, on a browser's WebGPU.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { open } from './browser.mjs';

/** After so many ms it hangs: cases by the hundred, each with pipelines of its own. */
const patience = 7_200_000;

let browser;

before(async () => {
  browser = await open('target/web/cases');
  await browser.page.evaluate(async () => {
    const wasm = await import('/cases.js');
    await wasm.default();
    Object.assign(window, { wasm, webgpu: await wasm.Browser.open() });
  });
});

after(() => browser?.close());

test('every case of the table', { timeout: patience }, async (t) => {
  const { page } = browser;
  const count = await page.evaluate(() => wasm.count());
  assert.ok(count >= 292, `${count} cases`);
  const wrong = [];
  const worst = { staged: { error: 0 }, fused: { error: 0 } };
  for (let at = 0; at < count; at += 1) {
    const outcome = await page.evaluate(async (index) => {
      const { name, staged, fused } = await webgpu.check(index);
      return { name, staged, fused };
    }, at);
    for (const method of ['staged', 'fused']) {
      const error = outcome[method];
      // The software adapter's limits allow every case: nothing is skipped.
      if (!(error <= 1)) wrong.push(`${method}, ${outcome.name}: ${error ?? 'skipped'}`);
      if (error > worst[method].error) worst[method] = { error, name: outcome.name };
    }
  }
  for (const [method, { error, name }] of Object.entries(worst)) {
    t.diagnostic(`${method}: ${count} cases, worst ${error.toFixed(2)} of what is allowed (${name})`);
    assert.ok(error > 0, `${method}: no error at all`);
  }
  assert.equal(wrong.length, 0, wrong.join('\n'));
});

test('a real model', { timeout: patience }, async (t) => {
  const error = await browser.page.evaluate(() => webgpu.model());
  t.diagnostic(`worst ${error.toFixed(2)} of what is allowed`);
  assert.ok(error > 0 && error <= 1, `${error}`);
});

test('nothing was complained of', () => assert.deepEqual(browser.errors, []));
