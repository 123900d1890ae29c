// What a job waits for or is started by: rows of the job's form, and what is saved of them. A
// changed row is removed and made again, since the API cannot change a dependency.
import { html } from '../html.js';
import { getAll, post, remove } from '../api.js';
import { t } from '../text.js';
import { Button, Select } from './controls.js';

const TYPES = ['success', 'completion', 'failure'];
const MODES = ['gate', 'trigger'];
const same = (a, b) => a.depends_on_job_id === b.depends_on_job_id
    && a.dependency_type === b.dependency_type && a.mode === b.mode;

export const readNeeds = (job) => getAll(`/v1/jobs/${job.id}/dependencies`);

// now: the rows of the form; before: as they were read.
export async function saveNeeds(job, before, now) {
    for (const one of before)
        if (!now.some((other) => same(other, one)))
            await remove(`/v1/jobs/${job.id}/dependencies/${one.id}`);
    for (const one of now)
        if (!before.some((other) => same(other, one)))
            await post(`/v1/jobs/${job.id}/dependencies`, { depends_on_job_id: one.depends_on_job_id,
                dependency_type: one.dependency_type, dependency_config: { ...one.dependency_config,
                    mode: one.mode } });
}

function Row({ row, jobs, change, drop }) {
    const select = (key, label, options) => html`<${Select} aria-label=${label} value=${row[key]}
        options=${options} onChange=${(value) => change({ ...row, [key]: value })}/>`;
    return html`<li>${select('mode', t('needs.mode'), MODES.map((one) => [one, t(`needs.${one}`)]))}
        ${select('depends_on_job_id', t('job.one'), jobs.map((job) => [job.id, job.name]))}
        ${select('dependency_type', t('needs.type'), TYPES.map((one) => [one, t(`waitsFor.${one}`)]))}
        <${Button} kind="small danger" aria-label=${t('needs.drop')} onClick=${drop}>×<//></li>`;
}

export function Needs({ rows, setRows, jobs }) {
    const add = () => setRows([...rows, { depends_on_job_id: jobs[0].id, dependency_type: 'success',
        mode: 'gate' }]);
    return html`<fieldset class="needs"><legend>${t('needs.title')}</legend><small>${t('needs.hint')}</small>
        <ul>${rows.map((row, at) => html`<${Row} key=${at} row=${row} jobs=${jobs}
            change=${(next) => setRows(rows.map((one) => (one === row ? next : one)))}
            drop=${() => setRows(rows.filter((one) => one !== row))}/>`)}</ul>
        ${jobs.length > 0 ? html`<${Button} kind="small" onClick=${add}>${t('needs.add')}<//>`
        : html`<small>${t('needs.noOther')}</small>`}</fieldset>`;
}
