// A folder in a real browser: Chromium, on its software adapter where there is no GPU.

import { chromium } from 'playwright-core';

import { address, serve } from '../static.mjs';

/** After so many ms it hangs: a browser that starts on a busy machine takes minutes, if not ten. */
const patience = 600_000;

const flags = [
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-quic',
  '--disable-sync',
  '--no-first-run',
];

/**
 * Opens the folder's index.html. `errors` grows by whatever goes wrong on the page: errors in its
 * console, exceptions nobody caught, requests to anyone but the folder's server.
 *
 * Without `webgpu` the page finds no adapter. `before(page)` prepares the page that is to be opened;
 * the other options are Playwright's for a new page.
 */
export async function open(folder, { webgpu = true, before = () => {}, ...options } = {}) {
  const server = await serve(folder);
  const url = address(server);
  const errors = [];
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    // As root, and in containers, Chromium's sandbox does not start.
    chromiumSandbox: false,
    args: [...flags, ...(webgpu ? ['--enable-unsafe-webgpu'] : [])],
    timeout: patience,
  });
  const close = async () => {
    await browser.close();
    server.close();
  };
  try {
    const page = await browser.newPage(options);
    page.setDefaultTimeout(patience);
    page.on('console', (message) => {
      if (message.type() === 'error') errors.push(message.text());
    });
    page.on('pageerror', (error) => errors.push(error.stack ?? String(error)));
    page.on('request', (request) => {
      const other = /^https?:/.test(request.url()) && !request.url().startsWith(url);
      if (other) errors.push(`a request to ${request.url()}`);
    });
    await before(page);
    await page.goto(url);
    return { page, url, errors, browser, close };
  } catch (error) {
    await close();
    throw error;
  }
}
