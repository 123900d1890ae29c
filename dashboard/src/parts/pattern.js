// The form of a recurring pattern: its pattern_config as fields one can fill in without knowing the
// members by heart. What the form does not show (starts_at, ends_at, dst) stays as it was.
import { inWords, t } from '../text.js';

const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
export const WEEKDAYS = ['monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday', 'sunday'];
const PLACES = ['1', '2', '3', '4', '5', '-1'];
const KEPT = ['starts_at', 'ends_at', 'dst'];
const MONDAY = Date.UTC(2024, 0, 1, 12); // any week and any year have the names

export const weekdayName = (name, style = 'short') => inWords(MONDAY + WEEKDAYS.indexOf(name) * 86400e3,
    { weekday: style, timeZone: 'UTC' });
const monthName = (number) => inWords(Date.UTC(2024, number - 1, 15), { month: 'long', timeZone: 'UTC' });
const words = (list) => list.map((one) => [one, t(`pattern.${one}`)]);

// "MON", "monday", 1 and 7 or 0 for Sunday are ways to name a day.
function weekdayOf(value) {
    if (typeof value === 'number')
        return WEEKDAYS[(value + 6) % 7];
    return WEEKDAYS.find((name) => name.slice(0, 3) === String(value).slice(0, 3).toLowerCase()) ?? 'monday';
}

function placeOf(value) {
    const named = ['', 'first', 'second', 'third', 'fourth', 'fifth'].indexOf(value);
    return value === 'last' ? '-1' : named > 0 ? String(named) : String(value ?? 1);
}

export function patternFields(jobs) {
    const is = (...types) => (values) => types.includes(values.pattern_type);
    const on = (what) => (values) => is('monthly', 'yearly')(values) && values.on === what;
    return [
        { name: 'name', label: t('pattern.name'), required: true },
        { name: 'template_job_id', label: t('job.one'), kind: 'select', fallback: jobs[0]?.id,
            options: jobs.map((job) => [job.id, job.name]) },
        { name: 'pattern_type', label: t('schedule.type'), kind: 'select', fallback: 'weekly',
            options: words(['daily', 'weekly', 'monthly', 'yearly', 'rrule']) },
        { name: 'interval', label: t('pattern.interval'), kind: 'number', fallback: 1,
            hint: t('pattern.intervalHint'), show: is('daily', 'weekly', 'monthly', 'yearly') },
        { name: 'weekdays', label: t('pattern.weekdays'), kind: 'days', fallback: ['monday'],
            show: is('weekly') },
        { name: 'month', label: t('pattern.month'), kind: 'select', fallback: '1', show: is('yearly'),
            options: Array.from({ length: 12 }, (_, at) => [String(at + 1), monthName(at + 1)]) },
        { name: 'on', label: t('pattern.on'), kind: 'select', fallback: 'onDay',
            options: words(['onDay', 'onWeekday']), show: is('monthly', 'yearly') },
        { name: 'day', label: t('pattern.day'), fallback: '1', hint: t('pattern.dayHint'), show: on('onDay') },
        { name: 'nth', label: t('pattern.nth'), kind: 'select', fallback: '1', show: on('onWeekday'),
            options: PLACES.map((one) => [one, t(`nth.${one}`)]) },
        { name: 'weekday', label: t('pattern.weekday'), kind: 'select', fallback: 'monday',
            show: on('onWeekday'), options: WEEKDAYS.map((one) => [one, weekdayName(one, 'long')]) },
        { name: 'rrule', label: 'RRULE', hint: 'FREQ=MONTHLY;BYDAY=2TU', show: is('rrule') },
        { name: 'time', label: t('pattern.time'), kind: 'clock', fallback: '09:00' },
        { name: 'timezone', label: t('schedule.zone'), fallback: zone },
    ];
}

// As the form wants it.
export function flatten(pattern) {
    const config = pattern.pattern_config;
    return { ...pattern, interval: config.interval ?? 1, time: config.time ?? '00:00', rrule: config.rrule ?? '',
        timezone: config.timezone ?? 'UTC', weekdays: (config.weekdays ?? []).map(weekdayOf),
        on: config.weekday === undefined ? 'onDay' : 'onWeekday', day: String(config.day ?? 1),
        nth: placeOf(config.nth), weekday: weekdayOf(config.weekday ?? 'monday'),
        month: String(monthOf(config.month)) };
}

function monthOf(value) {
    if (typeof value === 'number')
        return value;
    const names = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];
    return names.indexOf(String(value ?? 'jan').slice(0, 3).toLowerCase()) + 1 || 1;
}

// As the server wants it: only what is shown for the kind, and what the form does not know.
export function gather(values, pattern) {
    const { name, template_job_id: job, pattern_type: type, on, ...shown } = values;
    const config = {};
    for (const key of KEPT)
        if (pattern?.pattern_config[key] !== undefined)
            config[key] = pattern.pattern_config[key];
    for (const [key, value] of Object.entries(shown))
        if (value !== null && !(Array.isArray(value) && value.length === 0))
            config[key] = ['day', 'nth', 'month'].includes(key) && /^-?\d+$/.test(value) ? Number(value) : value;
    return { name, template_job_id: job, pattern_type: type, pattern_config: config };
}
