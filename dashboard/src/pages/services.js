// Target services of this server: whether they answer, how their calls go, and why tasks wait for them.
import { html } from '../html.js';
import { getAll, useLoad } from '../api.js';
import { Ago, Empty, Facts, Loading, Page, Problem } from '../parts/controls.js';
import { Progress } from '../parts/status.js';
import { clock, duration, number, t } from '../text.js';

const share = (rate) => (rate === null ? '–' : `${number(rate * 100)} %`);
const LOOK = { up: 'good', down: 'bad', degraded: 'warn', unknown: '' };
const worst = ['down', 'degraded', 'unknown', 'up'];
const byNeed = (a, b) => worst.indexOf(a.status) - worst.indexOf(b.status) || (a.name < b.name ? -1 : 1);

function waits(service) {
    if (service.next_try)
        return t('service.nextTry', { since: clock(service.down_since), until: clock(service.next_try) });
    return service.wait_until && t('service.waitUntil', { until: clock(service.wait_until) });
}

function Service({ service }) {
    const { calls } = service;
    const failed = calls.failed + calls.timeout + calls.refused;
    return html`<article class="card worker" aria-label=${service.name}>
        <header class="card-head"><h2>${service.name}</h2>
            <span class=${`tag ${LOOK[service.status]}`}>${t(`service.${service.status}`)}</span>
            ${service.breaker === 'open' && html`<span class="tag bad">${t('service.breakerOpen')}</span>`}</header>
        <p class="faint"><code>${service.url}</code></p>
        ${waits(service) && html`<p role="status">${waits(service)}</p>`}
        <div class="slots"><${Progress} value=${(100 * service.in_flight) / service.concurrency}
            label=${t('service.inFlight')} status="running"/><span>${t('service.inFlightOf', {
        n: number(service.in_flight), max: number(service.concurrency) })}</span></div>
        <${Facts} rows=${[
        [t('service.rateHour'), share(service.success_rate_1h)],
        [t('service.rateDay'), share(service.success_rate_24h)],
        [t('service.p50'), service.p50_ms === null ? '–' : duration(service.p50_ms)],
        [t('service.p99'), service.p99_ms === null ? '–' : duration(service.p99_ms)],
        [t('service.calls'), t('service.callsOf', { done: number(calls.done), failed: number(failed) })],
        [t('service.lastError'), service.last_error && html`${service.last_error} <span class="faint"><${Ago}
            time=${service.last_error_at}/></span>`]]}/></article>`;
}

export default function Services() {
    const services = useLoad(() => getAll('/v1/services'), [], 2000);
    return html`<${Page} title=${t('nav.services')} lead=${t('service.lead')}>
        <${Problem} error=${services.error} retry=${services.reload}/>
        ${!services.data && !services.error && html`<${Loading}/>`}
        ${services.data?.length === 0 && html`<${Empty} title=${t('service.empty')} text=${t('service.emptyText')}/>`}
        <div class="grid workers">${[...services.data ?? []].sort(byNeed).map((service) => html`<${Service}
            key=${service.name} service=${service}/>`)}</div><//>`;
}
