// What computes, and what the page says and offers when it does not.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { figures, start, words } from './lesson.mjs';
import { arrows, becomes, reads, shown, tip, visit } from './page.mjs';

const WASM = '**/*.wasm';
const shows = (page, vectors) => becomes(() => shown(page), figures(vectors));
const button = (page, name) => page.getByRole('button', { name, exact: true });
const progress = (page) => page.getByRole('progressbar', { name: 'Waiting for the GPU' });

/** Says once what the browser fails to load; the page must say the rest. */
const notLoaded = /^Failed to load resource/;

test('everything is painted before the wasm arrives', async (t) => {
  let arrive;
  const arrived = new Promise((resolve) => (arrive = resolve));
  const before = (page) =>
    page.route(WASM, async (route) => {
      await arrived;
      await route.continue();
    });
  const page = await visit({ test: t, before });
  await reads(page, 'engine-text', /^Loading the kernels …$/);
  assert.ok(await progress(page).isVisible());
  const painted = () => page.evaluate(() => performance.getEntriesByName('first-contentful-paint').length);
  await becomes(painted, 1);
  // The script that fills them in may run after the first paint.
  await becomes(() => page.locator('#queries label').count(), words.length);
  assert.deepEqual(await page.locator('#queries label').allTextContents(), words);
  const keys = words.map((word, j) => `Key of ${word}, token ${j + 1}`);
  assert.deepEqual(await arrows(page), [...keys, 'Query of sat']);
  const got = await shown(page);
  assert.deepEqual(
    got.raw,
    words.map(() => '–'),
  );
  assert.deepEqual(
    got.weights,
    words.map(() => words.map(() => '–')),
  );
  assert.deepEqual(await page.locator('#row tbody th').allTextContents(), words);

  // What is moved meanwhile is computed first.
  await tip(page, 'Key of cat').press('Shift+ArrowLeft');
  arrive();
  const moved = start();
  moved.k[1] = [1.7, 1];
  await reads(page, 'engine-text', /^Computed on WebGPU/);
  await shows(page, moved);
  assert.ok(await progress(page).isHidden());
});

test('wasm that does not load is said, and can be tried again', async (t) => {
  let answer = (route) => route.abort();
  const before = (page) => page.route(WASM, (route) => answer(route));
  const page = await visit({ test: t, before, webgpu: false, allowed: notLoaded });
  const said = () => reads(page, 'engine-text', /^The page’s WebAssembly did not load: ./);
  await said();
  assert.ok(await progress(page).isHidden());
  answer = (route) => route.fulfill({ status: 404, contentType: 'text/html', body: 'not here' });
  await button(page, 'Try again').click();
  await said();
  answer = (route) =>
    route.fulfill({ contentType: 'application/wasm', body: Buffer.from([0, 97, 115, 109, 9]) });
  await button(page, 'Try again').click();
  await said();
  answer = (route) => route.continue();
  await button(page, 'Try again').click();
  await shows(page, start());
  assert.ok(await button(page, 'Try again').isHidden());
});

for (const [what, why, options] of [
  ['an adapter', 'This browser offers no WebGPU adapter', { webgpu: false }],
  [
    'WebGPU',
    'This browser has no WebGPU',
    { before: (page) => page.addInitScript(() => delete Navigator.prototype.gpu) },
  ],
]) {
  test(`without ${what} the CPU reference serves, and the page says so`, async (t) => {
    const page = await visit({ test: t, ...options });
    await shows(page, start());
    const said = await page.locator('#engine-text').textContent();
    assert.equal(said, `Computed by the CPU reference in WebAssembly. ${why}.`);
    await reads(
      page,
      'agreement',
      /^Computed twice, by the reference, .*: outputs differ by (0|[1-9]e−[6-9]) at most\.$/,
    );
    await tip(page, 'Key of cat').press('ArrowUp');
    const moved = start();
    moved.k[1] = [2.2, 1.1];
    await shows(page, moved);
    assert.equal(await page.evaluate(() => window.seen.dispatches), 0);
    assert.ok(await page.getByRole('button', { name: /^Run/ }).isDisabled());
    await reads(page, 'cost-state', /^This needs WebGPU/);
    assert.equal(await button(page, 'Try WebGPU').isVisible(), what === 'an adapter');
  });
}

for (const [step, says] of [
  ['requestAdapter', /^Asking the browser for a GPU …$/],
  ['requestDevice', /^Asking the browser for a GPU …$/],
  ['mapAsync', /^Compiling the kernels for .+ …$/],
]) {
  test(`an adapter that is slow at ${step} shows progress, and can be stopped`, async (t) => {
    const before = (page) => page.addInitScript((step) => window.seen.hold(step), step);
    const page = await visit({ test: t, before });
    await reads(page, 'engine-text', says);
    assert.ok(await progress(page).isVisible());
    assert.deepEqual(
      (await shown(page)).raw,
      words.map(() => '–'),
    );
    await button(page, 'Stop, use the CPU').click();
    await shows(page, start());
    await reads(page, 'engine-text', /^Computed by the CPU reference in WebAssembly$/);
    assert.ok(await progress(page).isHidden());

    // An answer that comes late changes nothing, until it is asked for.
    await page.evaluate((step) => window.seen.release(step), step);
    await tip(page, 'Key of cat').press('ArrowLeft');
    const moved = start();
    moved.k[1] = [2.1, 1];
    await shows(page, moved);
    await reads(page, 'engine-text', /^Computed by the CPU reference/);
    if (step !== 'requestDevice') return;
    await button(page, 'Try WebGPU').click();
    await reads(page, 'engine-text', /^Computed on WebGPU/);
    await shows(page, moved);
  });
}

test('a lost device is said, keeps the vectors, and can be replaced', async (t) => {
  const page = await visit({ test: t });
  await reads(page, 'engine-text', /^Computed on WebGPU/);
  const moved = start();
  moved.k[1] = [-0.8, 1];
  for (let step = 0; step < 6; step++) await tip(page, 'Key of cat').press('Shift+ArrowLeft');
  await shows(page, moved);
  const lose = () => page.evaluate(() => window.seen.devices.at(-1).destroy());
  const said = () => reads(page, 'engine-text', /^The WebGPU device was lost: .+\. Your vectors are kept\.$/);

  await lose();
  await said();
  await shows(page, moved);
  assert.ok(await button(page, 'Use the CPU').isVisible());
  // Meanwhile tips still move.
  await tip(page, 'Key of cat').press('ArrowUp');
  moved.k[1] = [-0.8, 1.1];
  const devices = () => page.evaluate(() => window.seen.devices.length);
  const first = await devices();
  await button(page, 'Try again').click();
  await reads(page, 'engine-text', /^Computed on WebGPU/);
  await shows(page, moved);
  assert.equal(await devices(), first + 1);
  assert.equal(await page.locator('#engine').getAttribute('data-state'), 'webgpu');

  // Lost while an answer is awaited.
  await page.evaluate(() => window.seen.hold('mapAsync'));
  await tip(page, 'Key of cat').press('ArrowDown');
  moved.k[1] = [-0.8, 1];
  await lose();
  await said();
  await page.evaluate(() => window.seen.release('mapAsync'));
  await button(page, 'Use the CPU').click();
  await shows(page, moved);
  await reads(page, 'engine-text', /^Computed by the CPU reference in WebAssembly$/);

  // No adapter any more: the CPU goes on serving.
  await page.evaluate(() => (GPU.prototype.requestAdapter = async () => null));
  await button(page, 'Try WebGPU').click();
  await reads(page, 'engine-text', /This browser offers no WebGPU adapter\.$/);
  await shows(page, moved);
});
