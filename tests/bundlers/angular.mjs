import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { bin, inBrowser, model, page, says, serving, write } from './apps.mjs';

const setting = '"glob": "{*.wasm,worker-host.js,attn-threads.mjs}"';
const assets = [
  { glob: '{*.wasm,worker-host.js,attn-threads.mjs}', input: 'node_modules/attn/dist', output: '.' },
  { glob: '**/*', input: 'public' },
];
const headers = { 'Cross-Origin-Opener-Policy': 'same-origin', 'Cross-Origin-Embedder-Policy': 'require-corp' };

function application(folder) {
  const build = {
    builder: '@angular/build:application',
    options: { browser: 'src/main.ts', index: 'src/index.html', tsConfig: 'tsconfig.json', assets },
  };
  const serve = {
    builder: '@angular/build:dev-server',
    options: { buildTarget: 'app:build:development', headers, prebundle: { exclude: ['attn'] } },
  };
  const configurations = { development: { optimization: false, sourceMap: true } };
  const project = { projectType: 'application', root: '', sourceRoot: 'src', architect: { build: { ...build, configurations }, serve } };
  write(folder, 'angular.json', JSON.stringify({ version: 1, cli: { analytics: false }, projects: { app: project } }));
  const compilerOptions = { strict: true, target: 'ES2022', module: 'preserve', moduleResolution: 'bundler', skipLibCheck: false, types: [] };
  write(folder, 'tsconfig.json', JSON.stringify({ compilerOptions: { ...compilerOptions, allowJs: true }, files: ['src/main.ts'] }));
  write(folder, 'src/index.html', '<!doctype html><html lang="en"><head><base href="/"></head><body><app-root></app-root></body></html>');
  write(
    folder,
    'src/main.ts',
    `import { Component } from '@angular/core';
import { bootstrapApplication } from '@angular/platform-browser';
import { load } from 'attn';
import { load as loadInWorker } from 'attn/worker';
import { check } from '../check.js';

@Component({ selector: 'app-root', template: '<p>attn</p>' })
class App {
  constructor() {
    (globalThis as { matrix?: unknown }).matrix = check(load, loadInWorker, '/tiny-bert');
  }
}

bootstrapApplication(App);
`,
  );
  cpSync(model, join(folder, 'public/tiny-bert'), { recursive: true });
}

async function build(folder) {
  application(folder);
  await bin(folder, '@angular/cli/bin/ng.js', 'build');
  return join(folder, 'dist/app/browser');
}

async function serve(folder, browser) {
  application(folder);
  const args = ['node_modules/@angular/cli/bin/ng.js', 'serve', '--port', '5195', '--host', '127.0.0.1'];
  return serving(folder, process.execPath, args, 'http://127.0.0.1:5195/', (url) => inBrowser(browser, url), { NODE_ENV: 'development' });
}

const row = { line: 'Angular (ng build, ng serve)', tool: 'angular', says: says.page, setting };
export const angular = [
  { ...row, name: 'Angular, ng build', run: page(build) },
  { ...row, name: 'Angular, ng serve', run: serve },
];
