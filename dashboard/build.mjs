// Makes the files that are embedded into the program: node build.mjs NODE_MODULES OUT_FOLDER
// One bundle per page, minified, named after a hash of its content, each also gzipped; a page that
// names them; the licences of what is in them. Nothing is loaded from anywhere else.
import { createRequire } from 'node:module';
import { gzipSync } from 'node:zlib';
import * as fs from 'node:fs';
import * as path from 'node:path';

const [modules, out] = process.argv.slice(2).map((name) => path.resolve(name));
const source = path.join(import.meta.dirname ?? path.dirname(new URL(import.meta.url).pathname),
    'src');
const packed = ['preact', 'htm', 'uplot'];
const description = path.join(source, '../../src/server/assets/openapi.json');
const esbuild = createRequire(path.join(modules, 'x.js'))('esbuild');

// What each operation of the API needs, from its description: 'perdura:operations' is an object
// { 'GET /v1/tasks': 'tasks:read', 'GET /v1/tasks/{id}': 'tasks:read own', … }.
const operations = Object.fromEntries(Object.entries(JSON.parse(fs.readFileSync(description)).paths)
    .flatMap(([where, verbs]) => Object.entries(verbs).filter(([, one]) => one['x-perdura-scope'])
        .map(([verb, one]) => [`${verb.toUpperCase()} ${where}`,
            [one['x-perdura-scope'], one['x-perdura-right']].filter(Boolean).join(' ')])));
const scopes = {
    name: 'operations',
    setup(build) {
        build.onResolve({ filter: /^perdura:operations$/ }, (one) => ({ path: one.path, namespace: 'made' }));
        build.onLoad({ filter: /.*/, namespace: 'made' }, () => ({ loader: 'json',
            contents: JSON.stringify(operations) }));
        // A button for an operation that the API does not have would be hidden from everyone.
        build.onLoad({ filter: /\/src\/.*\.js$/ }, ({ path: file }) => {
            const contents = fs.readFileSync(file, 'utf8');
            const named = [...contents.matchAll(/(?:op=["']|may\(')([A-Z]+ \/[^"'`$]*)["']/g)];
            const unknown = named.map(([, name]) => name).filter((name) => !Object.hasOwn(operations, name));
            return { contents, errors: unknown.map((name) => ({ text: `${file}: the API has no ${name}` })) };
        });
    },
};

fs.rmSync(out, { recursive: true, force: true });
fs.mkdirSync(out, { recursive: true });
const { metafile } = await esbuild.build({
    entryPoints: ['main.js', 'early.js', 'style.css'].map((name) => path.join(source, name)),
    outdir: out,
    nodePaths: [modules],
    plugins: [scopes],
    bundle: true,
    splitting: true,
    minify: true,
    format: 'esm',
    target: 'es2022',
    charset: 'utf8',
    legalComments: 'none',
    entryNames: '[name]-[hash]',
    chunkNames: '[name]-[hash]',
    metafile: true,
    logLevel: 'warning',
});

const made = Object.entries(metafile.outputs).map(([file, about]) => ({
    name: path.basename(file),
    entry: about.entryPoint ? path.basename(about.entryPoint) : '',
    imports: about.imports.filter((one) => one.kind === 'import-statement')
        .map((one) => path.basename(one.path)),
}));
const named = (entry) => made.find((one) => one.entry === entry);

// What the first page needs beside main.js, so that it is fetched at once and not in a chain.
const first = new Set();
function needs(one) {
    for (const name of one.imports)
        if (!first.has(name)) {
            first.add(name);
            needs(made.find((other) => other.name === name));
        }
}
needs(named('main.js'));
needs(named('overview.js'));
first.add(named('overview.js').name);

const licenses = packed.map((name) => {
    const folder = path.join(modules, name);
    const about = JSON.parse(fs.readFileSync(path.join(folder, 'package.json')));
    const file = fs.readdirSync(folder).find((one) => /^licen[sc]e/i.test(one));
    return `${name} ${about.version}\n\n${fs.readFileSync(path.join(folder, file), 'utf8')}`;
}).join('\n\n--------\n\n');
fs.writeFileSync(path.join(out, 'licenses.txt'), licenses);

const texts = Object.fromEntries(['en', 'fr', 'pt'].map((code) => [code,
    `/assets/${named(`${code}.json`).name}`])); // early.js takes one of them
const links = [`<meta name="texts" content='${JSON.stringify(texts)}'>`,
    ...[...first].map((name) => `<link rel="modulepreload" href="/assets/${name}">`)];
const page = fs.readFileSync(path.join(source, 'index.html'), 'utf8')
    .replace('<!-- preload -->', links.join('\n'))
    .replace(/\/assets\/(main\.js|early\.js|style\.css)/g,
        (_, entry) => `/assets/${named(entry).name}`);
fs.writeFileSync(path.join(out, 'index.html'), page);

for (const name of fs.readdirSync(out)) {
    const file = path.join(out, name);
    fs.writeFileSync(`${file}.gz`, gzipSync(fs.readFileSync(file), { level: 9 }));
}
