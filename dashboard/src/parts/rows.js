// Keys for the rows of whatever list the page shows, from the moment it is there: j and k move, x selects,
// Enter opens. The row that was last reached is remembered, also when the list is loaded again.
const last = { hash: '', row: null, index: -1 };
const STEPS = { j: 1, k: -1, ArrowDown: 1, ArrowUp: -1 };
const linkOf = (row) => row.querySelector('td.main a[href], a[href]');

function goTo(rows, index) {
    const row = rows[Math.max(0, Math.min(rows.length - 1, index))];
    Object.assign(last, { hash: location.hash.split('?')[0], row, index: rows.indexOf(row) });
    linkOf(row).focus({ preventScroll: true });
    row.scrollIntoView({ block: 'nearest' });
}

// Where the focus is, else where it was on this page before it got lost; -1: nowhere yet.
function placeOf(rows, own) {
    if (own)
        return rows.indexOf(own);
    if (last.hash !== location.hash.split('?')[0])
        return -1;
    return rows.includes(last.row) ? rows.indexOf(last.row) : Math.min(last.index, rows.length - 1);
}

// Whether the key was for the rows.
export function pressRow(event) {
    const { key, target } = event;
    const own = target.closest('main tbody tr');
    const free = target === document.body || target.matches('h1, main');
    const rows = [...document.querySelectorAll('main tbody tr')].filter(linkOf);
    const at = placeOf(rows, own);
    if (rows.length === 0 || (key.startsWith('Arrow') && !own))
        return false;
    if (STEPS[key]) {
        goTo(rows, at < 0 ? 0 : at + STEPS[key]);
    } else if (key === 'x') {
        goTo(rows, Math.max(0, at));
        last.row.querySelector('input[type=checkbox]')?.click();
    } else if (key === 'Enter' && (free || target.matches('tr input'))) {
        if (at < 0)
            goTo(rows, 0); // the second time it is opened
        else
            linkOf(rows[at]).click();
    } else {
        return false;
    }
    return true;
}
