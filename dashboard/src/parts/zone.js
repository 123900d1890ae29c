// Time zones as the browser knows them: what a clock shows there, how far it is from UTC, and when it is
// changed next.
import { inWords } from '../text.js';

const DAY_MS = 86400e3;
const LOOKED_DAYS = 366;
export const here = Intl.DateTimeFormat().resolvedOptions().timeZone;
const formats = new Map();

export function isZone(zone) {
    try {
        return Boolean(Intl.DateTimeFormat('en', { timeZone: zone }) && zone);
    } catch {
        return false;
    }
}

// Minutes that clocks there are ahead of UTC.
export function offsetAt(zone, time) {
    if (!formats.has(zone))
        formats.set(zone, new Intl.DateTimeFormat('en', { timeZone: zone, timeZoneName: 'longOffset' }));
    const text = formats.get(zone).formatToParts(new Date(time)).find((part) => part.type === 'timeZoneName').value;
    const [, sign, hours, minutes] = /GMT([+-])(\d+):(\d+)/.exec(text) ?? ['', '+', 0, 0];
    return (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes));
}

// The next change of clocks within a year, { at, by } with the minutes they go forward; or null.
export function changeAfter(zone, from) {
    const before = offsetAt(zone, from);
    let late = Number(from);
    for (let day = 0; day <= LOOKED_DAYS && offsetAt(zone, late) === before; day++)
        late += DAY_MS;
    if (offsetAt(zone, late) === before)
        return null;
    let early = late - DAY_MS;
    while (late - early > 1000) {
        const middle = Math.round((early + late) / 2);
        if (offsetAt(zone, middle) === before)
            early = middle;
        else
            late = middle;
    }
    return { at: late, by: offsetAt(zone, late) - before };
}

// With the year: what is planned may be far away.
export const clockText = (time, zone, seconds = false) => inWords(time, { weekday: 'short', day: 'numeric',
    month: 'short', year: 'numeric', hour: '2-digit', minute: '2-digit', second: seconds ? '2-digit' : undefined,
    hourCycle: 'h23', timeZone: zone });

// The same instant by the clock of this browser: without the day where it is the same one there.
export function besideText(time, zone, seconds = false) {
    const day = (timeZone) => inWords(time, { dateStyle: 'short', timeZone });
    return day(zone) === day(here) ? inWords(time, { hour: '2-digit', minute: '2-digit',
        second: seconds ? '2-digit' : undefined, hourCycle: 'h23' }) : clockText(time, here, seconds);
}
