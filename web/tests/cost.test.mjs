// The cost of attention, measured on the page: as many tokens as the software adapter takes in seconds,
// by a clock of the test's.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { becomes, reads, visit } from './page.mjs';

const TOKENS = [64, 128, 256, 512];

const page = await visit();
await reads(page, 'engine-text', /^Computed on WebGPU/);
const button = (name) => page.getByRole('button', { name });
const run = button(/^Run/);
const stop = button('Stop');
const table = () =>
  page
    .locator('#cost-table tbody tr')
    .evaluateAll((rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent)));
const state = (pattern) => reads(page, 'cost-state', pattern);

/** `1.1 MiB` as a number. */
function parsed(text) {
  const [, number, unit] = /^([\d.]+)\u00a0(B|KiB|MiB|GiB)$/.exec(text);
  return number * 1024 ** ['B', 'KiB', 'MiB', 'GiB'].indexOf(unit);
}

test('a measurement can be stopped at once, and begun again', async () => {
  await state(/^Not run yet\.$/);
  assert.ok(await stop.isDisabled());
  // An answer of the GPU that never comes must not keep the page from stopping.
  await page.evaluate(() => window.seen.hold('onSubmittedWorkDone'));
  await run.click();
  assert.ok(await run.isDisabled());
  await state(/^64 tokens, staged …$/);
  const focused = () => page.evaluate(() => document.activeElement.id);
  assert.equal(await focused(), 'cost-stop', 'a disabled button keeps no focus');
  await stop.click();
  await state(/^Stopped\.$/);
  assert.equal(await focused(), 'cost-run');
  assert.ok(await stop.isDisabled());
  assert.ok(await run.isEnabled());
  await page.evaluate(() => window.seen.release('onSubmittedWorkDone'));
});

test('as tokens double, stored scores grow four times and the fused kernel’s memory twice', async () => {
  await page.locator('#cost-state').evaluate((state) => {
    const watch = () =>
      state.textContent === '1024 tokens, staged …' && document.getElementById('cost-stop').click();
    new MutationObserver(watch).observe(state, { childList: true });
  });
  // At every size a run takes twice as long, whatever the machine: two looks at the clock a run, nine
  // runs, two methods.
  await page.evaluate(() => {
    let [looks, now] = [0, 0];
    performance.now = () => (now += 2 ** Math.floor(looks++ / 36));
  });
  await run.click();
  await state(/^Stopped\.$/);
  assert.equal(await page.locator('#cost-progress').evaluate((progress) => progress.value), 8);
  const rows = await table();
  TOKENS.forEach((tokens, i) => {
    const [name, staged, stagedGrowth, fused, fusedGrowth, stagedBytes, fusedBytes] = rows[i];
    assert.equal(name, String(tokens));
    for (const time of [staged, fused]) assert.equal(time, ['1.0', '2.0', '4.0', '8.0'][i]);
    for (const growth of [stagedGrowth, fusedGrowth]) assert.equal(growth, i ? '2.0' : '–');
    // The output, 64 numbers a token, the uniforms, and in the staged kernels the scores.
    const [output, scores, uniforms] = [4 * 64 * tokens, 4 * tokens ** 2, 2048];
    const within = (bytes, least) => {
      const rounding = 0.05 * bytes;
      assert.ok(bytes > least - rounding && bytes < least + uniforms + rounding, `${tokens}: ${bytes}`);
    };
    within(parsed(fusedBytes), output);
    within(parsed(stagedBytes), output + scores);
  });
  // What was not measured is not claimed.
  for (const row of rows.slice(TOKENS.length)) assert.deepEqual(row.slice(1), Array(6).fill('–'));
});

test('both charts show what the table shows', async () => {
  for (const [id, columns, number] of [
    ['cost-time', [1, 3], Number],
    ['cost-memory', [5, 6], parsed],
  ]) {
    const chart = page.locator(`#${id}`);
    assert.equal(await chart.getByRole('img').count(), 1);
    const rows = await table();
    for (const [line, column] of ['staged', 'fused'].map((line, c) => [line, columns[c]])) {
      const heights = await chart
        .locator(`circle.${line}`)
        .evaluateAll((dots) => dots.map((dot) => Number(dot.getAttribute('cy'))));
      const amounts = TOKENS.map((_, i) => number(rows[i][column]));
      assert.equal(heights.length, TOKENS.length);
      // Twice the amount is the same step up everywhere.
      const steps = amounts.map((amount) => Math.log2(amount / amounts[0]));
      const last = steps.at(-1);
      heights.forEach((height, i) => {
        const want = heights[0] + ((heights.at(-1) - heights[0]) * steps[i]) / last;
        assert.ok(Math.abs(height - want) < 4, `${id} ${line} ${TOKENS[i]}`);
      });
    }
  }
});

test('where stored scores stop fitting follows from the device’s limits', async () => {
  const text = await page.locator('#cost-limit').textContent();
  const pattern = new RegExp(
    '^At (\\d+) tokens the stored scores stop fitting: (.+?), and this device’s largest buffer is (.+?)\\. ' +
      'The fused kernel needs (.+?) there\\.$',
  );
  assert.match(text, pattern);
  const [, tokens, scores, largest, fused] = pattern.exec(text);
  const limit = await page.evaluate(() => {
    const { limits } = window.seen.devices.at(-1);
    return Math.min(limits.maxStorageBufferBindingSize, limits.maxBufferSize);
  });
  const near = (text, bytes) => assert.ok(Math.abs(parsed(text) - bytes) <= 0.05 * bytes, `${text} ${bytes}`);
  near(largest, limit);
  near(scores, 4 * tokens ** 2);
  near(fused, 4 * 64 * tokens);
  assert.ok(4 * tokens ** 2 > limit && tokens ** 2 <= limit, 'half as many would fit');
});

test('another number of heads begins anew', async () => {
  await page.getByRole('combobox', { name: 'Heads' }).selectOption('8');
  await state(/^Not run yet\.$/);
  for (const row of await table()) assert.deepEqual(row.slice(1), Array(6).fill('–'));
});

test('a device that is lost meanwhile ends the measurement', async () => {
  await page.evaluate(() => window.seen.hold('onSubmittedWorkDone'));
  await run.click();
  await state(/^64 tokens/);
  await page.evaluate(() => window.seen.devices.at(-1).destroy());
  await reads(page, 'engine-text', /^The WebGPU device was lost/);
  await state(/^The device was lost\.$/);
  assert.ok(await run.isDisabled());
  await button('Use the CPU').click();
  await state(/^This needs WebGPU/);
  await becomes(() => stop.isDisabled(), true);
});
