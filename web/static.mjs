// A folder served to this machine alone. `node web/static.mjs FOLDER PORT`, or imported by tests.

import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import http from 'node:http';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const types = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json',
  '.mjs': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.wasm': 'application/wasm',
};

/** Resolves with the server, which listens on a free port for 0. */
export function serve(folder, port = 0) {
  const root = path.resolve(folder);
  const server = http.createServer(async (request, response) => {
    try {
      const name = decodeURIComponent(new URL(request.url, 'http://localhost').pathname);
      const file = path.join(root, name.endsWith('/') ? `${name}index.html` : name);
      const { size } = await stat(file);
      if (!file.startsWith(root + path.sep)) throw new Error('outside the folder');
      const type = types[path.extname(file)] ?? 'application/octet-stream';
      // A rebuilt page must not meet yesterday's modules.
      const headers = { 'content-type': type, 'content-length': size, 'cache-control': 'no-store' };
      response.writeHead(200, headers);
      createReadStream(file).on('error', () => response.destroy()).pipe(response);
    } catch {
      response.writeHead(404).end();
    }
  });
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', () => resolve(server));
  });
}

export const address = (server) => `http://127.0.0.1:${server.address().port}/`;

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const [folder, port] = process.argv.slice(2);
  const server = await serve(folder, Number(port)).catch((error) => {
    console.error(error.message);
    process.exit(1);
  });
  console.log(`${address(server)} (ends with Ctrl-C)`);
}
