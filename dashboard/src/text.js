// Words, numbers and times in the reader's language. The texts are in texts/, one file per language
// with the same keys (a test compares them); only the one in use is loaded.
import { makeStore } from './store.js';

const loaders = {
    en: () => import('./texts/en.json'),
    fr: () => import('./texts/fr.json'),
    pt: () => import('./texts/pt.json'),
};
export const languages = { en: 'English', fr: 'Français', pt: 'Português' };
export const language = makeStore('en');

let texts = {};
let locale, numbers, times, days, daysOfYears, plural, ago;

function preferred() {
    const wanted = [localStorage.getItem('perdura.language'), ...navigator.languages]
        .filter(Boolean).map((one) => one.slice(0, 2).toLowerCase());
    return wanted.find((one) => loaders[one]) ?? 'en';
}

// The language with the region the browser says: 24 hours in Britain, 12 in America.
const regional = (code) => navigator.languages.find((one) => one.toLowerCase().startsWith(code)) ?? code;

export async function loadLanguage(code = preferred()) {
    texts = (await loaders[code]()).default;
    locale = regional(code);
    numbers = new Intl.NumberFormat(locale, { maximumFractionDigits: 1 });
    times = new Intl.DateTimeFormat(locale, { hour: '2-digit', minute: '2-digit', second: '2-digit' });
    days = new Intl.DateTimeFormat(locale, { weekday: 'short', day: 'numeric', month: 'short',
        hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });
    daysOfYears = new Intl.DateTimeFormat(locale, { weekday: 'short', day: 'numeric', month: 'short',
        year: 'numeric', hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });
    ago = new Intl.RelativeTimeFormat(locale, { numeric: 'always', style: 'short' });
    plural = new Intl.PluralRules(code);
    document.documentElement.lang = code;
    language.set(code);
}

export function chooseLanguage(code) {
    localStorage.setItem('perdura.language', code);
    return loadLanguage(code);
}

export function t(key, values) {
    const text = texts[key] ?? key;
    return values ? text.replace(/\{(\w+)\}/g, (_, word) => values[word] ?? '') : text;
}

export const has = (key) => Object.hasOwn(texts, key);

// "1 task", "2 tasks": key.one and key.other.
export function tn(key, count, values = {}) {
    const form = plural.select(count) === 'one' ? 'one' : 'other';
    return t(`${key}.${form}`, { n: number(count), ...values });
}

export const statusText = (status) => t(`status.${status}`);
export const number = (value) => (value === null || value === undefined ? '–' : numbers.format(value));

// 1.2 k, 3.4 M: for tiles and axes.
export function shortNumber(value) {
    if (value === null || value === undefined)
        return '–';
    for (const [size, letter] of [[1e9, 'G'], [1e6, 'M'], [1e4, 'k']])
        if (Math.abs(value) >= size)
            return `${numbers.format(value / (letter === 'k' ? 1e3 : size))} ${letter}`;
    return numbers.format(value);
}

const joined = (large, small, unit) => (small ? `${large} ${small} ${unit}` : large);

export function duration(ms) {
    if (ms === null || ms === undefined || Number.isNaN(ms))
        return '–';
    if (ms < 1)
        return ms === 0 ? '0 ms' : '<1 ms';
    if (ms < 1000)
        return `${Math.round(ms)} ms`;
    if (ms < 60e3)
        return `${numbers.format(ms / 1000)} s`;
    const minutes = Math.floor(ms / 60e3);
    if (minutes < 60)
        return joined(`${minutes} min`, Math.floor(ms / 1000) % 60, 's');
    const hours = Math.floor(minutes / 60);
    return hours < 48 ? joined(`${hours} h`, minutes % 60, 'min')
        : joined(`${Math.floor(hours / 24)} d`, hours % 24, 'h');
}

const UNITS = [['day', 86400], ['hour', 3600], ['minute', 60], ['second', 1]];

export function relative(time, now = Date.now()) {
    const seconds = (new Date(time) - now) / 1000;
    const [unit, size] = UNITS.find(([, one]) => Math.abs(seconds) >= one) ?? ['second', 1];
    return ago.format(Math.trunc(seconds / size), unit);
}

export const inWords = (time, options) => new Date(time).toLocaleString(locale, options);
export const clock = (time) => times.format(new Date(time));
// The year is said where it is not this one.
export const dayAndTime = (time) => (new Date(time).getFullYear() === new Date().getFullYear() ? days
    : daysOfYears).format(new Date(time));

// In full, with the zone of this browser.
export function fullTime(time) {
    const date = new Date(time);
    return `${date.toLocaleString(locale, { dateStyle: 'medium', timeStyle: 'medium' })}`
        + `.${String(date.getMilliseconds()).padStart(3, '0')}`;
}
