// The page as it loads on WebGPU: nothing jumps. Leaves pictures of it in target/web/shots.

import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';

import { becomes, desk, drawn, goTo, phone, pictures, reads, visit } from './page.mjs';

mkdirSync(pictures, { recursive: true });

for (const [width, size] of [
  [1280, desk],
  [390, phone],
]) {
  test(`at ${width} px nothing jumps while the page fills`, async (t) => {
    const before = async (page) => {
      await page.addInitScript(() => {
        const shifts = [];
        const note = (entries) => {
          for (const { value, hadRecentInput, sources } of entries) {
            const moved = sources.map(({ node }) => node?.id || node?.className || node?.nodeName);
            if (!hadRecentInput) shifts.push([value, ...moved]);
          }
        };
        const observer = new PerformanceObserver((list) => note(list.getEntries()));
        observer.observe({ type: 'layout-shift', buffered: true });
        window.shifts = () => {
          note(observer.takeRecords());
          return shifts;
        };
      });
      // After a first paint without it.
      const painted = () =>
        page.evaluate(() => performance.getEntriesByName('first-contentful-paint').length);
      await page.route('**/*.wasm', async (route) => {
        await becomes(painted, 1);
        await route.continue();
      });
    };
    const page = await visit({ test: t, before, ...size });
    await reads(page, 'engine-text', /^Computed on WebGPU/);
    await drawn(page);
    // What is further down moves alike on the CPU, and is computed sooner.
    await page.getByRole('button', { name: 'Use the CPU' }).click();
    await reads(page, 'engine-text', /^Computed by the CPU reference/);
    // For half a second after a click browsers forgive what moves.
    await pause(1000);
    for (const id of ['model', 'cost', 'order', 'scale']) {
      await goTo(page, id);
      await drawn(page);
    }
    await reads(page, 'scale-says', /^Over/);
    await reads(page, 'order-says', /every token/);
    await reads(page, 'model-note', /differ/);
    await drawn(page);
    const shifts = await page.evaluate(() => window.shifts());
    const sum = shifts.reduce((sum, [value]) => sum + value, 0);
    assert.ok(sum < 0.02, `${sum}: ${JSON.stringify(shifts)}`);

    await page.evaluate(() => scrollTo({ top: 0, behavior: 'instant' }));
    for (const colorScheme of ['light', 'dark']) {
      await page.emulateMedia({ colorScheme });
      await page.screenshot({ path: `${pictures}${width}-${colorScheme}.png`, fullPage: true });
    }
  });
}
