// Preact and htm under one roof: what every other file builds its elements with.
import { h } from 'preact';
import htm from 'htm';
import { opens } from './rights.js';

// A link to a page that the signed-in person may not see is shown as its words.
function make(type, props, ...children) {
    if (type !== 'a' || !props?.href?.startsWith('#/'))
        return h(type, props, ...children);
    if (this)
        this[0] = 3; // for htm: not the same for ever: others may sign in
    return opens(props.href) ? h(type, props, ...children)
        : h('span', { ...props, href: null, title: props.title ?? null }, ...children);
}

export const html = htm.bind(make);
export { Fragment, render } from 'preact';
export { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
