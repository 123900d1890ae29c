// Preact and htm under one roof: what every other file builds its elements with.
import { h } from 'preact';
import htm from 'htm';

export const html = htm.bind(h);
export { Fragment, render } from 'preact';
export { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
