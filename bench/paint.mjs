// How long the home page of the dashboard takes until it is of use, for bench/dashboard.py:
//   PERDURA_BUILD=build node bench/paint.mjs URL LOADS
// Every load is cold: a context of its own, with an empty cache, in one Chromium that has loaded the page
// once before. Of use is a page whose figures stand there and were painted. Prints a line of JSON per load.
import { openBrowser } from '../tests/browser/harness.mjs';

const [url, loads] = [process.argv[2], Number(process.argv[3] ?? 9)];
const DEADLINE_MS = 60000;

// Runs in the page before anything of it: the first frame behind the figures, and behind the charts.
function watch() {
    window.paintedAt = {};
    const note = (name, found) => {
        if (name in window.paintedAt || !found())
            return;
        window.paintedAt[name] = null;
        requestAnimationFrame(() => setTimeout(() => { window.paintedAt[name] = performance.now(); }));
    };
    const figures = () => /\d/.test(document.querySelector('.tile .tile-value')?.textContent ?? '');
    new MutationObserver(() => {
        note('useful', figures);
        note('charts', () => document.querySelectorAll('.chart canvas').length === 4);
    }).observe(document, { subtree: true, childList: true, characterData: true });
}

async function load(browser) {
    const context = await browser.newContext({ viewport: { width: 1280, height: 860 } });
    try {
        const page = await context.newPage();
        await page.addInitScript(watch);
        await page.goto(`${url}/`);
        await page.waitForFunction(() => window.paintedAt.useful && window.paintedAt.charts, null,
            { timeout: DEADLINE_MS });
        return await page.evaluate(() => {
            const first = performance.getEntriesByName('first-contentful-paint')[0];
            const files = [performance.getEntriesByType('navigation')[0],
                ...performance.getEntriesByType('resource')].filter((one) => one.startTime
                < window.paintedAt.useful && !one.name.includes('/v1/'));
            return { first_ms: first?.startTime ?? null, useful_ms: window.paintedAt.useful,
                charts_ms: window.paintedAt.charts, files: files.length,
                bytes: files.reduce((sum, one) => sum + one.transferSize, 0) };
        });
    } finally {
        await context.close();
    }
}

const browser = await openBrowser();
try {
    await load(browser);
    for (let at = 0; at < loads; at++)
        console.log(JSON.stringify(await load(browser)));
} finally {
    await browser.close();
}
